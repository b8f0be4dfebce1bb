package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
)

// Events serves the request URLs of the app. It rejects requests that are not signed with the
// signing secret, and answers 200 only once a message is accepted, or if it does not decode. While Run is
// not active it answers 503, and Slack tries again.
func (p *platform) Events() http.Handler { return http.HandlerFunc(p.serveRequest) }

func (p *platform) serveRequest(w http.ResponseWriter, req *http.Request) {
	if isCertificateCheck(req) {
		return
	}
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want POST", http.StatusMethodNotAllowed)
		return
	}
	body, ok := p.verifier.readBody(w, req)
	if !ok {
		return
	}
	kind, payload, ok := readPayload(req.Header.Get("Content-Type"), body)
	if !ok {
		http.Error(w, "not a request of slack's", http.StatusBadRequest)
		return
	}
	var o eventWrapper
	if kind == kindEvent && json.Unmarshal(payload, &o) == nil && o.Type == "url_verification" {
		writeJSON(w, map[string]string{"challenge": o.Challenge})
		return
	}
	r := p.receiver.Load()
	if r == nil {
		http.Error(w, "not running", http.StatusServiceUnavailable)
		return
	}
	in, err := r.self.decode(kind, payload)
	if err != nil {
		// A repetition would fail as well.
		p.log.Error("request skipped: it does not decode", "type", kind, "err", err)
		return
	}
	reply := ""
	// The acceptance may outlive the request: the next delivery finds the message on disk.
	err = r.queues.do(req.Context(), in.queueKey(), func() (err error) {
		reply, err = r.accept(context.WithoutCancel(req.Context()), in)
		return err
	})
	switch {
	case errors.Is(err, errBusy):
		r.recordMissed(in)
	case req.Context().Err() != nil: // Slack has closed the connection
	case err != nil:
		p.log.Error("request not accepted: slack will deliver it again", "attempt", req.Header.Get("X-Slack-Retry-Num"), "err", err)
		http.Error(w, "not accepted", http.StatusServiceUnavailable)
	case reply != "":
		writeJSON(w, ephemeralResponse(reply))
	}
}

// maxCheck bounds the body of a check of the certificate.
const maxCheck = 4096

// isCertificateCheck reports whether Slack only checks the certificate of the address, as it does from time to
// time, without a signature. Such a request has the parameter ssl_check, and is answered with 200
// (docs.slack.dev/interactivity/implementing-slash-commands).
func isCertificateCheck(req *http.Request) bool {
	if req.URL.Query().Get("ssl_check") == "1" {
		return true
	}
	media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" || req.ContentLength <= 0 || req.ContentLength > maxCheck {
		return false
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxCheck))
	req.Body = io.NopCloser(bytes.NewReader(body)) // the server closes the one that was read
	form, invalid := url.ParseQuery(string(body))
	return err == nil && invalid == nil && form.Get("ssl_check") == "1" && !form.Has("command") && !form.Has("payload")
}

// readPayload returns the type and payload of a request: an event in JSON, or a form with a command or
// an interaction. A command's fields become JSON, as over a socket.
func readPayload(contentType string, body []byte) (kind string, payload []byte, ok bool) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return "", nil, false
	}
	if media == "application/json" {
		return kindEvent, body, json.Valid(body)
	}
	form, err := url.ParseQuery(string(body))
	if media != "application/x-www-form-urlencoded" || err != nil {
		return "", nil, false
	}
	if form.Has("payload") {
		return kindInteractive, []byte(form.Get("payload")), true
	}
	fields := make(map[string]string, len(form))
	for key, values := range form {
		fields[key] = values[0]
	}
	payload, err = json.Marshal(fields)
	return kindCommand, payload, err == nil && form.Has("command")
}

func writeJSON(w http.ResponseWriter, v map[string]string) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// modelTimeout bounds how long a model's answer is held back.
const modelTimeout = 2 * time.Minute

// modelTap answers requests to the model.
type modelTap struct{ *player }

// Transport implements [retry.Tap].
func (m modelTap) Transport(http.RoundTripper) http.RoundTripper { return m }

// Frame implements [retry.Tap].
func (modelTap) Frame(bool, []byte) {}

// RoundTrip answers as recorded, once as many events have been sent as before the recorded answer.
func (m modelTap) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		if err := errors.Join(err, req.Body.Close()); err != nil {
			return nil, err
		}
	}
	a := m.choose(req, m.EncodeBody(req.Header.Get("Content-Type"), body))
	if a == nil {
		return newResponse(req, http.StatusBadRequest, "application/json", json.RawMessage(`{"error":{"message":"the recording has no more answers"}}`)), nil
	}
	m.wait(req.Context(), modelTimeout, func() bool {
		return m.played == len(m.events) || m.events[m.played].at.After(a.EndedAt)
	})
	if a.Error != "" { // the connection broke, or the bot did not want the rest
		m.wait(req.Context(), m.Quiet, func() bool { return false })
		return nil, errors.New(a.Error)
	}
	return newResponse(req, a.Status, a.MediaType, a.Response), nil
}

// choose finds the recorded answer to a request: one to a request with the same last message, or else
// of the same form, or else the next one.
func (m modelTap) choose(req *http.Request, body json.RawMessage) (best *modelRequest) {
	roles, last, _ := describeRequest(body)
	m.mu.Lock()
	defer m.mu.Unlock()
	_, talk := modelBaseURL(req.URL.Path) // other requests query the model's properties
	rank, number := 0, 0
	for i, a := range m.requests {
		if address, _, _ := strings.Cut(a.URL, "?"); a.used || a.Method != req.Method || !strings.HasSuffix(address, req.URL.Path) {
			continue
		}
		now := 1
		if was, end, _ := describeRequest(a.Request); was == roles && end == last {
			now = 3
		} else if was == roles {
			now = 2
		}
		if now > rank {
			best, rank, number = a, now, i+1
		}
	}
	switch {
	case !talk:
	case best == nil:
		m.differences = append(m.differences, fmt.Sprintf("model: the request is not recorded: %s %s, %s", req.Method, req.URL.Path, roles))
	case rank == 1:
		was, _, _ := describeRequest(best.Request)
		m.differences = append(m.differences, fmt.Sprintf("model, request %d: recorded with the messages [%s], now with [%s]", number, was, roles))
		fallthrough
	default:
		best.used = true
	}
	return best
}

// newResponse makes a response from a recorded one.
func newResponse(req *http.Request, status int, kind string, recorded json.RawMessage) *http.Response {
	data := []byte(recorded)
	var text string
	if json.Unmarshal(recorded, &text) == nil {
		data = []byte(text)
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(data)), ContentLength: int64(len(data)), Request: req,
	}
}

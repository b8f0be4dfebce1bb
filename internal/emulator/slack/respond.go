package slack

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const commandsPath = "/commands/"

// response is the right to answer a command or a press at its response_url.
type response struct {
	channel *channel
	user    string
	pressed *message // whose button was pressed, if any
	made    time.Time
	used    int
}

// invite makes the trigger and the response_url of a command or a press.
func (s *Server) invite(c *channel, user string, pressed *message) (trigger, address string) {
	key := s.id("R")
	if len(s.responses) > 10_000 {
		clear(s.responses) // they are all long over
	}
	s.responses[key] = &response{channel: c, user: user, pressed: pressed, made: s.cfg.Now()}
	return "13345224609.738474920." + strings.ToLower(key), s.files.base + commandsPath + s.cfg.Team + "/" + key + "/secret"
}

// serveResponse takes an answer at a response_url: five of them within 30 minutes
// (docs.slack.dev/interactivity/handling-user-interaction). The words of its refusals are
// assumed.
func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) {
	if _, over := s.hub.Meet(s.Faults, w, r, "response", ""); over {
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, commandsPath), "/")
	var body answer
	if err := decodeObject(w, r, &body); err != nil || len(parts) != 3 {
		http.Error(w, "invalid_payload", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := s.responses[parts[1]]
	switch {
	case resp == nil || s.cfg.Now().Sub(resp.made) > responseAge:
		http.Error(w, "expired_url", http.StatusNotFound)
	case resp.used >= maxResponses:
		http.Error(w, "used_url", http.StatusNotFound)
	case body.Text == "" && len(body.Blocks) == 0:
		http.Error(w, "no_text", http.StatusBadRequest)
	case len(body.Blocks) > 0 && checkBlocks(body.Blocks, maxBlocks) != nil:
		http.Error(w, "invalid_blocks", http.StatusBadRequest)
	default:
		resp.used++
		if body.Replace && resp.pressed != nil {
			s.replace(resp.channel, resp.pressed, body)
		} else {
			s.show(resp, body)
		}
		_, _ = io.WriteString(w, "ok")
	}
}

// answer is what an app answers to a command: at once with the acknowledgement, or
// later at the response_url.
type answer struct {
	Type    string          `json:"response_type"`
	Text    string          `json:"text"`
	Blocks  json.RawMessage `json:"blocks"`
	Replace bool            `json:"replace_original"`
}

func (s *Server) show(r *response, a answer) {
	m := &message{user: s.cfg.BotUser, bot: true, text: a.Text, blocks: a.Blocks}
	if r.pressed != nil {
		m.parent = r.pressed.parent
	}
	if a.Type != "in_channel" {
		m.ephemeral = r.user
	}
	s.add(r.channel, m)
}

// replace changes the message whose button was pressed.
func (s *Server) replace(c *channel, m *message, a answer) {
	m.edits = append(m.edits, Edit{At: s.cfg.Now(), Text: m.text})
	m.text, m.blocks, m.edited = a.Text, a.Blocks, s.cfg.Now()
	s.emit(Event{Kind: EventEdit, Chat: c.id, Message: m.ts}, c, m)
}

// respond shows the payload of an acknowledged command to whoever typed it.
func (s *Server) respond(e *envelope, payload json.RawMessage) {
	var a answer
	if e.kind != kindCommand || e.acks != 1 || len(payload) == 0 || json.Unmarshal(payload, &a) != nil || a.Text == "" {
		return
	}
	var command struct {
		User string `json:"user_id"`
	}
	if c := s.channels[e.channel]; c != nil && json.Unmarshal(e.payload, &command) == nil {
		s.show(&response{channel: c, user: command.User}, a)
	}
}

// Sign returns the headers of a request with this body, posted at a time.
func (s *Server) Sign(body []byte, at time.Time) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(s.cfg.SigningSecret))
	_, _ = fmt.Fprintf(mac, "v0:%s:%s", stamp, body) // a hash takes everything
	h := http.Header{}
	h.Set("X-Slack-Request-Timestamp", stamp)
	h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return h
}

// post posts an envelope to EventsURL. Server.mu is held; the answer comes later.
func (s *Server) post(e *envelope) {
	body, kind := []byte(e.payload), "application/json"
	if e.kind != kindEvent {
		kind = "application/x-www-form-urlencoded"
		body = []byte(form(e))
	}
	header := s.Sign(body, s.cfg.Now())
	header.Set("Content-Type", kind)
	if e.attempt > 1 {
		header.Set("X-Slack-Retry-Num", strconv.Itoa(e.attempt-1))
		header.Set("X-Slack-Retry-Reason", "http_error")
	}
	s.life.Go(func() {
		reply, err := s.request(body, header)
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case s.life.Closed():
		case err == nil:
			s.acked(e.id, reply)
		case e.state == Delivered:
			s.log.Debug("event not taken", "err", err)
			s.failed(e)
		}
	})
}

// form is how commands and presses are posted.
func form(e *envelope) string {
	if e.kind == kindInteractive {
		return url.Values{"payload": {string(e.payload)}}.Encode()
	}
	var fields map[string]string
	values := url.Values{}
	if json.Unmarshal(e.payload, &fields) == nil {
		for key, v := range fields {
			values.Set(key, v)
		}
	}
	return values.Encode()
}

func (s *Server) request(body []byte, header http.Header) (reply []byte, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	s.life.Go(func() {
		select {
		case <-s.life.Done():
			cancel()
		case <-stop:
		}
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.EventsURL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("slack emulator: post event: %w", err)
	}
	req.Header = header
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("slack emulator: post event: %w", err)
	}
	reply, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("slack emulator: read answer to event: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("slack emulator: event answered with %s", resp.Status)
	}
	return reply, nil
}

// VerifyURL asks EventsURL to prove that it is the app's, as the service does when
// the address is set.
func (s *Server) VerifyURL() error {
	body := []byte(`{"token":"verification","challenge":"3eZbrw1aB10FEM","type":"url_verification"}`)
	header := s.Sign(body, s.cfg.Now())
	header.Set("Content-Type", "application/json")
	reply, err := s.request(body, header)
	if err != nil {
		return err
	}
	if !bytes.Contains(reply, []byte("3eZbrw1aB10FEM")) {
		return errors.New("slack emulator: the challenge was not answered")
	}
	return nil
}

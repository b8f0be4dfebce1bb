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

// modelPatience bounds how long a model's answer is held back.
const modelPatience = 2 * time.Minute

// modelTap answers for the model.
type modelTap struct{ *player }

// Transport implements [retry.Tap].
func (m modelTap) Transport(http.RoundTripper) http.RoundTripper { return m }

// Frame implements [retry.Tap].
func (modelTap) Frame(bool, []byte) {}

// RoundTrip answers as recorded, once as much has been sent as then.
func (m modelTap) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		if err := errors.Join(err, req.Body.Close()); err != nil {
			return nil, err
		}
	}
	a := m.choose(req, m.Body(req.Header.Get("Content-Type"), body))
	if a == nil {
		return answer(req, http.StatusBadRequest, "application/json", json.RawMessage(`{"error":{"message":"the recording has no more answers"}}`)), nil
	}
	m.wait(req.Context(), modelPatience, func() bool {
		return m.fed == len(m.events) || m.events[m.fed].at.After(a.Ended)
	})
	if a.Error != "" { // the connection broke, or the bot did not want the rest
		m.wait(req.Context(), m.Quiet, func() bool { return false })
		return nil, errors.New(a.Error)
	}
	return answer(req, a.Status, a.Type, a.Response), nil
}

// choose finds the recorded answer to a request: with the same last message, else of the same
// form, else the next one.
func (m modelTap) choose(req *http.Request, body json.RawMessage) (best *asked) {
	roles, last, _ := conversation(body)
	m.mu.Lock()
	defer m.mu.Unlock()
	_, talk := cutPath(req.URL.Path) // other requests are about the model itself
	rank, number := 0, 0
	for i, a := range m.asked {
		if address, _, _ := strings.Cut(a.URL, "?"); a.used || a.Method != req.Method || !strings.HasSuffix(address, req.URL.Path) {
			continue
		}
		now := 1
		if was, end, _ := conversation(a.Request); was == roles && end == last {
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
		m.other = append(m.other, fmt.Sprintf("model: asked for what is not recorded: %s %s, %s", req.Method, req.URL.Path, roles))
	case rank == 1:
		was, _, _ := conversation(best.Request)
		m.other = append(m.other, fmt.Sprintf("model, request %d: recorded with the messages [%s], now with [%s]", number, was, roles))
		fallthrough
	default:
		best.used = true
	}
	return best
}

// answer makes a response from a recorded one.
func answer(req *http.Request, status int, kind string, recorded json.RawMessage) *http.Response {
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

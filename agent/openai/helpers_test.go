package openai_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"oneclaw/agent"
	"oneclaw/agent/openai"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write the table of docs/live.md")
	goleak.VerifyTestMain(m)
}

// playedServer is a server that gives one answer after another and remembers what it
// was sent. It stands behind the HTTP client, so that time can be a test's own.
type playedServer struct {
	t        *testing.T
	answers  []answer
	bodies   []string
	requests []*http.Request
}

type answer func(req *http.Request) (*http.Response, error)

func (p *playedServer) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		p.t.Error(err)
	}
	if int64(len(body)) != req.ContentLength {
		p.t.Errorf("content length %d, body of %d", req.ContentLength, len(body))
	}
	if !json.Valid(body) {
		p.t.Errorf("request %q", body)
	}
	p.bodies, p.requests = append(p.bodies, string(body)), append(p.requests, req)
	if len(p.answers) == 0 {
		return nil, errors.New("no more answers")
	}
	next := p.answers[0]
	p.answers = p.answers[1:]
	resp, err := next(req)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

func respond(status int, kind, body string, headers ...string) answer {
	return func(*http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {kind}}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// refusal is an error as OpenAI words it.
func refusal(status int, code, message string, headers ...string) answer {
	body, err := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "some_type", "code": code}})
	if err != nil {
		panic(err)
	}
	return respond(status, "application/json", string(body), headers...)
}

// stream is a reply as events.
func stream(events ...string) answer {
	return respond(200, "text/event-stream", "data: "+strings.Join(append(events, ""), "\n\ndata: ")+"[DONE]\n\n")
}

const (
	hello = `{"model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"}}]}`
	lo    = `{"model":"m-1","choices":[{"index":0,"delta":{"content":"lo"}}]}`
	stop  = `{"model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	usage = `{"model":"m-1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":64}}}`
)

const key = "sk-very-secret"

func client(t *testing.T, cfg openai.Config, answers ...answer) (*openai.Client, *playedServer) {
	t.Helper()
	p := &playedServer{t: t, answers: answers}
	cfg.HTTPClient = &http.Client{Transport: p}
	if cfg.BaseURL == "" {
		cfg.BaseURL = "http://model.test/v1/"
	}
	if cfg.Model == "" {
		cfg.Model = "test-model"
	}
	cfg.APIKey = key
	c, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c, p
}

// carriedBy is the reasoning that the model of [client] carries, under the name of a field.
func carriedBy(field, text string) string {
	sum := sha256.Sum256([]byte("http://model.test/v1\ntest-model"))
	return "carried/2 " + hex.EncodeToString(sum[:8]) + " " + field + "\n" + text
}

func question() agent.Request {
	return agent.Request{System: "You help.", Messages: []agent.Message{{Role: agent.RoleUser, Text: "Hi"}}}
}

func kindOf(t *testing.T, err error) *agent.ModelError {
	t.Helper()
	var failure *agent.ModelError
	if !errors.As(err, &failure) {
		t.Fatalf("error %v is no ModelError", err)
	}
	if strings.Contains(err.Error(), key) {
		t.Errorf("the error holds the key: %v", err)
	}
	return failure
}

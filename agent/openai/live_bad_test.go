package openai_test

import (
	"flag"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"oneclaw/agent"
	emulator "oneclaw/internal/emulator/openai"
)

// coldStart is how long a first byte may take in the tests of a server that is not ready.
const coldStart = 400 * time.Millisecond

// badAnswers are what proxies, wrong addresses and broken servers answer.
func badAnswers() map[string]badAnswer {
	says := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	return map[string]badAnswer{
		"a page":            {says(200, "text/html; charset=utf-8", "<!doctype html><title>Sign in</title>"), agent.KindUnavailable, "web page"},
		"a page of a proxy": {says(502, "text/html", "<html><h1>502 Bad Gateway</h1></html>"), agent.KindUnavailable, "502"},
		"nothing":           {says(200, "text/event-stream", ""), agent.KindUnavailable, "without a finish reason"},
		"nothing at all":    {says(200, "application/json", ""), agent.KindUnavailable, "without a finish reason"},
		"half a JSON":       {says(200, "application/json", `{"choices":[{"index":0,"message":{"content":"Hel`), agent.KindUnavailable, "decode"},
		"half an event":     {says(200, "text/event-stream", "data: {\"choices\":[{\"index\":0,\"del"), agent.KindUnavailable, "decode"},
		"another language":  {says(400, "application/json", `{"error":{"code":"1210","message":"API 调用参数有误，请检查文档。"}}`), agent.KindRejected, "调用参数有误"},
		"flat":              {says(500, "application/json", `{"object":"error","message":"内部错误","type":"x","code":5}`), agent.KindUnavailable, "内部错误"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.test/login", http.StatusFound)
		}, agent.KindUnavailable, "redirects to http://elsewhere.test"},
		"a stack": {says(500, "text/plain", "Traceback (most recent call last):\n  File \"x.py\", line 1"), agent.KindUnavailable, "Traceback"},
	}
}

const liveDocument = "../../docs/live.md"

// TestLiveConversations holds every conversation with every service.
func TestLiveConversations(t *testing.T) {
	for _, p := range emulator.Profiles() {
		for _, c := range conversations {
			t.Run(p.Name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				c.hold(t, p)
			})
		}
	}
}

// document compares a part of a document with what it has to be, or writes it.
func document(t *testing.T, file, part, want string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+part+" -->\n", "<!-- end of "+part+" -->\n"
	head, rest, ok := strings.Cut(string(data), begin)
	got, tail, ends := strings.Cut(rest, end)
	switch {
	case !ok || !ends:
		t.Fatalf("%s has no part %q", file, part)
	case got == want:
	case flag.Lookup("update").Value.String() == "true":
		if err := os.WriteFile(file, []byte(head+begin+want+end+tail), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the part %q of %s is not what the tests find; -update writes it. Want:\n%s", part, file, want)
	}
}

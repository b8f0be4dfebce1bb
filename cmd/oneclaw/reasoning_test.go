package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"oneclaw/internal/emulator/openai"
)

// TestNothingButAnswersReachesAChat runs the bot on a model server that thinks aloud,
// leaves signs of its protocol in the text, and fails with pages and stacks.
func TestNothingButAnswersReachesAChat(t *testing.T) {
	t.Parallel()
	answers := map[string]func(http.ResponseWriter){
		"page": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "<!doctype html><html><body><h1>INNER PAGE</h1><pre>goroutine 1 [running]:\nmain.main()</pre></body></html>")
		},
		"stack": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"error":{"message":"Traceback (most recent call last): INNER.py line 1","type":"server_error"}}`)
		},
		"beside":   stream(`{"reasoning_content":"INNER THOUGHT"}`, `{"content":"Said "}`, `{"content":"aloud."}`),
		"inside":   stream(`{"content":"<think>INNER"}`, `{"content":" THOUGHT</think>Said aloud.<|im_"}`, `{"content":"end|>"}`),
		"channels": stream(`{"content":"<|channel|>analysis<|message|>INNER THOUGHT<|end|><|start|>assistant<|channel|>final<|message|>Said aloud.<|return|>"}`),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for name, answer := range answers {
			if strings.Contains(string(body), `"next: `+name) {
				answer(w)
				return
			}
		}
		http.Error(w, "what?", http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	w := newHarness(t, openai.Offline{})
	w.env["OPENAI_BASE_URL"] = server.URL + "/v1"
	bot := w.run()
	told := regexp.MustCompile(`(?s)^(The language model did not accept your message\.|I can't answer right now\.)[^\n]*$`)
	for name := range answers {
		got := w.ask(bot, w.person(name), "next: "+name, nil)
		if name == "page" || name == "stack" {
			if !told.MatchString(got) {
				t.Errorf("%s: a chat was told %q", name, got)
			}
		} else if got != "Said aloud." {
			t.Errorf("%s: a chat was told %q", name, got)
		}
	}
	for _, cause := range []string{"INNER PAGE", "INNER.py"} { // the operator finds them
		bot.out.await(t, cause)
	}
}

// stream makes a streamed reply of deltas.
func stream(deltas ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, d := range deltas {
			_, _ = io.WriteString(w, `data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":`+d+"}]}\n\n")
		}
		_, _ = io.WriteString(w, `data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}
}

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/sandbox"
)

// One user's scripts that never end fail no script of another.
func TestFourLoopsFailNobodyElse(t *testing.T) {
	t.Parallel()
	running := make(chan struct{}, 8)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		running <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	brain := openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		last := req.Messages[len(req.Messages)-1]
		if last.Role != "user" {
			return openai.Reply{Text: "Then: " + last.Content}, nil
		}
		if strings.Contains(last.Content, "add") {
			return openai.Reply{Calls: []openai.ToolCall{{ID: "call_0", Name: "js_eval", Arguments: `{"code": "1 + 1"}`}}}, nil
		}
		var loops []openai.ToolCall
		for n := range 4 {
			arguments := fmt.Sprintf(`{"code": "await fetch('%s'); %d", "timeout_seconds": 120}`, server.URL, n)
			loops = append(loops, openai.ToolCall{ID: fmt.Sprint("call_", n), Name: "js_eval", Arguments: arguments})
		}
		return openai.Reply{Calls: loops}, nil
	})
	w := newHarness(t, brain)
	w.env["ONECLAW_TOOLS_ALLOW_PRIVATE"] = "127.0.0.1/32"
	ann, bob := w.person("Ann"), w.person("Bob")
	bot := w.run()
	defer bot.kill(syscall.SIGKILL) // Bob's scripts go on.
	w.say(bob, "loop", nil)
	for range sandbox.DefaultOwnerRuns {
		<-running
	}
	if got := w.ask(bot, ann, "add", nil); got != "Then: 2" {
		t.Errorf("Ann is told %q", got)
	}
	if n := len(running); n > 0 {
		t.Errorf("%d of Bob's scripts run at once", n+sandbox.DefaultOwnerRuns)
	}
}

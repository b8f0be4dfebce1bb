package main

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"

	"oneclaw/bridge/turn"
	"oneclaw/internal/emulator/openai"
)

// TestARefusedQuestionIsNotSentAgain: a content filter refuses whatever holds a
// question, so that one must not be in the requests behind it, after a restart neither.
//
// A refused question is not sent again.
func TestARefusedQuestionIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		if strings.Contains(string(req.MessagesJSON), "forbidden") {
			return openai.Reply{Err: &openai.Error{Status: 400, Type: "invalid_request_error", Code: "content_filter", Message: "The prompt was filtered."}}, nil
		}
		last := req.Messages[len(req.Messages)-1]
		if last.Content == "load" {
			return openai.Reply{Calls: []openai.ToolCall{{ID: "1", Name: "load_tool_group", Arguments: `{"group_name":"pdf"}`}}}, nil
		}
		return openai.Reply{Text: "re: " + last.Content[:min(len(last.Content), 20)]}, nil
	}))
	ann := w.person("Ann")
	bot := w.run()
	w.ask(bot, ann, "load", nil)
	wantIn(t, w.ask(bot, ann, "forbidden words", nil), turn.NoticeLeftOut)
	check := func(text string) {
		t.Helper()
		if got := w.ask(bot, ann, text, nil); got != "re: "+text {
			t.Errorf("%q is answered with %q", text, got)
		}
		all := w.model.Requests()
		offered := all[len(all)-1].Tools
		if !slices.ContainsFunc(offered, func(tool openai.Tool) bool { return tool.Name == "pdf_info" }) {
			t.Error("the group that was loaded before is not offered")
		}
	}
	check("first")
	bot.kill(syscall.SIGTERM)
	bot = w.run()
	check("second")
	bot.kill(syscall.SIGTERM)
	out, err := command(t.Context(), t, w.env, "history", "telegram:1001").CombinedOutput()
	if err != nil {
		t.Fatalf("history: %v: %s", err, out)
	}
	wantIn(t, string(out), "forbidden words", "refused")
}

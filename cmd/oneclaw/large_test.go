package main

import (
	"context"
	"strings"
	"testing"

	"oneclaw/internal/emulator/openai"
)

// TestAttack07AReplyLargerThanARecordIsPaidForOnce: 1.5 MB of "<" take more than 8 MiB in
// a record.
func TestAttack07AReplyLargerThanARecordIsPaidForOnce(t *testing.T) {
	large := strings.Repeat("<", 1_500_000)
	w := newTown(t, openai.BrainFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		if last := req.Messages[len(req.Messages)-1].Content; last != "much" {
			return openai.Reply{Text: "re: " + last}, nil
		}
		return openai.Reply{Text: large}, nil
	}))
	ann := w.person("Ann")
	bot := w.run()
	wantIn(t, w.ask(bot, ann, "much", nil), "too long for me to keep", "Incident")
	if got := w.ask(bot, ann, "next", nil); got != "re: next" {
		t.Errorf("the next message got %.100q", got)
	}
	if n := w.model.Count(); n != 2 {
		t.Errorf("the model was asked %d times, want 2", n)
	}
}

package bridge_test

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// What leaves for a chat is masked, whoever made it; what people wrote is kept as it is.
func TestWhatIsSentIsMasked(t *testing.T) {
	t.Parallel()
	hide := func(text string) string { return strings.ReplaceAll(text, "SECRET", "••••") }
	broken := true
	r := newHarness(t, echo, func(c *bridge.Config) {
		c.Redact = hide
		c.Commands = []bridge.Command{{
			CommandInfo: chats.CommandInfo{Name: "leak"},
			Run:         func(context.Context, bridge.CommandCall) (string, error) { return "here is SECRET", nil },
		}}
	})
	r.platform.fail = func(_ int, arrived bool) error {
		if arrived && broken {
			broken = false
			return &chats.SendError{Outcome: chats.Unknown, Err: errSecret{}}
		}
		return nil
	}
	r.accept(direct("1", "my SECRET\fand SECRET"))
	r.platform.wait(t, 3)
	r.accept(direct("2", "/leak"))
	got := texts(r.platform.wait(t, 4))
	if want := []string{"re: my ••••", "re: my ••••", "and ••••", "here is ••••"}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	r.stop()
	for entry, err := range r.cfg.Store.List(context.Background(), storage.Range{Prefix: "job/"}) {
		var job struct {
			Message chats.Message   `json:"message"`
			Work    turn.Work       `json:"work"`   // of an open one
			Answer  receipts.Answer `json:"answer"` // of a receipt
		}
		if err != nil || json.Unmarshal(entry.Value, &job) != nil {
			t.Fatal(err)
		}
		for _, p := range append(job.Work.Parts, job.Answer.Parts...) {
			if strings.Contains(p.Text+p.Plain+p.Error, "SECRET") {
				t.Errorf("the job %s keeps %+v", entry.Key, p)
			}
		}
		if job.Message.ID == "1" && job.Message.Text != "my SECRET\fand SECRET" {
			t.Errorf("what the user wrote became %q", job.Message.Text)
		}
	}
}

type errSecret struct{}

func (errSecret) Error() string { return "at SECRET" }

// File names and captions are masked too.
func TestNoticesOfFilesAreMasked(t *testing.T) {
	think := func(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			if yield(agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "1", Name: "draw", Arguments: "{}"}}}, nil) &&
				yield(agent.Message{Role: agent.RoleTool, CallID: "1", Tool: "draw", Status: agent.StatusOK, Files: []toolgroups.File{{Path: "SECRET.png"}}}, nil) {
				yield(agent.Message{Role: agent.RoleAssistant, Text: "done", Final: true}, nil)
			}
		}
	}
	r := newHarness(t, think, func(c *bridge.Config) {
		c.Redact = func(text string) string { return strings.ReplaceAll(text, "SECRET", "••••") }
	})
	r.accept(direct("1", "draw"))
	if got := texts(r.platform.wait(t, 2)); !strings.Contains(got[1], "••••.png could not be sent") {
		t.Errorf("sent %q", got)
	}
}

// A card shows no secret; what was allowed is the exact call all the same.
func TestCardsAreMaskedAndTheCallIsExact(t *testing.T) {
	w := &execTools{}
	r := w.guarded(t, func(c *bridge.Config) {
		c.Redact = func(text string) string { return strings.ReplaceAll(text, "SECRET", "••••") }
	})
	r.accept(direct("1", "run login SECRET"))
	card := r.platform.wait(t, 1)[0]
	if strings.Contains(card.text, "SECRET") || !strings.Contains(card.text, "login ••••") {
		t.Errorf("the card shows %q", card.text)
	}
	r.accept(pressOn(card, "p1", "1", card.button(t, "Allow once")))
	if answer := r.platform.wait(t, 2)[1].text; !strings.HasPrefix(answer, "ran login ••••") || !slices.Equal(w.commands(), []string{"login SECRET"}) {
		t.Errorf("answer %q, ran %q", answer, w.commands())
	}
}

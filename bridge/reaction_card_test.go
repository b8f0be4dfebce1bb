package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/toolgroups"
)

// reacting is a platform that reports reactions, except in the chats of deaf.
type reacting struct {
	*platform
	deaf []string
}

func (p reacting) ReportsReactions(_ context.Context, chat chats.Chat) bool {
	return !slices.Contains(p.deaf, chat.ID)
}

// IsChat implements [chats.ChatSender].
func (reacting) IsChat(user string) bool { return strings.HasPrefix(user, "-") }

// reactions has the platform report them to a bot that Ann (1), Bob (2) and the administrator (9) may talk to.
func reactions(deaf ...string) func(*bridge.Config) {
	return func(c *bridge.Config) {
		if fake, is := c.Platforms[0].(*platform); is { // otherwise another replica runs with it
			c.Platforms = []chats.Platform{reacting{fake, deaf}}
		}
		c.Access = access.Access{Allow: []string{"fake:1", "fake:2"}, Admins: []string{"fake:9"}}
	}
}

// reactTo is a reaction as a platform delivers it.
func reactTo(s sent, user, emoji string, second int64) chats.Message {
	m := chats.NewFeedback(s.to.Chat.WithoutThread(), s.id, user, chats.FeedbackOf(emoji), time.Unix(second, 0))
	m.Emoji, m.UserName, m.Direct = emoji, "Ann", s.to.Chat.ID == "1"
	return m
}

const hint = "Or react: 👍, ✅ or ❤ is **Allow once**, 👎 or ❌ is **Deny**."

func TestAReactionDecidesACard(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		emoji, by, outcome, answer string
		ran                        int
	}{
		{"👍", "1", "✅ **Allowed once**", "ran a", 1},
		{"✅", "1", "✅ **Allowed once**", "ran a", 1},
		{"❤", "9", "✅ **Allowed once**", "ran a", 1},
		{"👎", "1", "❌ **Denied**", notAllowed + "the person who asked said no", 0},
		{"❌", "9", "❌ **Denied**", notAllowed + "an administrator said no", 0},
	} {
		t.Run(tt.emoji+" by "+tt.by, func(t *testing.T) {
			t.Parallel()
			w := &execTools{lasts: true}
			r := w.guarded(t, reactions())
			asked := group("1", "1", "run a")
			asked.Chat.Thread = "t"
			r.accept(asked)
			card := r.platform.wait(t, 1)[0]
			if !strings.HasSuffix(card.text, "\n\n"+hint) {
				t.Errorf("the card says %q", card.text)
			}
			// It is delivered twice, and then the person thinks otherwise: the first decision stands.
			once := reactTo(card, tt.by, tt.emoji, 1)
			r.accept(once)
			r.accept(once, reactTo(card, tt.by, "👎", 2), reactTo(card, tt.by, "👍", 3))
			all := r.platform.until(t, "the decision", func(all []sent) bool {
				return len(all) == 2 && all[0].buttons == nil && strings.Contains(all[0].text, tt.outcome)
			})
			if !strings.HasPrefix(all[1].text, tt.answer) || strings.Contains(all[0].text, hint) || all[1].to.Chat != asked.Chat {
				t.Errorf("shown %+v", all)
			}
			taken := chats.NewFeedback(asked.Chat.WithoutThread(), card.id, tt.by, chats.FeedbackNotGood, time.Unix(4, 0))
			taken.Emoji = tt.emoji
			r.accept(taken, group("2", "1", "hello"))
			if all = r.platform.wait(t, 3); len(w.commands()) != tt.ran || all[2].text != "re: hello" {
				t.Errorf("ran %q, then %+v", w.commands(), all)
			}
			r.platform.mu.Lock()
			defer r.platform.mu.Unlock()
			if len(r.platform.toasts) > 0 {
				t.Errorf("toasts %q", r.platform.toasts)
			}
		})
	}
}

// Each does what it says and nothing else: a press of the button decides afterwards.
func TestAReactionDecidesNothing(t *testing.T) {
	t.Parallel()
	on := func(user, emoji string) func(sent) chats.Message {
		return func(s sent) chats.Message { return reactTo(s, user, emoji, 1) }
	}
	admins := func(c *bridge.Config) {
		c.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy {
			return interact.Policy{Approvers: interact.ApproversAdmins}
		}
	}
	requester := func(c *bridge.Config) {
		c.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy {
			return interact.Policy{Approvers: interact.ApproversRequester}
		}
	}
	for name, tt := range map[string]struct {
		role   toolgroups.Role
		config func(*bridge.Config)
		deaf   bool
		says   bool // the card says what a reaction does
		asks   string
		by     string // presses Deny, or Allow once if empty
		react  func(sent) chats.Message
	}{
		"of another member":                         {says: true, react: on("2", "👍")},
		"of another member who refuses":             {says: true, react: on("2", "👎")},
		"of an administrator who may not decide":    {says: true, config: requester, react: on("9", "👍")},
		"of a stranger":                             {says: true, react: on("3", "👍")},
		"in the name of a chat":                     {says: true, react: on("-5", "👍")},
		"on what an administrator has to decide":    {config: admins, by: "9", react: on("9", "👍")},
		"on what the requester may only refuse":     {config: admins, by: "9", react: on("1", "👎")},
		"on a tool for administrators":              {role: toolgroups.RoleAdmin, asks: "9", by: "9", react: on("9", "👍")},
		"on a tool for administrators, refusing it": {role: toolgroups.RoleAdmin, asks: "9", by: "9", react: on("9", "❌")},
		"where the card does not say so":            {deaf: true, react: on("1", "👍")},
		"with another emoji":                        {says: true, react: func(s sent) chats.Message { m := reactTo(s, "1", "🎉", 1); return m }},
		"that is taken back": {says: true, react: func(s sent) chats.Message {
			m := reactTo(s, "1", "👎", 1)
			m.Text = string(chats.FeedbackNotBad)
			return m
		}},
		"that is a rating with a button": {says: true, react: func(s sent) chats.Message {
			m := reactTo(s, "1", "👎", 1)
			m.Emoji = ""
			return m
		}},
		"on another message": {says: true, react: func(s sent) chats.Message {
			s.id = "99"
			return reactTo(s, "1", "👎", 1)
		}},
		"in another chat": {says: true, react: func(s sent) chats.Message {
			s.to.Chat.ID = "1"
			return reactTo(s, "1", "👎", 1)
		}},
		"that pretends to be a press": {says: true, react: func(s sent) chats.Message {
			return chats.Message{Chat: s.to.Chat, ID: "reaction-1", Kind: chats.KindPress, User: "1", Text: s.buttons[1][0].Data, TargetID: s.id}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &execTools{role: tt.role, lasts: true}
			change := []func(*bridge.Config){reactions()}
			if tt.deaf {
				change[0] = reactions("g")
			}
			if tt.config != nil {
				change = append(change, tt.config)
			}
			r := w.guarded(t, change...)
			asks, by := "1", "1"
			if tt.asks != "" {
				asks = tt.asks
			}
			if tt.by != "" {
				by = tt.by
			}
			r.accept(group("1", asks, "run a"))
			card := r.platform.wait(t, 1)[0]
			if says := strings.Contains(card.text, "react"); says != tt.says {
				t.Errorf("the card says %q", card.text)
			}
			if name == "that pretends to be a press" && (len(card.buttons) != 2 || card.buttons[1][0].Label != "Allow here until /clear") {
				t.Fatalf("buttons %+v", card.buttons)
			}
			for i := range 2 { // perhaps before the card is recorded as shown, and after that
				r.accept(tt.react(card))
				press := pressOn(card, fmt.Sprint("p", i), "2", card.button(t, "Allow once"))
				r.accept(press)
				if got := r.platform.toast(t, press.ID); !strings.HasPrefix(got, "Only ") {
					t.Errorf("toast of somebody who may not decide: %q", got)
				}
			}
			r.accept(pressOn(card, "last", by, card.button(t, "Allow once")))
			if got := r.platform.toast(t, "last"); got != "Allowed once." {
				t.Errorf("toast %q", got)
			}
			if answer := r.platform.until(t, "the answer", func(all []sent) bool { return len(all) > 1 })[1].text; answer != "ran a" {
				t.Errorf("answer %q", answer)
			}
			r.stop()
			if n := len(w.commands()); n != 1 {
				t.Errorf("ran %d times", n)
			}
		})
	}
}

// A reaction stays below a card that changes, so that it answers the question that it was first shown with alone.
func TestAReactionAnswersTheFirstQuestionOfAForm(t *testing.T) {
	t.Parallel()
	surely := yesOrNo
	surely.Name, surely.Title = "surely", "Really?"
	for _, tt := range []struct {
		name          string
		fields        []toolgroups.Field
		emoji, answer string
	}{
		{"yes", []toolgroups.Field{yesOrNo}, "👍", `accept {"sure":true}`},
		{"no", []toolgroups.Field{yesOrNo}, "👎", `accept {"sure":false}`},
		{"agreed", nil, "👍", "accept null"},
		{"declined", nil, "❌", "decline null"},
		{"yes, then no with a button", []toolgroups.Field{yesOrNo, surely}, "👍", `accept {"sure":true,"surely":false}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := &curious{asks: form(tt.fields...), effect: toolgroups.Consequential}
			r := c.rig(t, reactions())
			r.accept(group("1", "1", "run x"))
			card := r.platform.wait(t, 1)[0]
			if !strings.Contains(card.text, "\n\nOr react: 👍, ✅ or ❤ is **") {
				t.Errorf("the card says %q", card.text)
			}
			r.accept(reactTo(card, "2", tt.emoji, 1), reactTo(card, "9", tt.emoji, 2)) // only the requester answers
			r.accept(reactTo(card, "1", tt.emoji, 3))
			if len(tt.fields) > 1 {
				card = r.platform.until(t, "the next field", func(all []sent) bool { return strings.Contains(all[0].text, "**Really?** (2 of 2)") })[0]
				if strings.Contains(card.text, "react") {
					t.Errorf("the changed card says %q", card.text)
				}
				r.accept(reactTo(card, "1", tt.emoji, 3), reactTo(card, "1", tt.emoji, 4), pressOn(card, "p", "1", card.button(t, "No")))
				r.platform.until(t, "the form to be shown", func(all []sent) bool { return strings.Contains(all[0].text, "Shall I send this") || len(all) > 1 })
				if card = r.platform.shown()[0]; len(card.buttons) > 0 {
					r.accept(reactTo(card, "1", "👍", 5), pressOn(card, "q", "1", card.button(t, "Send")))
				}
			}
			if answer := r.platform.wait(t, 2)[1].text; answer != tt.answer {
				t.Errorf("answer %q", answer)
			}
		})
	}
}

func TestAReactionOutlivesARestart(t *testing.T) {
	t.Parallel()
	w := &execTools{}
	r := w.guarded(t, reactions())
	r.accept(group("1", "1", "run a"))
	card := r.platform.wait(t, 1)[0]
	r.restart()
	r.accept(reactTo(card, "1", "👍", 1))
	if answer := r.platform.wait(t, 2)[1].text; answer != "ran a" {
		t.Errorf("answer %q", answer)
	}
	r.did(t, "allow a call fake:1 Ann fake:g exec")
}

// A card that is shown again in the chat that its chat has become asks for a press.
func TestAReactionToACardThatHasMovedDecidesNothing(t *testing.T) {
	t.Parallel()
	w := &execTools{}
	r := w.guarded(t, reactions())
	asked := moved("1", "1", "run a")
	asked.Chat = oldChat
	r.accept(asked)
	old := r.platform.wait(t, 1)[0]
	r.move()
	again := r.platform.wait(t, 2)[1]
	if again.to.Chat != newChat || strings.Contains(again.text, "react") {
		t.Errorf("to %v: %q", again.to.Chat, again.text)
	}
	r.accept(reactTo(old, "1", "👎", 1))
	r.accept(reactTo(again, "1", "👎", 2), pressOn(again, "p", "1", again.button(t, "Allow once")))
	if got := r.platform.toast(t, "p"); got != "Allowed once." {
		t.Errorf("toast %q", got)
	}
}

// Any replica hears of a reaction; who owns the chat handles it, also after a takeover.
func TestAReactionIsHandledByWhoOwnsTheChat(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			v := &voter{}
			s := newSeveral(t, 2, echo, voting(v, reactions()))
			owner, other := s.sides(t, "1")
			owner.post("q", chatOne, vote())
			pass(t, 5)
			all := owner.platform.in("1")
			card := all[len(all)-1]
			if !strings.HasSuffix(card.text, "Or react: 👍, ✅ or ❤ is **Yes**.") {
				t.Errorf("the card says %q", card.text)
			}
			other.accept(reactTo(card, "1", "👍", 1))
			if taken {
				owner.stop()
			}
			pass(t, 60)
			if got := v.seen(); len(got) != 1 || got[0].Choice != "yes" || got[0].User != "fake:1" || !got[0].Direct {
				t.Errorf("presses %+v", got)
			}
			s.stop(t)
		})
	}
}

// A reaction to an answer that ends with a question is the person's reply to it, once for each person; every other rates.
func TestAReactionAnswersAQuestionOfTheBot(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var given []string
	asking := func(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			last := turn.History[len(turn.History)-1]
			mu.Lock()
			given = append(given, last.Quoted+last.Text)
			mu.Unlock()
			text := "re: " + last.Text
			switch last.Text {
			case "ask":
				text = "I have found https://evil.example/x\nShall I open it?"
			case "ask in pieces":
				text = "one\fShall I?"
			}
			yield(agent.Message{Role: agent.RoleAssistant, Text: text, Final: true}, nil)
		}
	}
	counted := &counts{of: map[queue.Metric]int{}}
	r := newHarness(t, asking, reactions(), clockAt, func(c *bridge.Config) { c.Hooks.Measure = counted.measure })
	now := time.Now()
	react := func(on sent, user, emoji string, second int) chats.Message {
		m := reactTo(on, user, emoji, 0)
		m.Time = now.Add(time.Duration(second) * time.Second)
		return m
	}
	in := func(id, text string) chats.Message {
		m := group(id, "1", text)
		m.Chat.Thread = "t"
		return m
	}
	r.accept(in("1", "ask"))
	asked := r.platform.wait(t, 1)[0]
	r.settled()
	button := react(asked, "2", "👍", 9) // Slack's buttons below an answer rate it
	button.Emoji = ""
	r.accept(react(asked, "3", "👍", 1), button) // a stranger does nothing
	r.accept(react(asked, "1", "❤", 1))
	answer := r.platform.wait(t, 2)[1]
	if answer.text != "re: (reacted with ❤)" || answer.to.Chat != asked.to.Chat || answer.to.ReplyTo != asked.id {
		t.Errorf("answer %+v", answer)
	}
	r.settled()
	r.restart()
	r.accept(react(asked, "1", "❤", 1), react(asked, "1", "👎", 2)) // once for each person
	r.accept(react(asked, "2", "👎", 3))
	if answer = r.platform.wait(t, 3)[2]; answer.text != "re: (reacted with 👎)" {
		t.Errorf("answer %+v", answer)
	}
	r.accept(in("2", "ask in pieces"))
	pieces := r.platform.wait(t, 5)
	r.settled()
	r.accept(react(pieces[3], "1", "👍", 4), react(answer, "1", "👍", 5)) // neither is a question: they rate
	clears := in("3", "/clear")
	clears.User = "9"
	r.accept(clears)
	r.platform.wait(t, 6)
	r.accept(react(pieces[4], "2", "👍", 6)) // nobody knows the question any more
	r.accept(in("4", "end"))
	r.platform.until(t, "the end", func(all []sent) bool { return all[len(all)-1].text == "re: end" })
	if counted.feedback() != [3]int{4, 0, 0} {
		t.Errorf("ratings %v", counted.feedback())
	}
	mu.Lock()
	defer mu.Unlock()
	if len(given) != 5 || !strings.Contains(given[1], "replied to, by you") || !strings.Contains(given[1], "Shall I open it?") || strings.Contains(given[1], "evil.example") {
		t.Errorf("the model got %q", given)
	}
}

// settled waits until the open jobs are closed.
func (r *harness) settled() {
	r.t.Helper()
	r.jobs(queue.OpenPrefix, func(open []queue.Job) bool { return len(open) == 0 })
}

// A card that may have been sent twice is decided by a reaction to the message that is known to show it, also if the
// reaction to the other came while it was being sent.
func TestAReactionToACopyOfACardDecidesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &voter{}
		r := newHarness(t, echo, voting(v, reactions()))
		r.platform.fail = func(n int, arrived bool) error {
			if n == 1 && arrived {
				return &chats.SendError{Outcome: chats.Unknown, Err: errors.New("lost")}
			}
			return nil
		}
		card := vote()
		card.Expires = time.Now().Add(time.Hour)
		r.post("q", chatOne, card)
		copied := r.platform.wait(t, 1)[0]
		r.accept(reactTo(copied, "1", "👍", 1))
		pass(t, 60)
		all := r.platform.shown()
		if len(all) != 2 || !all[1].repeat {
			t.Fatalf("shown %+v", all)
		}
		r.accept(reactTo(copied, "1", "👍", 2))
		pass(t, 60)
		if got := v.seen(); len(got) > 0 {
			t.Errorf("the copy was decided: %+v", got)
		}
		r.accept(reactTo(all[1], "1", "👍", 3))
		pass(t, 60)
		if got := v.seen(); len(got) != 1 || got[0].Choice != "yes" {
			t.Errorf("presses %+v", got)
		}
		r.stop()
	})
}

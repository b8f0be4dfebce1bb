package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// voter handles cards of the kind vote.
type voter struct {
	mu      sync.Mutex
	presses []interact.Press
	decide  func(interact.Press) (interact.Result, error)
}

func (v *voter) handle(_ context.Context, press interact.Press) (interact.Result, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.presses = append(v.presses, press)
	if v.decide != nil {
		return v.decide(press)
	}
	if press.Expired {
		return interact.Result{Text: "nobody voted"}, nil
	}
	return interact.Result{Toast: "thanks", Text: press.User + " chose " + press.Choice, Close: true}, nil
}

func (v *voter) seen() []interact.Press {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.presses)
}

func voting(v *voter, change ...func(*bridge.Config)) func(*bridge.Config) {
	return func(c *bridge.Config) {
		c.CardHandlers = map[string]interact.Handler{"vote": v.handle}
		c.Limits.DrainTimeout = 20 * time.Second // so that what was sent is recorded as sent
		for _, f := range change {
			f(c)
		}
	}
}

func vote() interact.Card {
	return interact.Card{Kind: "vote", Text: "Tea?", Data: json.RawMessage(`{"n":1}`), Choices: [][]interact.Choice{
		{{Label: "Yes", Value: "yes", Style: chats.StylePrimary, Reaction: chats.FeedbackGood}, {Label: "No", Value: "no"}}, {{Label: "Later", Value: "later"}},
	}}
}

var chatOne = chats.Chat{Platform: "fake", ID: "1"}

func (r *harness) post(key string, to chats.Chat, card interact.Card) {
	r.t.Helper()
	if err := r.bridge.Post(r.t.Context(), key, to, card); err != nil {
		r.t.Fatal(err)
	}
}

// pressOn is the press of a button as a platform delivers it.
func pressOn(s sent, id, user, data string) chats.Message {
	return chats.Message{
		Chat: s.to.Chat, ID: id, Kind: chats.KindPress, User: user, UserName: "Ann", Direct: s.to.Chat.ID == "1", Text: data, TargetID: s.id,
	}
}

// explains reports whether an incident is named, or is behind a button.
func (s sent) explains() bool {
	return strings.Contains(s.text, incident) || slices.ContainsFunc(slices.Concat(s.buttons...), func(b chats.Button) bool { return b.Label == "Details" })
}

func (s sent) button(t *testing.T, label string) string {
	t.Helper()
	for _, b := range slices.Concat(s.buttons...) {
		if b.Label == label {
			return b.Data
		}
	}
	t.Fatalf("no button %q under %q: %v", label, s.text, s.buttons)
	return ""
}

func TestCardIsPressedOnce(t *testing.T) {
	v := &voter{}
	r := newHarness(t, echo, voting(v))
	r.post("q:1/x", chatOne, vote())
	r.post("q:1/x", chatOne, vote())
	shown := r.platform.wait(t, 1)[0]
	if shown.text != "Tea?" || len(shown.buttons) != 2 || len(shown.buttons[0]) != 2 || shown.buttons[0][0].Style != chats.StylePrimary {
		t.Fatalf("shown: %+v", shown)
	}
	no := shown.button(t, "No")
	r.accept(pressOn(shown, "p1", "1", no), pressOn(shown, "p1", "1", no))
	r.platform.until(t, "edit", func(all []sent) bool { return all[0].text == "fake:1 chose no" && all[0].buttons == nil })
	if got := r.platform.toast(t, "p1"); got != "thanks" {
		t.Errorf("toast: %q", got)
	}
	r.accept(pressOn(shown, "p2", "1", shown.button(t, "Yes")))
	if got := r.platform.toast(t, "p2"); got != "This has already been decided." {
		t.Errorf("toast of a decided card: %q", got)
	}
	r.accept(pressOn(shown, "p1", "1", no))
	r.accept(direct("2", "hello"))
	all := r.platform.wait(t, 2)
	if all[1].text != "re: hello" {
		t.Errorf("second message: %+v", all[1])
	}
	presses := v.seen()
	if len(presses) != 1 || presses[0].Choice != "no" || presses[0].UserName != "Ann" || presses[0].Role != toolgroups.RoleUser || string(presses[0].Card.Data) != `{"n":1}` {
		t.Errorf("presses: %+v", presses)
	}
	r.stop()
	r.platform.mu.Lock()
	defer r.platform.mu.Unlock()
	if len(r.platform.sent) != 2 || len(r.platform.toasts) != 2 {
		t.Errorf("sent %v, toasts %v", r.platform.sent, r.platform.toasts)
	}
}

func TestCardRefusesForgedPresses(t *testing.T) {
	v := &voter{}
	r := newHarness(t, echo, voting(v, func(c *bridge.Config) { c.Access = access.Access{Allow: []string{"fake:1"}} }))
	r.post("a", chatOne, vote())
	r.post("b", chatOne, vote())
	all := r.platform.wait(t, 2)
	yes := all[0].button(t, "Yes")
	token, _, _ := strings.Cut(yes, "-")
	elsewhere := all[0]
	elsewhere.to.Chat.ID = "g"
	presses := map[string]chats.Message{
		"unknown token":    pressOn(all[0], "1", "1", strings.Repeat("a", len(token))+"-1-0"),
		"not a token":      pressOn(all[0], "2", "1", "/clear"),
		"wrong index":      pressOn(all[0], "3", "1", token+"-1-3"),
		"another message":  pressOn(all[1], "4", "1", yes),
		"another chat":     pressOn(elsewhere, "5", "1", yes),
		"another version":  pressOn(all[0], "6", "1", token+"-2-0"),
		"a stranger":       pressOn(all[0], "7", "2", yes),
		"no message":       pressOn(sent{to: all[0].to}, "8", "1", yes),
		"negative index":   pressOn(all[0], "9", "1", token+"-1--1"),
		"the empty string": pressOn(all[0], "10", "1", ""),
	}
	for name, press := range presses {
		r.accept(press)
		if toast := r.platform.toast(t, press.ID); toast == "" || toast == "thanks" {
			t.Errorf("%s: toast %q", name, toast)
		}
	}
	if seen := v.seen(); len(seen) != 0 {
		t.Errorf("the handler was asked: %+v", seen)
	}
	// The card itself is as good as before.
	r.accept(pressOn(all[0], "11", "1", yes))
	if toast := r.platform.toast(t, "11"); toast != "thanks" {
		t.Errorf("toast %q", toast)
	}
}

func TestCardSurvivesRestart(t *testing.T) {
	v := &voter{}
	r := newHarness(t, echo, voting(v))
	r.post("a", chatOne, vote())
	shown := r.platform.wait(t, 1)[0]
	r.receipts(1) // else it is sent again, and says so
	r.restart()
	r.post("a", chatOne, vote())
	r.accept(pressOn(shown, "p", "1", shown.button(t, "Later")))
	r.platform.until(t, "edit", func(all []sent) bool { return all[0].text == "fake:1 chose later" })
	r.restart()
	r.accept(pressOn(shown, "p", "1", shown.button(t, "Later")), pressOn(shown, "q", "1", shown.button(t, "Later")))
	if got := r.platform.toast(t, "q"); got != "This has already been decided." {
		t.Errorf("toast: %q", got)
	}
	if len(v.seen()) != 1 || len(r.platform.texts()) != 1 {
		t.Errorf("presses %+v, sent %v", v.seen(), r.platform.texts())
	}
}

// clock is a clock that a test moves.
type clock struct{ ahead atomic.Int64 }

func (c *clock) Now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

func TestACardExpires(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprint(restarted), func(t *testing.T) {
			v, c := &voter{}, &clock{}
			r := newHarness(t, echo, voting(v, func(cfg *bridge.Config) { cfg.Now = c.Now }))
			card := vote()
			card.Expires = c.Now().Add(time.Hour)
			r.post("a", chatOne, card)
			r.post("b", chatOne, vote()) // lives for a day
			shown := r.platform.wait(t, 2)
			r.receipts(2)
			if restarted {
				r.stop()
			}
			c.advance(2 * time.Hour)
			if restarted {
				r.start()
			}
			r.platform.until(t, "edit", func(all []sent) bool { return all[0].text == "nobody voted" && all[0].buttons == nil })
			r.accept(pressOn(shown[0], "p", "1", shown[0].button(t, "Yes")))
			if got := r.platform.toast(t, "p"); got != "Too late: this has expired." {
				t.Errorf("toast: %q", got)
			}
			r.accept(pressOn(shown[1], "q", "1", shown[1].button(t, "Yes")))
			if got := r.platform.toast(t, "q"); got != "thanks" {
				t.Errorf("toast of the other: %q", got)
			}
			presses := v.seen()
			if len(presses) != 2 || !presses[0].Expired || presses[0].Choice != "" || presses[1].Expired {
				t.Errorf("presses: %+v", presses)
			}
		})
	}
}

// A card whose sending was cut off may stand there twice; both copies can be pressed.
func TestCardThatMayStandTwice(t *testing.T) {
	t.Parallel()
	v := &voter{}
	r := newHarness(t, echo, voting(v))
	r.platform.fail = func(n int, arrived bool) error {
		if n == 1 && arrived {
			return &chats.SendError{Outcome: chats.Unknown, Err: errors.New("the line broke")}
		}
		return nil
	}
	r.post("a", chatOne, vote())
	all := r.platform.wait(t, 2)
	if all[0].repeat || !all[1].repeat {
		t.Errorf("sent %+v", all)
	}
	r.accept(pressOn(all[0], "p", "1", all[0].button(t, "Yes")))
	r.platform.until(t, "edit", func(all []sent) bool { return all[1].text == "fake:1 chose yes" })
	if got := r.platform.toast(t, "p"); got != "thanks" {
		t.Errorf("toast %q", got)
	}
	r.accept(pressOn(all[1], "q", "1", all[1].button(t, "No")))
	if got := r.platform.toast(t, "q"); got != "This has already been decided." {
		t.Errorf("toast %q", got)
	}
}

func TestCardChangesItsButtons(t *testing.T) {
	v := &voter{}
	v.decide = func(p interact.Press) (interact.Result, error) {
		return interact.Result{
			Toast: p.Choice, Text: "page " + p.Choice, Data: json.RawMessage(fmt.Sprintf("%q", p.Choice)),
			Choices: [][]interact.Choice{{{Label: "Back", Value: "back of " + string(p.Card.Data)}}},
		}, nil
	}
	r := newHarness(t, echo, voting(v))
	r.post("a", chatOne, vote())
	first := r.platform.wait(t, 1)[0]
	r.accept(pressOn(first, "p1", "1", first.button(t, "Yes")))
	second := r.platform.until(t, "page", func(all []sent) bool { return all[0].text == "page yes" })[0]
	// A press of the old buttons means something else now.
	r.accept(pressOn(first, "p2", "1", first.button(t, "Yes")))
	if got := r.platform.toast(t, "p2"); got != "This has just changed. Please look again." {
		t.Errorf("toast: %q", got)
	}
	r.accept(pressOn(second, "p3", "1", second.button(t, "Back")))
	if got := r.platform.toast(t, "p3"); got != `back of {"n":1}` {
		t.Errorf("toast: %q", got)
	}
	if seen := v.seen(); len(seen) != 2 || string(seen[1].Card.Data) != `"yes"` {
		t.Errorf("presses: %+v", seen)
	}
}

func TestCardWithLeadAndReply(t *testing.T) {
	t.Parallel()
	v := &voter{}
	r := newHarness(t, echo, voting(v))
	card := vote()
	card.Lead, card.Text, card.ReplyTo = "long\fstory", "one\ftwo", "m7"
	chat := chats.Chat{Platform: "fake", ID: "g", Thread: "t"}
	r.post("a", chat, card)
	all := r.platform.wait(t, 4)
	if got := fmt.Sprint(texts(all)); got != "[long story one two]" {
		t.Fatalf("sent %s", got)
	}
	for i, s := range all {
		if s.to.Chat != chat || s.to.ReplyTo != "m7" || (s.buttons != nil) != (i == 3) {
			t.Errorf("part %d: %+v", i, s)
		}
	}
	v.decide = func(interact.Press) (interact.Result, error) {
		return interact.Result{Close: true, Text: "1\f2"}, nil
	}
	r.accept(pressOn(all[3], "p", "9", all[3].button(t, "Yes")))
	r.platform.until(t, "edit", func(all []sent) bool { return fmt.Sprint(texts(all)) == "[long story 1 2]" && all[3].buttons == nil })
}

// What no longer fills the messages of a card stands in the last of them, where its buttons were.
func TestACardThatBecomesShorterChangesItsLastMessage(t *testing.T) {
	v := &voter{decide: func(interact.Press) (interact.Result, error) {
		return interact.Result{Close: true, Text: "over"}, nil
	}}
	r := newHarness(t, echo, voting(v))
	card := vote()
	card.Text = "one\ftwo"
	r.post("a", chatOne, card)
	last := r.platform.wait(t, 2)[1]
	r.accept(pressOn(last, "p", "1", last.button(t, "Yes")))
	r.platform.until(t, "edit", func(all []sent) bool { return fmt.Sprint(texts(all)) == "[one over]" && all[1].buttons == nil })
}

func TestCardOfACommand(t *testing.T) {
	v := &voter{}
	r := newHarness(t, echo, voting(v, func(c *bridge.Config) {
		c.Commands = []bridge.Command{{
			CommandInfo: chats.CommandInfo{Name: "tea", Description: "Tea"},
			RunCard: func(_ context.Context, call bridge.CommandCall) (interact.Card, error) {
				card := vote()
				card.Text = "Tea, " + call.Args + "?"
				return card, nil
			},
		}}
	}))
	r.accept(direct("1", "/tea green"))
	shown := r.platform.wait(t, 1)[0]
	if shown.text != "Tea, green?" {
		t.Fatalf("shown: %+v", shown)
	}
	r.receipts(1)
	r.restart()
	r.accept(pressOn(shown, "p", "1", shown.button(t, "Yes")))
	r.platform.until(t, "edit", func(all []sent) bool { return all[0].text == "fake:1 chose yes" })
}

func TestCardOnAPlatformWithoutButtons(t *testing.T) {
	v := &voter{}
	r := newHarness(t, echo, voting(v, func(c *bridge.Config) {
		c.Platforms = []chats.Platform{struct{ chats.Platform }{c.Platforms[0]}}
		c.Commands = []bridge.Command{{CommandInfo: chats.CommandInfo{Name: "tea", Description: "Tea"}, RunCard: func(context.Context, bridge.CommandCall) (interact.Card, error) {
			return vote(), nil
		}}}
	}))
	if err := r.bridge.Post(t.Context(), "a", chatOne, vote()); !errors.Is(err, interact.ErrNoButtons) {
		t.Errorf("error %v", err)
	}
	r.post("b", chatOne, interact.Card{Text: "a notice"})
	r.platform.wait(t, 1)
	r.accept(direct("1", "/tea"))
	if got := strings.TrimSpace(r.platform.wait(t, 2)[1].text); got != "Tea?" {
		t.Errorf("answer %q", got)
	}
}

func TestCardsThatAreRefused(t *testing.T) {
	r := newHarness(t, echo, voting(&voter{}))
	many := vote()
	many.Choices = append(many.Choices, slices.Repeat([]interact.Choice{{Label: "x"}}, 60))
	unlabelled := vote()
	unlabelled.Choices = [][]interact.Choice{{{Value: "x"}}}
	long := vote()
	long.Choices[0][0].Label = strings.Repeat("é", 41)
	unknown := vote()
	unknown.Kind = "poll"
	for name, card := range map[string]interact.Card{"many": many, "unlabelled": unlabelled, "long": long, "unknown": unknown} {
		if err := r.bridge.Post(t.Context(), name, chatOne, card); err == nil {
			t.Errorf("%s: posted", name)
		}
	}
	if err := r.bridge.Post(t.Context(), "a", chats.Chat{Platform: "other", ID: "1"}, vote()); !errors.Is(err, queue.ErrInvalid) {
		t.Errorf("other platform: %v", err)
	}
}

func TestCardHandlerThatPanics(t *testing.T) {
	v := &voter{decide: func(interact.Press) (interact.Result, error) { panic("ouch") }}
	r := newHarness(t, echo, voting(v))
	r.post("a", chatOne, vote())
	shown := r.platform.wait(t, 1)[0]
	r.accept(pressOn(shown, "p", "1", shown.button(t, "Yes")))
	if got := r.platform.toast(t, "p"); got != "That did not work. Please try again in a moment." {
		t.Errorf("toast %q", got)
	}
}

// A card of which a part was refused cannot be decided: somebody would decide about
// what they have not seen.
func TestCardThatCouldNotBeShownWhole(t *testing.T) {
	v := &voter{}
	r := newHarness(t, echo, voting(v))
	r.platform.fail = func(n int, arrived bool) error {
		if n == 1 && !arrived {
			return &chats.SendError{Outcome: chats.Refused, Err: errors.New("no")}
		}
		return nil
	}
	card := vote()
	card.Lead = "the dangerous half"
	r.post("a", chatOne, card)
	shown := r.platform.until(t, "closed card", func(all []sent) bool { return len(all) == 1 && all[0].text == "nobody voted" })[0]
	if shown.buttons != nil {
		t.Errorf("buttons: %v", shown.buttons)
	}
	if seen := v.seen(); len(seen) != 1 || !seen[0].Expired {
		t.Errorf("presses: %+v", seen)
	}
}

func TestCardsArePrunedAfterAWeek(t *testing.T) {
	v, c := &voter{}, &clock{}
	r := newHarness(t, echo, voting(v, func(cfg *bridge.Config) { cfg.Now = c.Now }))
	card := vote()
	card.Expires = c.Now().Add(30 * 24 * time.Hour)
	r.post("a", chatOne, card)
	r.post("b", chatOne, vote())
	shown := r.platform.wait(t, 2)
	r.accept(pressOn(shown[1], "p", "1", shown[1].button(t, "Yes")))
	r.platform.until(t, "edit", func(all []sent) bool { return all[1].text == "fake:1 chose yes" })
	r.stop()
	c.advance(receipts.Age + time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	changes := r.cfg.Store.Watch(ctx, "card/")
	r.start()
	gone := false
	for change, err := range changes {
		if gone = err == nil && change.Deleted; gone {
			break
		}
	}
	if !gone {
		t.Fatal("no card is removed")
	}
	left := 0
	for _, err := range r.cfg.Store.List(t.Context(), storage.Range{Prefix: "card/"}) {
		if err != nil {
			t.Fatal(err)
		}
		left++
	}
	if left != 1 {
		t.Errorf("%d cards are left", left)
	}
}

// A handler that cannot end its card, such as one whose data is damaged, does not keep
// other cards of the chat from being pressed.
func TestCardWhoseEndFailsEachTime(t *testing.T) {
	t.Parallel()
	v, c := &voter{}, &clock{}
	v.decide = func(p interact.Press) (interact.Result, error) {
		if p.Expired {
			return interact.Result{}, errors.New("damaged")
		}
		return interact.Result{Toast: "thanks", Close: true}, nil
	}
	r := newHarness(t, echo, voting(v, func(cfg *bridge.Config) { cfg.Now = c.Now }))
	card := vote()
	card.Expires = c.Now().Add(time.Hour)
	r.post("a", chatOne, card)
	r.post("b", chatOne, vote())
	shown := r.platform.wait(t, 2)
	r.receipts(2)
	c.advance(2 * time.Hour)
	r.platform.until(t, "edit", func(all []sent) bool { return all[0].text == "Tea?\n\n_Expired._" && all[0].buttons == nil })
	r.accept(pressOn(shown[1], "p", "1", shown[1].button(t, "Yes")))
	if got := r.platform.toast(t, "p"); got != "thanks" {
		t.Errorf("toast: %q", got)
	}
}

// A replica is paused before it stores what a press does, and goes on when the other one has stored
// that, and what the next press does: each of them has counted once, and the second one stays.
func TestAPressThatIsStoredLateUndoesNoOther(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first, second func(p interact.Press) interact.Result
		want          string
	}{
		"both change what it says": {adds, adds, "Tea? yes no"},
		"the second one decides":   {adds, decides, "Tea? yes no"},
		"the first one is told":    {tells, decides, "Tea? no"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &voter{decide: func(p interact.Press) (interact.Result, error) {
					if p.Choice == "yes" {
						return tt.first(p), nil
					}
					return tt.second(p), nil
				}}
				s := newSleepers(t, echo, voting(v))
				owner, other := s.owner(t)
				s.several[owner].post("key", in("7", "", "").Chat, vote())
				pass(t, 1)
				card := s.platform.shown()[1]
				s.when(func(replica int, ops []storage.Op) bool {
					return replica == owner && strings.HasPrefix(ops[0].Key, "card/")
				})
				s.several[owner].accept(pressOn(card, "p1", "1", card.button(t, "Yes")))
				pass(t, takeover)
				card = s.platform.shown()[1]
				s.several[other].accept(pressOn(card, "p2", "2", card.button(t, "No")))
				pass(t, 5)
				s.wake(owner)
				pass(t, 30)
				s.several[other].accept(pressOn(card, "p3", "3", card.button(t, "No")))
				pass(t, 5)
				if got := s.platform.shown()[1].text; got != tt.want {
					t.Errorf("the card says %q", got)
				}
				s.stop(t)
			})
		})
	}
}

// What a press of a vote may do: it changes what that says, or decides it, or says something to who
// pressed.
func adds(p interact.Press) interact.Result {
	return interact.Result{Text: p.Card.Text + " " + p.Choice, Choices: p.Card.Choices}
}

func decides(p interact.Press) interact.Result {
	return interact.Result{Text: p.Card.Text + " " + p.Choice, Close: true}
}

func tells(interact.Press) interact.Result { return interact.Result{Toast: "noted"} }

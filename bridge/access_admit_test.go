package bridge_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
)

// newOwned is a bot that user 1 owns.
func newOwned(t *testing.T, change ...func(*bridge.Config)) *unclaimed {
	t.Helper()
	u := newUnclaimed(t, change...)
	u.say(from("1", "claim", "/claim "+u.code), 1)
	return u
}

// card returns the only message in the chat of the owner with this text.
func (u *unclaimed) card(part string) sent {
	u.t.Helper()
	var found sent
	u.platform.until(u.t, "card with "+part, func(all []sent) bool {
		i := slices.IndexFunc(all, func(s sent) bool { return s.to.Chat.ID == "1" && strings.Contains(s.text, part) })
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

// press has somebody press a button, and returns what they are told.
func (u *unclaimed) press(on sent, id, user, label string) string {
	u.t.Helper()
	u.accept(pressOn(on, id, user, on.button(u.t, label)))
	return u.platform.toast(u.t, id)
}

// told returns what was sent to a chat.
func (u *unclaimed) told(chat string) []string {
	var all []string
	for _, s := range u.platform.shown() {
		if s.to.Chat.ID == chat {
			all = append(all, s.text)
		}
	}
	return all
}

// untilTold waits until somebody was told so many texts.
func (u *unclaimed) untilTold(chat string, n int) []string {
	u.t.Helper()
	u.platform.until(u.t, fmt.Sprintf("%d texts to %s", n, chat), func(all []sent) bool {
		there := 0
		for _, s := range all {
			if s.to.Chat.ID == chat {
				there++
			}
		}
		return there >= n
	})
	return u.told(chat)
}

func TestANewcomerIsLetIn(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprint(restarted), func(t *testing.T) {
			u := newOwned(t)
			u.accept(from("2", "a", "hello\nI am new, see https://evil.example `x` <b>"), from("2", "b", "hello?"))
			wantText(t, u.untilTold("2", 1)[0], "I have asked my owner whether to let you in. If so, I will answer your message here. (You are `fake:2`.)")
			card := u.card("someone new")
			wantText(t, card.text, "`user 2` (`fake:2`) has written to me. They wrote: `hello I am new, see https://evil.example 'x' <b>`")
			if restarted {
				u.restart()
			}
			wantText(t, u.press(card, "p", "1", "Let in"), "may talk to me now")
			u.card("`user 2` (`fake:2`) may talk to me now")
			told := u.untilTold("2", 3)
			wantText(t, told[1], "user 1 let you in. Here is the answer to your message:")
			wantText(t, told[2], "re: hello\nI am new, see https://evil.example `x` <b>")
			u.accept(from("2", "c", "hello again"))
			wantText(t, u.untilTold("2", 4)[3], "re: hello again")
			u.restart()
			u.accept(from("2", "d", "and again"))
			wantText(t, u.untilTold("2", 5)[4], "re: and again")
			u.did(t, "let in as user fake:1 Ann fake:1 fake:2", "claim fake:1 user 1 fake:1 fake:1")
		})
	}
}

func TestARefusedNewcomerIsNotAskedAboutAgain(t *testing.T) {
	u := newOwned(t)
	u.accept(from("2", "a", "hello"))
	card := u.card("someone new")
	wantText(t, u.press(card, "p", "1", "Refuse"), "not told")
	u.card("is refused")
	u.now.advance(25 * time.Hour)
	u.accept(from("2", "b", "hello?"))
	wantText(t, u.untilTold("2", 2)[1], "ask my operator")
	if n := len(u.told("1")); n != 2 {
		t.Errorf("the owner was told %q", u.told("1"))
	}
	// After a month they are somebody new.
	u.now.advance(31 * 24 * time.Hour)
	u.accept(from("2", "c", "hello at last"))
	wantText(t, u.untilTold("2", 3)[2], "asked my owner")
	wantText(t, u.card("hello at last").text, "someone new")
	u.did(t, "refuse fake:1 Ann fake:1 fake:2", "claim fake:1 user 1 fake:1 fake:1")
}

// Who is let in and removed on the page of administrators is so as in the chat, for those who may.
func TestPeopleAreLetInAndRemovedElsewhere(t *testing.T) {
	u := newOwned(t)
	n := 0
	do := func(by string, change func(audit.Author) (string, error), want string) {
		t.Helper()
		n++
		told, err := change(audit.Author{Event: fmt.Sprint("page-", n), At: u.now.Now(), By: by, Name: "Somebody", Chat: audit.PageChat})
		if err != nil || !strings.Contains(told, want) {
			t.Errorf("%d: told %q, %v; want %q", n, told, err, want)
		}
	}
	give := func(user string, admin bool) func(audit.Author) (string, error) {
		return func(author audit.Author) (string, error) {
			return u.bridge.People().Admit(t.Context(), author, user, admin)
		}
	}
	take := func(user string) func(audit.Author) (string, error) {
		return func(author audit.Author) (string, error) { return u.bridge.People().Revoke(t.Context(), author, user) }
	}
	do("fake:1", give("fake:3", true), "administrator now")
	do("fake:3", give("fake:4", false), "may talk to me now")
	do("fake:4", give("fake:5", false), "for my administrators")
	do("fake:3", give("fake:5", true), "Only my owner")
	do("fake:3", take("fake:1"), "cannot be removed")
	do("fake:3", take("fake:4"), "may no longer talk to me. Their running work is stopped. Their schedules, webhooks and accounts rest")
	do("fake:3", give("fake:4", false), "may talk to me now. If they could before, their schedules, webhooks and accounts go on.")
	u.did(t, "let in as user fake:3 Somebody page fake:4",
		"remove fake:3 Somebody page fake:4", "let in as user fake:3 Somebody page fake:4", "let in as admin fake:1 Somebody page fake:3",
		"claim fake:1 user 1 fake:1 fake:1",
	)
}

func TestNobodyDecides(t *testing.T) {
	u := newOwned(t)
	u.accept(from("2", "a", "hello"))
	u.card("someone new")
	u.now.advance(8 * 24 * time.Hour)
	u.card("There was no decision about `user 2`")
	u.accept(from("2", "b", "still here"))
	u.card("still here")
}

func TestOnlyTheOwnerAdmits(t *testing.T) {
	u := newOwned(t)
	u.say(from("1", "1", "/people admin fake:3"), 2)
	u.accept(from("2", "a", "hello"))
	card := u.card("someone new")
	for _, user := range []string{"2", "3", "4"} {
		if toast := u.press(card, "p"+user, user, "Let in"); strings.Contains(toast, "now") {
			t.Errorf("user %s is told %q", user, toast)
		}
	}
	u.accept(from("2", "b", "/whoami"), from("1", "2", "/whoami"))
	wantText(t, u.untilTold("1", 4)[3], "my owner")
	if told := u.untilTold("2", 1); len(told) != 1 {
		t.Errorf("user 2 was told %q", told)
	}
}

func TestOpenCardsAreBounded(t *testing.T) {
	u := newOwned(t)
	const most = 20
	for n := range most + 5 {
		u.accept(from(fmt.Sprint(100+n), "a", "hello"))
		u.untilTold(fmt.Sprint(100+n), 1)
	}
	wantText(t, u.told("119")[0], "asked my owner")
	u.platform.until(t, "open cards", func(all []sent) bool {
		open := 0
		for _, s := range all {
			if s.to.Chat.ID == "1" && s.buttons != nil {
				open++
			}
		}
		return open == most && len(u.told("1")) >= 1+most+5
	})
	if n := len(u.told("1")); n != 1+most+5 {
		t.Errorf("the owner was told %d texts", n)
	}
}

// Strangers who have asked keep no newcomer from being asked about: the oldest card gives
// way, and who it was about can ask again.
//
// Strangers void no claim and stop no cards.
func TestTheOldestStrangerGivesWay(t *testing.T) {
	u := newOwned(t)
	for n := range 20 {
		u.accept(from(fmt.Sprint(100+n), "a", "hello"))
		u.untilTold(fmt.Sprint(100+n), 1)
		u.now.advance(time.Second)
	}
	u.untilTold("1", 1+20)
	oldest, second := u.card("`fake:100`"), u.card("`fake:101`")
	press := oldest.button(t, "Let in")
	u.accept(from("2", "a", "hello"))
	wantText(t, u.untilTold("2", 1)[0], "asked my owner")
	u.platform.until(t, "the end of the oldest card", func(all []sent) bool {
		return slices.ContainsFunc(all, func(s sent) bool {
			return s.id == oldest.id && s.buttons == nil && strings.Contains(s.text, "/people add fake:100")
		})
	})
	u.accept(pressOn(oldest, "p1", "1", press))
	wantText(t, u.platform.toast(t, "p1"), "out of date")
	if got := u.press(u.card("`fake:2`"), "p2", "1", "Let in") + u.press(second, "p3", "1", "Let in"); got != "They may talk to me now.They may talk to me now." {
		t.Errorf("toasts %q", got)
	}
	u.now.advance(25 * time.Hour)
	u.accept(from("100", "b", "hello again"))
	wantText(t, u.untilTold("100", 2)[1], "asked my owner")
}

func TestInAGroupNobodyKnocks(t *testing.T) {
	u := newOwned(t)
	u.accept(group("a", "2", "hello"), group("b", "2", "hello?"))
	wantText(t, u.untilTold("g", 1)[0], "direct chat")
	u.accept(from("2", "c", "hello"))
	wantText(t, u.untilTold("2", 1)[0], "asked my owner")
	u.card("someone new")
	if n := len(u.told("g")); n != 1 {
		t.Errorf("the group was told %q", u.told("g"))
	}
}

func TestPeopleAreRemovedByAButton(t *testing.T) {
	u := newOwned(t)
	u.accept(from("2", "a", "hello"))
	u.press(u.card("someone new"), "p1", "1", "Let in")
	u.untilTold("2", 2)
	u.accept(from("1", "1", "/people add fake:3"), from("1", "2", "/people admin fake:4"), from("1", "3", "/people"))
	list := u.card("– owner since")
	if n := len(slices.Concat(list.buttons...)); n != 3 {
		t.Errorf("%d buttons: %v", n, list.buttons)
	}
	if toast := u.press(list, "p2", "1", "Remove user 2"); toast != "Removed. Their schedules, webhooks and accounts rest, and go on if they are let in again." {
		t.Errorf("toast %q", toast)
	}
	u.platform.until(t, "a shorter list", func(all []sent) bool {
		return slices.ContainsFunc(all, func(s sent) bool {
			return s.id == list.id && !strings.Contains(s.text, "fake:2") && len(s.buttons) == 2
		})
	})
	u.accept(from("2", "b", "hello?"), from("4", "1", "/people"))
	told := u.untilTold("4", 1)
	u.platform.until(t, "the administrator's list", func(all []sent) bool {
		i := slices.IndexFunc(all, func(s sent) bool { return s.to.Chat.ID == "4" })
		return i >= 0 && len(all[i].buttons) == 1 && all[i].buttons[0][0].Label == "Remove fake:3"
	})
	wantText(t, told[0], "– owner since")
	u.say(from("1", "4", "/whoami"), len(u.platform.texts())+1)
	for _, text := range u.told("2") {
		if strings.Contains(text, "re: hello?") {
			t.Errorf("who was removed is answered: %q", text)
		}
	}
}

// TestAddingWhoWaitsClosesTheirCard lets somebody in by a command while the card about
// them is open.
// Who is let in is told so before what they wrote is answered, be it a message or a command.
func TestAddingWhoWaitsClosesTheirCard(t *testing.T) {
	for text, answer := range map[string]string{"hello": "re: hello", "/status": "Tool groups loaded"} {
		t.Run(text, func(t *testing.T) {
			u := newOwned(t)
			u.accept(from("2", "a", text))
			card := u.card("someone new")
			u.untilTold("2", 1)
			u.accept(from("1", "1", "/people add fake:2"))
			told := u.untilTold("2", 3)
			wantText(t, told[1], "user 1 let you in. Here is the answer to your message:")
			wantText(t, told[2], answer)
			u.card("Let in with /people")
			wantText(t, u.press(card, "p", "1", "Refuse"), "out of date")
			u.accept(from("2", "b", "hello again"))
			wantText(t, u.untilTold("2", 4)[3], "re: hello again")
		})
	}
}

// TestPressesOfStrangersMakeNoTurn forges presses on all that is shown, as everybody
// but the owner.
func TestPressesOfStrangersMakeNoTurn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		turns := make(chan string, 100)
		u := newOwned(t, func(c *bridge.Config) {
			c.Logger = slog.New(slog.DiscardHandler)
			c.Turns.Agent = thinker(func(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
				turns <- turn.Scope.User
				return func(func(agent.Message, error) bool) {}
			})
		})
		defer u.stop()
		u.accept(from("2", "first", "hello"))
		card := u.card("someone new")
		u.accept(from("1", "people", "/people"))
		u.untilTold("1", 3)
		for n := range rapid.IntRange(1, 15).Draw(rt, "events") {
			user := fmt.Sprint(rapid.IntRange(2, 4).Draw(rt, "user"))
			id := fmt.Sprint("e", n)
			var m chats.Message
			if rapid.Bool().Draw(rt, "press") {
				m = pressOn(card, id, user, card.button(t, rapid.SampledFrom([]string{"Let in", "Refuse"}).Draw(rt, "label")))
				m.Chat.ID = rapid.SampledFrom([]string{"1", user, "g"}).Draw(rt, "chat")
				m.Direct = rapid.Bool().Draw(rt, "direct")
			} else {
				m = from(user, id, rapid.SampledFrom([]string{"hello", "/people add fake:2", "/start", "/clear", "claim me"}).Draw(rt, "text"))
			}
			if err := u.bridge.Accept(t.Context(), m); err != nil {
				rt.Fatal(err)
			}
		}
		u.platform.wait(t, u.taken())
		select {
		case user := <-turns:
			rt.Fatalf("a turn for %s", user)
		default:
		}
		if toast := u.press(card, "owner", "1", "Let in"); !strings.Contains(toast, "may talk to me now") {
			rt.Fatalf("the owner's own press is told %q", toast)
		}
	})
}

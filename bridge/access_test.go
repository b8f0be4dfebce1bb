package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// from is a message of a user in their own direct chat.
func from(user, id, text string) chats.Message {
	m := direct(id, text)
	m.Chat.ID, m.User, m.UserName = user, user, "user "+user
	return m
}

// unclaimed is a bot that nobody is configured for, with the code that claims it, and a
// clock that can be moved.
type unclaimed struct {
	*harness
	code string
	now  *clock
}

func newUnclaimed(t *testing.T, change ...func(*bridge.Config)) *unclaimed {
	t.Helper()
	u := &unclaimed{now: &clock{}}
	closed := func(c *bridge.Config) {
		// Its ends are orderly, so that nothing is sent twice.
		c.Access, c.Now, c.Limits.DrainTimeout = access.Access{}, u.now.Now, time.Minute
	}
	u.harness = newHarness(t, echo, append([]func(*bridge.Config){closed}, change...)...)
	u.offer()
	return u
}

func (u *unclaimed) offer() {
	u.t.Helper()
	claim, err := access.NewClaim(u.t.Context(), u.cfg.Store, u.now.Now(), false)
	if err != nil {
		u.t.Fatal(err)
	}
	u.code = claim.Code
}

// say has a message accepted and returns the n-th text that the bot has sent.
func (r *harness) say(m chats.Message, n int) string {
	r.t.Helper()
	r.accept(m)
	return r.platform.wait(r.t, n)[n-1].text
}

func wantText(t *testing.T, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%q does not say %q", text, part)
	}
}

func TestTheRightCodeMakesTheOwner(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"/claim %s", "/start %s", "claim %s", "!claim %s", "/claim  %s ", "Claim %s"} {
		t.Run(form, func(t *testing.T) {
			u := newUnclaimed(t)
			wantText(t, u.say(from("1", "0", "hello"), 1), "have no owner yet")
			wantText(t, u.say(from("1", "1", fmt.Sprintf(form, u.code)), 2), "Welcome, user 1!")
			wantText(t, u.say(from("1", "2", "/whoami"), 3), "You are my owner.")
			wantText(t, u.say(from("1", "3", "hello"), 4), "re: hello")
			u.restart()
			wantText(t, u.say(from("1", "4", "/whoami"), 5), "You are my owner.")
			u.accept(from("2", "5", "/claim "+u.code))
			wantText(t, u.untilTold("2", 1)[0], "only talk to people")
			if _, err := access.NewClaim(t.Context(), u.cfg.Store, u.now.Now(), false); !errors.Is(err, access.ErrOwned) {
				t.Errorf("a bot with an owner can be claimed: %v", err)
			}
			if _, err := u.cfg.Store.Get(t.Context(), "claim"); err == nil {
				t.Error("the used claim is still there")
			}
		})
	}
}

func TestTheCodeIsNotStored(t *testing.T) {
	u := newUnclaimed(t)
	entry, err := u.cfg.Store.Get(t.Context(), "claim")
	if err != nil || strings.Contains(string(entry.Value), u.code) {
		t.Errorf("the claim is stored as %s (%v)", entry.Value, err)
	}
}

func TestAClaimEnds(t *testing.T) {
	tests := map[string]func(u *unclaimed){
		"with its time":    func(u *unclaimed) { u.now.advance(access.ClaimAge) },
		"with another one": func(u *unclaimed) { code := u.code; u.offer(); u.code = code },
		"seen in a group": func(u *unclaimed) {
			wantText(u.t, u.say(group("g1", "1", "/claim "+u.code), 1), "is no longer valid")
		},
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			u := newUnclaimed(t)
			end(u)
			before := len(u.platform.texts())
			u.say(from("1", "1", "/claim "+u.code), before+1)
			u.say(from("2", "2", "hello"), before+2)
			u.accept(from("1", "3", "hello"))
			u.restart()
			for _, text := range u.platform.texts() {
				if strings.Contains(text, "Welcome") || strings.Contains(text, "re: ") {
					t.Errorf("after its end it made an owner: %q", u.platform.texts())
				}
			}
		})
	}
}

// A new code comes from oneclaw claim in each state of the bot; its log shows neither a code that was made
// by hand nor, while that is valid, another one.
func TestWhoeverHasNoValidCodeIsToldWhereToGetOne(t *testing.T) {
	const command, where = "`oneclaw claim`", "on the computer where I run"
	for name, tt := range map[string]struct {
		before func(u *unclaimed)
		asked  chats.Message
		code   func(right string) string
	}{
		"without a code":          {asked: from("1", "1", "hello")},
		"a mistyped code":         {asked: from("1", "1", "/claim "), code: func(right string) string { return right[1:] + right[:1] }},
		"an old code":             {func(u *unclaimed) { u.now.advance(access.ClaimAge) }, from("1", "1", "/claim "), strings.Clone},
		"a code shown in a group": {asked: group("1", "1", "/claim "), code: strings.Clone},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUnclaimed(t)
			if tt.before != nil {
				tt.before(u)
			}
			if tt.code != nil {
				tt.asked.Text += tt.code(u.code)
			}
			got := u.say(tt.asked, 1)
			wantText(t, got, command)
			wantText(t, got, where)
			if strings.Contains(got, "restart") || strings.Contains(got, "log") {
				t.Errorf("told %q", got)
			}
		})
	}
	t.Run("of a bot with an owner", func(t *testing.T) {
		u := newUnclaimed(t)
		u.say(from("1", "1", "/claim "+u.code), 1)
		u.say(from("1", "2", "/people add fake:2"), 2)
		u.accept(from("2", "3", "/claim "+u.code))
		told := u.untilTold("2", 1)
		if got := told[len(told)-1]; got != "I have an owner already, so there is nothing to claim." {
			t.Errorf("told %q", got)
		}
	})
}

// Whoever sends wrong codes is told so once, however many they send, and the right code
// counts at any time.
func TestGuessesAreAnsweredOnce(t *testing.T) {
	u := newUnclaimed(t)
	wantText(t, u.say(from("1", "hello", "hello"), 1), "have no owner yet")
	wantText(t, u.say(from("1", "0", "/claim wrong"), 2), "not the code")
	for n := range 20 {
		u.accept(from("1", fmt.Sprint("g", n), "/claim wrong"))
	}
	if n := u.taken(); n != 2 {
		t.Errorf("%d messages of a stranger are answered", n)
	}
	u.accept(from("2", "1", "/claim "+u.code[1:]), from("2", "2", "/claim "+u.code[:25]+"1"))
	wantText(t, u.untilTold("2", 1)[0], "not the code")
	wantText(t, u.say(from("1", "right", "/claim "+u.code), 4), "Welcome")
	if n := len(u.told("2")); n != 1 {
		t.Errorf("user 2 was told %q", u.told("2"))
	}
}

// Strangers with wrong codes, each with many and more than are answered, keep nobody from
// claiming the bot who has the right one: neither another nor one of themselves.
//
// Strangers void no claim and stop no cards.
func TestWrongCodesVoidNoClaim(t *testing.T) {
	t.Parallel()
	for _, winner := range []string{"1", "299", "300"} {
		t.Run(winner, func(t *testing.T) {
			u := newUnclaimed(t)
			var wrong []chats.Message
			for user := range 300 {
				for n := range 10 {
					wrong = append(wrong, from(fmt.Sprint(user), fmt.Sprint("g", n), "/claim wrong"))
				}
			}
			u.accept(wrong...)
			const answered = 200
			for _, s := range u.platform.wait(t, answered) {
				wantText(t, s.text, "not the code")
			}
			wantText(t, u.say(from(winner, "right", "/claim "+u.code), answered+1), "Welcome")
			if owned, err := access.HasOwner(t.Context(), u.cfg.Store); !owned || err != nil {
				t.Errorf("owned: %t, %v", owned, err)
			}
			if n := u.taken(); n != answered+1 {
				t.Errorf("%d messages of strangers are answered", n)
			}
		})
	}
}

func TestOfTwoWhoClaimOneWins(t *testing.T) {
	u := newUnclaimed(t)
	const rivals = 8
	var all sync.WaitGroup
	for n := range rivals {
		all.Go(func() { u.accept(from(fmt.Sprint(n), "1", "/claim "+u.code)) })
	}
	all.Wait()
	u.platform.one(u.t, "Welcome") // perhaps after questions about others
	for n := range rivals {
		u.untilTold(fmt.Sprint(n), 1)
	}
	if texts := u.platform.texts(); strings.Count(strings.Join(texts, "\n"), "Welcome") != 1 {
		t.Errorf("more than one owns the bot: %q", texts)
	}
}

// TestAClaimSurvivesACrash ends the bot between the claim and the greeting.
func TestAClaimSurvivesACrash(t *testing.T) {
	t.Parallel()
	u := newUnclaimed(t, func(c *bridge.Config) { c.Limits.DrainTimeout = -1 })
	tried := make(chan struct{}, 10)
	u.platform.fail = func(int, bool) error {
		tried <- struct{}{}
		return &chats.SendError{Outcome: chats.Later, Err: errors.New("no network")}
	}
	u.accept(from("1", "1", "/claim "+u.code))
	<-tried
	u.stop()
	u.platform.fail = nil
	u.start()
	wantText(t, u.platform.wait(t, 1)[0].text, "Welcome")
	wantText(t, u.say(from("1", "2", "/whoami"), 2), "my owner")
}

// taken counts the messages that were taken to be answered.
func (r *harness) taken() int {
	r.t.Helper()
	keys := make(map[string]bool)
	for _, prefix := range []string{"job/open/", "job/done/"} {
		for entry, err := range r.cfg.Store.List(r.t.Context(), storage.Range{Prefix: prefix}) {
			if err != nil {
				r.t.Fatal(err)
			}
			if key := strings.TrimPrefix(entry.Key, prefix); strings.HasSuffix(key, "/"+string(chats.KindText)) {
				keys[key] = true
			}
		}
	}
	return len(keys)
}

// TestNothingAStrangerDoesMakesATurn tries all that people and forgers can send.
func TestNothingAStrangerDoesMakesATurn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		turns := make(chan string, 100)
		u := newUnclaimed(t, func(c *bridge.Config) {
			c.Logger = slog.New(slog.DiscardHandler)
			c.Access.Allow = nil
			c.Turns.Agent = thinker(func(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
				turns <- turn.Scope.User
				return func(func(agent.Message, error) bool) {}
			})
		})
		defer u.stop()
		texts := rapid.SampledFrom([]string{
			"hello", "/start", "/help", "/clear", "/people", "/people add fake:1", "/people admin fake:2", "/agent", "/claim", "/claim x",
			"/claim AAAAAAAAAAAAAAAAAAAAAAAAAA", "claim me", "/stop", "/new", "card:1", "/claim\n/help", "", "/start hello",
		})
		kinds := rapid.SampledFrom([]chats.Kind{chats.KindText, chats.KindText, chats.KindEdit, chats.KindPress, receipts.KindTask})
		for n := range rapid.IntRange(1, 30).Draw(rt, "events") {
			user := fmt.Sprint(rapid.IntRange(1, 3).Draw(rt, "user"))
			m := from(user, fmt.Sprint(rapid.IntRange(1, 5).Draw(rt, "id")), texts.Draw(rt, "text"))
			m.Kind, m.Opener = kinds.Draw(rt, "kind"), user
			if m.Direct = rapid.Bool().Draw(rt, "direct"); !m.Direct {
				m.Chat.ID = "g"
			}
			if err := u.bridge.Accept(t.Context(), m); err != nil {
				rt.Fatalf("event %d: %v", n, err)
			}
		}
		u.platform.wait(t, u.taken())
		select {
		case user := <-turns:
			rt.Fatalf("a turn for %s", user)
		default:
		}
		if owned, err := access.HasOwner(t.Context(), u.cfg.Store); owned || err != nil {
			rt.Fatalf("owned: %t, %v", owned, err)
		}
	})
}

func TestWhatStrangersAreToldIsBounded(t *testing.T) {
	u := newUnclaimed(t)
	var all []chats.Message
	for n := range 300 {
		all = append(all, from(fmt.Sprint(n), "1", "hello"), from(fmt.Sprint(n), "2", "hello?"))
	}
	u.accept(all...)
	u.platform.wait(t, 200)
	u.now.advance(time.Hour)
	wantText(t, u.say(from("300", "3", "and now?"), 201), "have no owner yet")
	u.now.advance(24 * time.Hour)
	wantText(t, u.say(from("300", "4", "another day"), 202), "have no owner yet")
	if told := len(u.platform.texts()); told != 202 {
		t.Errorf("strangers were told %d lines", told)
	}
}

func TestPeopleAreLetInAndRemoved(t *testing.T) {
	u := newUnclaimed(t)
	n := 0
	say := func(user, text string) string {
		n++
		return u.say(from(user, fmt.Sprint(n), text), n)
	}
	wantText(t, say("1", "/claim "+u.code), "Welcome")
	wantText(t, say("1", "/people add fake:2"), "may talk to me now")
	wantText(t, say("1", "/people admin fake:3"), "administrator now")
	wantText(t, say("2", "hello"), "re: hello")
	wantText(t, say("2", "/people"), "Sorry")
	wantText(t, say("3", "/whoami"), "one of my administrators")
	wantText(t, say("3", "/people add fake:4"), "may talk to me now")
	wantText(t, say("3", "/people admin fake:4"), "Only my owner")
	wantText(t, say("1", "/people admin fake:5"), "administrator now")
	wantText(t, say("3", "/people remove fake:5"), "Only my owner")
	wantText(t, say("3", "/people remove fake:1"), "cannot be removed")
	wantText(t, say("1", "/people remove fake:1"), "cannot be removed")
	wantText(t, say("3", "/people remove fake:4"), "may no longer talk to me")
	wantText(t, say("4", "hello"), "only talk to people")
	wantText(t, say("1", "/people remove nobody"), "do not know")
	wantText(t, say("1", "/people add nobody"), "by platform and id")
	wantText(t, say("1", "/people add fake:*"), "is not a person")
	wantText(t, say("1", "/people admin fake:*"), "is not a person")
	wantText(t, say("1", "/people dance"), "lists who may")
	list := say("1", "/people")
	for _, want := range []string{"`fake:1`) – owner", "`fake:2` – user", "`fake:3` – admin"} {
		wantText(t, list, want)
	}
	if strings.Contains(list, "fake:4") {
		t.Errorf("who was removed is listed: %s", list)
	}
	u.restart()
	wantText(t, say("2", "hello again"), "re: hello again")
	u.did(t,
		"remove fake:3 user 3 fake:3 fake:4", "let in as admin fake:1 user 1 fake:1 fake:5", "let in as user fake:3 user 3 fake:3 fake:4",
		"let in as admin fake:1 user 1 fake:1 fake:3", "let in as user fake:1 user 1 fake:1 fake:2", "claim fake:1 user 1 fake:1 fake:1",
	)
	n++
	wantText(t, u.say(group("g", "1", "/people"), n), "direct")
}

// TestRemovalHoldsAtOnce removes somebody whose turn runs and whose next message
// waits.
func TestRemovalHoldsAtOnce(t *testing.T) {
	begun, ended := make(chan string, 10), make(chan error, 10)
	u := newUnclaimed(t, func(c *bridge.Config) {
		c.Turns.Agent = thinker(func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
			return func(yield func(agent.Message, error) bool) {
				begun <- turn.Scope.User
				<-ctx.Done()
				ended <- context.Cause(ctx)
				yield(agent.Message{}, ctx.Err())
			}
		})
	})
	u.say(from("1", "1", "/claim "+u.code), 1)
	u.say(from("1", "2", "/people add fake:2"), 2)
	u.accept(from("2", "3", "long work"), from("2", "4", "more work"))
	if who := <-begun; who != "fake:2" {
		t.Fatalf("a turn for %s", who)
	}
	wantText(t, u.say(from("1", "5", "/people remove fake:2"), 3), "may no longer talk")
	if err := <-ended; err == nil {
		t.Error("the turn ended without a cause")
	}
	u.restart()
	wantText(t, u.say(from("2", "6", "hello?"), 4), "only talk to people")
	if len(begun) > 0 {
		t.Error("what waited was begun after its user was removed")
	}
}

// aroundRemoval returns what the gate says of a call of an administrator before and after the owner removes them, in a turn
// that runs.
func aroundRemoval(t *testing.T, tool toolgroups.Tool, configure func(*bridge.Config)) (before, after agent.Decision) {
	t.Helper()
	decisions := make(chan agent.Decision, 2)
	var u *unclaimed
	u = newUnclaimed(t, func(c *bridge.Config) {
		if configure != nil {
			configure(c)
		}
		c.Turns.Agent = thinker(func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
			return func(yield func(agent.Message, error) bool) {
				ask := func() {
					d, err := turn.Gate(ctx, toolgroups.Call{Scope: turn.Scope}, tool, agent.Input{})
					if err != nil {
						t.Error(err)
					}
					decisions <- d
				}
				ask()
				u.say(from("1", "3", "/people remove fake:2"), 3)
				ask()
				yield(agent.Message{}, ctx.Err())
			}
		})
	})
	u.say(from("1", "1", "/claim "+u.code), 1)
	u.say(from("1", "2", "/people admin fake:2"), 2)
	u.accept(from("2", "1", "go on"))
	return <-decisions, <-decisions
}

// TestRolesAreThoseOfTheMoment has a tool asked for after its user's role was taken
// away.
func TestRolesAreThoseOfTheMoment(t *testing.T) {
	before, after := aroundRemoval(t, toolgroups.Tool{Name: "set_config", Role: toolgroups.RoleAdmin, Effect: toolgroups.ReadOnly}, nil)
	if before.Verdict != agent.Allow || after.Verdict != agent.Deny {
		t.Errorf("verdicts: %v before, %v after", before.Verdict, after.Verdict)
	}
}

// An administrator who is one no more, but whom the settings let in, has an ordinary user's role in the calls of the turn
// that runs: what belongs to others is not theirs to change.
func TestACallHasTheRoleOfTheMoment(t *testing.T) {
	before, after := aroundRemoval(t, toolgroups.Tool{Name: "forget_memory", Effect: toolgroups.Changes}, func(c *bridge.Config) {
		c.Access.Allow = []string{"fake:2"}
		c.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy { return interact.Policy{Rule: interact.Allow} }
	})
	if before.Verdict != agent.Allow || after.Verdict != agent.Allow {
		t.Errorf("verdicts: %+v before, %+v after", before, after)
	}
	if before.Role != toolgroups.RoleAdmin || after.Role != toolgroups.RoleUser {
		t.Errorf("roles: %v before, %v after", before.Role, after.Role)
	}
}

// TestDamagedRecordsLetNobodyIn starts on records of people that nobody could have
// written.
func TestDamagedRecordsLetNobodyIn(t *testing.T) {
	u := newUnclaimed(t)
	u.stop()
	for key, value := range map[string]string{
		"access/fake:1": `{"user":"fake:1","standing":"own`, "access/fake:2": `{"user":"fake:1","standing":"owner"}`,
		"access/fake:3": `{"user":"fake:3","standing":"king"}`, "access/fake:4": ``, "access/": `{"standing":"owner"}`, "access/fake:": `{"user":"fake:","standing":"owner"}`,
		"claim": `{`,
	} {
		if _, err := u.cfg.Store.Put(t.Context(), key, []byte(value), storage.Any); err != nil {
			t.Fatal(err)
		}
	}
	u.start()
	for n, user := range []string{"1", "2", "3", "4"} {
		wantText(t, u.say(from(user, "1", "hello"), n+1), "have no owner yet")
	}
	u.accept(from("5", "1", "/claim x"), from("5", "2", "/claim "+u.code))
	wantText(t, u.untilTold("5", 1)[0], "have no owner yet")
	u.offer()
	wantText(t, u.say(from("6", "1", "/claim "+u.code), 6), "Welcome")
}

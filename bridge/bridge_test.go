package bridge_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/storage"
)

// Two quick messages are answered in order.
func TestMessagesOfOneChatAreAnsweredInOrder(t *testing.T) {
	r := newHarness(t, echo)
	for n := range 20 {
		r.accept(direct(fmt.Sprint(n), fmt.Sprint("message ", n)))
	}
	for n, got := range r.platform.wait(t, 20) {
		if want := fmt.Sprint("re: message ", n); got.text != want || got.repeat {
			t.Errorf("answer %d is %q (repeat %v), want %q", n, got.text, got.repeat, want)
		}
	}
}

func TestADuplicateIsAnsweredOnce(t *testing.T) {
	r := newHarness(t, echo)
	r.accept(direct("1", "one"), direct("1", "one"))
	r.platform.wait(t, 1)
	r.accept(direct("1", "one"))
	r.restart()
	r.accept(direct("1", "one"), direct("2", "two"))
	got := texts(r.platform.wait(t, 2))
	if want := []string{"re: one", "re: two"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("answers: %q, want %q", got, want)
	}
}

func TestNobodyIsLetInByDefault(t *testing.T) {
	asked := func(context.Context, agent.Turn) iter.Seq2[agent.Message, error] {
		t.Error("a stranger reached the agent")
		return func(func(agent.Message, error) bool) {}
	}
	r := newHarness(t, asked, func(c *bridge.Config) { c.Access = access.Access{Allow: []string{"fake:2", "other:*"}} })
	r.accept(direct("1", "let me in"), direct("2", "/clear"), direct("3", "please"))
	other := direct("4", "hello")
	other.User = "3"
	r.accept(other)
	got := r.platform.wait(t, 2)
	if len(got) != 2 || !strings.Contains(got[0].text, "fake:1") || !strings.Contains(got[1].text, "fake:3") {
		t.Errorf("strangers were told %q, want one line each with their id", texts(got))
	}
}

// Two chats share nothing.
func TestChatsShareNothing(t *testing.T) {
	seen := make(chan int, 10)
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		seen <- len(turn.History)
		return echo(ctx, turn)
	})
	for n, chat := range []string{"1", "2", "1:7", "1:8", "12"} {
		m := direct(fmt.Sprint(n), "x")
		id, thread, _ := strings.Cut(chat, ":")
		m.Chat.ID, m.Chat.Thread = id, thread
		r.accept(m)
		r.platform.wait(t, n+1)
		if got := <-seen; got != 1 {
			t.Errorf("chat %s began with %d messages of history", chat, got-1)
		}
	}
}

// slow answers when it is told to, and says when it is asked.
type slow struct {
	asked chan string
	free  chan struct{}
}

func newSlow() *slow { return &slow{asked: make(chan string, 100), free: make(chan struct{})} }

func (s *slow) think(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		text := turn.History[len(turn.History)-1].Text
		if !strings.HasPrefix(text, "slow") {
			echo(ctx, turn)(yield)
			return
		}
		s.asked <- text
		select {
		case <-s.free:
			echo(ctx, turn)(yield)
		case <-ctx.Done():
			yield(agent.Message{}, context.Cause(ctx))
		}
	}
}

// A /clear during a turn keeps its answer out of the new session.
func TestClearEndsTheRunningTurnAndTheWaitingOnes(t *testing.T) {
	s := newSlow()
	r := newHarness(t, s.think)
	r.accept(direct("1", "slow one"), direct("2", "two"), direct("3", "three"))
	<-s.asked
	r.accept(direct("4", "/clear"), direct("5", "after"))
	got := texts(r.platform.wait(t, 2))
	if !strings.Contains(got[0], "cleared") || !strings.Contains(got[0], "2 waiting") || got[1] != "re: after" || len(got) != 2 {
		t.Errorf("answers: %q", got)
	}
	if n := countHistory(t, r, 2); n != 2 {
		t.Errorf("the new session has %d messages, want the question and the answer", n)
	}
}

func countHistory(t *testing.T, r *harness, generation int) int {
	t.Helper()
	c := conversation.Conversation{Chat: chats.Chat{Platform: "fake", ID: "1"}, Generation: generation}
	n := 0
	for _, err := range conversation.Messages(t.Context(), r.cfg.Store, c.Log()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// Clearing twice leaves one empty session at most.
func TestClearTwiceLeavesOneEmptySession(t *testing.T) {
	r := newHarness(t, echo)
	r.accept(direct("1", "x"))
	r.platform.wait(t, 1)
	r.accept(direct("2", "/clear"), direct("3", "/clear"), direct("4", "/new"))
	r.platform.wait(t, 4)
	s, err := conversation.Current(t.Context(), r.cfg.Store, chats.Chat{Platform: "fake", ID: "1"})
	if err != nil || s.Generation != 2 {
		t.Errorf("generation %d (%v), want 2", s.Generation, err)
	}
}

func TestClearInASharedChatNeedsAnAdministrator(t *testing.T) {
	r := newHarness(t, echo, func(c *bridge.Config) { c.Access.Admins = []string{"fake:9"} })
	r.platform.admins = []string{"8"}
	opener := group("3", "7", "/clear")
	opener.Opener = "7"
	r.accept(group("1", "6", "/clear"))
	if got := r.platform.wait(t, 1); strings.Contains(got[0].text, "cleared") {
		t.Errorf("a member cleared the chat: %q", got[0].text)
	}
	for n, m := range []chats.Message{group("2", "8", "/clear"), opener, group("4", "9", "/clear")} {
		r.accept(m)
		if got := r.platform.wait(t, n+2); !strings.Contains(got[n+1].text, "cleared") || got[n+1].to.ReplyTo != m.ID {
			t.Errorf("user %s: %q in reply to %q", m.User, got[n+1].text, got[n+1].to.ReplyTo)
		}
	}
}

// What was dropped never reaches the model.
func TestStopEndsTheTurnAndTellsTheModel(t *testing.T) {
	s := newSlow()
	var history []agent.Message
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		if turn.History[len(turn.History)-1].Text == "last" {
			history = turn.History
		}
		return s.think(ctx, turn)
	})
	r.accept(direct("1", "slow one"), direct("2", "dropped"))
	<-s.asked
	r.accept(direct("3", "/stop"))
	if got := r.platform.wait(t, 1); !strings.HasPrefix(got[0].text, "Stopped.") || !strings.Contains(got[0].text, "One waiting") {
		t.Errorf("stop said %q", got[0].text)
	}
	r.accept(direct("4", "last"))
	r.platform.wait(t, 2)
	var said []string
	for _, m := range history {
		said = append(said, m.Text)
	}
	if len(said) != 3 || said[1] != agent.NoteStopped {
		t.Errorf("the model sees %q", said)
	}
}

func TestCommandsDoNotWaitForATurn(t *testing.T) {
	s := newSlow()
	r := newHarness(t, s.think)
	r.accept(direct("1", "slow one"), direct("2", "waits"))
	<-s.asked
	for n, c := range []string{"/help", "/status", "/tools", "/whoami"} {
		r.accept(direct(fmt.Sprint("c", n), c))
		got := r.platform.wait(t, n+1)[n].text
		for _, want := range [][]string{{"/clear", "`/help more`"}, {"1 more message waits"}, {"Loaded: none"}, {"fake:1"}}[n] {
			if !strings.Contains(got, want) {
				t.Errorf("%s answers %q, want %q in it", c, got, want)
			}
		}
	}
	close(s.free)
	r.platform.wait(t, 6)
}

func TestAnEditOfAWaitingMessageAmendsIt(t *testing.T) {
	s := newSlow()
	r := newHarness(t, s.think)
	r.accept(direct("1", "slow"), direct("2", "wrong"))
	<-s.asked
	edit := direct("2", "right")
	edit.Kind = chats.KindEdit
	late := direct("1", "too late")
	late.Kind = chats.KindEdit
	r.accept(edit, late)
	close(s.free)
	if got := texts(r.platform.wait(t, 2)); got[0] != "re: slow" || got[1] != "re: right" {
		t.Errorf("answers: %q", got)
	}
}

// A waiting message that is edited into a command is carried out where it stands, and not answered.
func TestAnEditMakesACommandOfAWaitingMessage(t *testing.T) {
	for command, want := range map[string]string{"/whoami": "fake:1", "claim " + strings.Repeat("a", 26): "nothing to claim"} {
		s := newSlow()
		r := newHarness(t, s.think)
		r.accept(direct("1", "slow"), direct("2", "who?"))
		<-s.asked
		r.accept(edit(direct("2", ""), command))
		close(s.free)
		if got := texts(r.platform.wait(t, 2)); got[0] != "re: slow" || strings.Contains(got[1], "re: ") || !strings.Contains(got[1], want) {
			t.Errorf("answers: %q", got)
		}
	}
}

func TestAHangingChatDelaysNoOther(t *testing.T) {
	s := newSlow()
	r := newHarness(t, s.think)
	r.accept(direct("1", "slow"))
	<-s.asked
	for n := range 50 {
		m := direct("1", "quick")
		m.Chat.ID, m.User = fmt.Sprint("c", n), fmt.Sprint("u", n)
		r.accept(m)
	}
	for _, got := range r.platform.wait(t, 50) {
		if got.text != "re: quick" {
			t.Errorf("got %q", got.text)
		}
	}
	close(s.free)
	r.platform.wait(t, 51)
}

func TestAFullQueueSaysSo(t *testing.T) {
	s := newSlow()
	r := newHarness(t, s.think, func(c *bridge.Config) { c.Limits.MaxWaiting = 2 })
	r.accept(direct("0", "slow"))
	<-s.asked
	r.accept(direct("1", "a"), direct("2", "b"), direct("3", "c"))
	// It says so at once, not when the queue has drained.
	if got := r.platform.wait(t, 1); !strings.Contains(got[0].text, "waiting") {
		t.Errorf("told %q", texts(got))
	}
	close(s.free)
	got := texts(r.platform.wait(t, 4))
	if got[1] != "re: slow" || got[2] != "re: a" || got[3] != "re: b" {
		t.Errorf("answers: %q", got)
	}
}

// A provider's error is a prompt, clear sentence.
func TestAFailureIsASentenceWithAnIncident(t *testing.T) {
	cases := map[string]struct {
		err  error
		want string
	}{
		"key":    {&agent.ModelError{Kind: agent.KindAuth, Status: 401, Err: errors.New("sk-secret")}, "can't answer right now"},
		"credit": {&agent.ModelError{Kind: agent.KindCredit, Status: 400, Err: errors.New("x")}, "run out of credit"},
		"limit":  {&agent.ModelError{Kind: agent.KindRateLimit, Err: errors.New("x")}, "is busy"},
		"net":    {&agent.ModelError{Kind: agent.KindUnavailable, Err: errors.New("x")}, "could not reach"},
		"rounds": {&agent.ModelError{Kind: agent.KindRounds, Err: errors.New("x")}, "circles"},
		"other":  {errors.New("nil map at agent.go:12 sk-secret"), "went wrong"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newHarness(t, func(context.Context, agent.Turn) iter.Seq2[agent.Message, error] {
				return func(yield func(agent.Message, error) bool) { yield(agent.Message{}, c.err) }
			})
			r.accept(direct("1", "x"))
			got := r.platform.wait(t, 1)[0]
			if !strings.Contains(got.text, c.want) || !got.explains() || strings.Contains(got.text, "sk-secret") {
				t.Errorf("told %+v", got)
			}
		})
	}
}

func TestAPanicIsASentenceToo(t *testing.T) {
	r := newHarness(t, func(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		if turn.History[len(turn.History)-1].Text == "x" {
			panic("boom")
		}
		return echo(t.Context(), turn)
	})
	r.accept(direct("1", "x"), direct("2", "y"))
	got := texts(r.platform.wait(t, 2))
	if strings.Contains(got[0], "boom") || !strings.Contains(got[0], "Incident") || got[1] != "re: y" {
		t.Errorf("answers: %q", got)
	}
}

// One broken platform leaves the other working.
func TestOnePlatformThatGivesUpLeavesTheOthers(t *testing.T) {
	broken := newPlatform()
	broken.run = func(context.Context, chats.Inbox) error { return errors.New("wrong token") }
	r := newHarness(t, echo, func(c *bridge.Config) { c.Platforms = append(c.Platforms, named{broken, "broken"}) })
	r.accept(direct("1", "x"))
	r.platform.wait(t, 1)
}

type named struct {
	*platform
	name string
}

func (n named) Name() string { return n.name }

func TestBadIdsAreDroppedAlone(t *testing.T) {
	r := newHarness(t, echo)
	bad := direct("1", "x")
	bad.User = "a/b"
	elsewhere := direct("2", "x")
	elsewhere.Chat.Platform = "nowhere"
	r.accept(bad, elsewhere, direct("3", "good"))
	if got := texts(r.platform.wait(t, 1)); got[0] != "re: good" {
		t.Errorf("answers: %q", got)
	}
}

func TestMovedChatKeepsItsConversation(t *testing.T) {
	lengths := make(chan int, 2)
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		lengths <- len(turn.History)
		return echo(ctx, turn)
	})
	r.accept(group("1", "5", "before"))
	r.platform.wait(t, 1)
	from, to := chats.Chat{Platform: "fake", ID: "g"}, chats.Chat{Platform: "fake", ID: "s"}
	for range 2 { // the second time changes nothing
		if err := r.bridge.Moved(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
	}
	m := group("2", "5", "after")
	m.Chat = to
	r.accept(m)
	r.platform.wait(t, 2)
	if first, second := <-lengths, <-lengths; first != 1 || second != 3 {
		t.Errorf("the turns saw %d and %d messages, want 1 and 3", first, second)
	}
}

func TestReceiptsAreKept(t *testing.T) {
	r := newHarness(t, echo)
	r.accept(direct("1", "x"))
	r.platform.wait(t, 1)
	r.stop()
	open, done := 0, 0
	for e, err := range r.cfg.Store.List(t.Context(), storage.Range{Prefix: "job/"}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case strings.HasPrefix(e.Key, "job/open/"):
			open++
		default:
			done++
		}
	}
	if open != 0 || done != 1 {
		t.Errorf("%d open jobs and %d receipts, want 0 and 1", open, done)
	}
}

// deaf is a platform that does not receive.
type deaf struct{ *platform }

func (deaf) Name() string  { return "deaf" }
func (deaf) Health() error { return errors.New("connection refused") }

// One platform that receives is enough for a proxy; an administrator is told of the other one.
func TestABotIsReadyIfOnePlatformReceives(t *testing.T) {
	r := newHarness(t, nil, func(c *bridge.Config) {
		c.Access.Admins = []string{"fake:1"}
		c.Platforms = append(c.Platforms, deaf{newPlatform()})
	})
	if err := errors.Join(r.bridge.AwaitReady(t.Context()), r.bridge.Readiness()); err != nil {
		t.Errorf("with one that receives: %v", err)
	}
	r.accept(direct("1", "/status"))
	if got := texts(r.platform.wait(t, 1))[0]; !strings.Contains(got, "Trouble: deaf: connection refused") {
		t.Errorf("/status says %q", got)
	}
	r.stop()
	r.cfg.Platforms = r.cfg.Platforms[1:]
	r.start()
	if err := cmp.Or(r.bridge.AwaitReady(t.Context()), r.bridge.Readiness()); err == nil || err.Error() != "deaf: connection refused" {
		t.Errorf("with none that receives: %v", err)
	}
	begins, err := bridge.New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := begins.Readiness(); err == nil || err.Error() != "the bot is starting" {
		t.Errorf("before it has begun: %v", err)
	}
}

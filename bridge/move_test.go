package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

var (
	oldChat = chats.Chat{Platform: "fake", ID: "g"}
	newChat = chats.Chat{Platform: "fake", ID: "s"}
)

// moved is a message in the chat as which the group goes on.
func moved(id, user, text string) chats.Message {
	m := group(id, user, text)
	m.Chat = newChat
	return m
}

func (r *harness) move() {
	r.t.Helper()
	if err := r.bridge.Moved(r.t.Context(), oldChat, newChat); err != nil {
		r.t.Fatal(err)
	}
}

// A chat that moves takes its turns along.
func TestAMovedChatTakesItsTurnsAlong(t *testing.T) {
	s := newSlow()
	var mu sync.Mutex
	var lengths []int
	running, atMove := 0, -1
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			mu.Lock()
			lengths = append(lengths, len(turn.History))
			running++
			mu.Unlock()
			s.think(ctx, turn)(yield)
			mu.Lock()
			running--
			mu.Unlock()
		}
	}, func(c *bridge.Config) {
		c.Hooks.OnChatMoved = func(context.Context, chats.Chat, chats.Chat) error {
			mu.Lock()
			defer mu.Unlock()
			atMove = running
			return nil
		}
	})
	r.accept(group("1", "5", "slow one"), group("2", "5", "two"))
	<-s.asked
	r.move()
	r.accept(moved("1", "5", "three"), group("3", "5", "late"))
	r.move() // the platform says it again
	close(s.free)
	want := []string{"re: slow one", "re: two", "re: late", "re: three"}
	waitAnswered(t, r.platform, want...)
	got := r.platform.wait(t, len(want))
	for n, one := range got {
		if one.to.Chat != newChat || one.text != want[n] && n < 2 || len(got) != len(want) || one.repeat {
			t.Errorf("answer %d of %d went to %v: %q", n, len(got), one.to.Chat, one.text)
		}
		if one.to.ReplyTo != "" && one.text != "re: three" {
			t.Errorf("%q replies to %s, which is not there", one.text, one.to.ReplyTo)
		}
	}
	if fmt.Sprint(lengths) != "[1 3 5 7]" || atMove != 0 {
		t.Errorf("the turns saw %v messages, %d ran while the chat moved", lengths, atMove)
	}
	// What is known stays known.
	r.accept(group("1", "5", "slow one"), group("2", "5", "two"), moved("4", "5", "end"))
	if got := r.platform.wait(t, 5); got[4].text != "re: end" {
		t.Errorf("answers: %q", texts(got))
	}
	r.accept(moved("5", "5", "/clear"))
	r.platform.wait(t, 6)
}

// Where somebody has written in the new chat before it is told of the move, that conversation goes
// on; the one of the old chat goes on where nobody has.
func TestTheConversationOfTheNewChatGoesOn(t *testing.T) {
	for name, tt := range map[string]struct {
		there bool
		want  string
	}{
		"somebody has written there": {true, "[there re: there next]"},
		"nobody has":                 {false, "[here re: here next]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said []string
				r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
					said = nil
					for _, m := range turn.History {
						said = append(said, m.Text)
					}
					return echo(ctx, turn)
				})
				r.accept(group("1", "5", "here"))
				r.platform.wait(t, 1)
				before := 1
				if tt.there {
					r.accept(moved("1", "5", "there"))
					r.platform.wait(t, 2)
					before++
				}
				r.move()
				synctest.Wait()
				r.accept(moved("2", "5", "next"))
				r.platform.wait(t, before+1)
				r.stop()
				if got := fmt.Sprint(said); got != tt.want {
					t.Errorf("the model saw %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// TestAMovedChatTakesItsApprovalsAlong moves a chat in which a turn waits for a
// decision, with a restart on either side of the move.
//
// A chat that moves takes its turns along.
func TestAMovedChatTakesItsApprovalsAlong(t *testing.T) {
	t.Parallel()
	for _, restart := range []string{"never", "before", "after"} {
		t.Run(restart, func(t *testing.T) {
			w := &execTools{}
			r := w.guarded(t)
			r.accept(group("1", "1", "run a"))
			r.platform.wait(t, 1)
			r.accept(group("2", "1", "two"))
			r.platform.until(t, "hint", func(all []sent) bool { return len(all) == 2 })
			card := r.platform.wait(t, 2)[0]
			if restart == "before" {
				r.restart()
			}
			r.move()
			again := r.platform.wait(t, 3)[2]
			if again.to.Chat != newChat || !strings.Contains(again.text, "May I run this command?") {
				t.Fatalf("to %v: %q", again.to.Chat, again.text)
			}
			if restart == "after" {
				r.restart()
			}
			old := pressOn(card, "p1", "1", card.button(t, "Allow once"))
			r.accept(old)
			if got := r.platform.toast(t, "p1"); got != "These buttons are out of date." {
				t.Errorf("the old buttons: %q", got)
			}
			r.accept(pressOn(again, "p2", "1", again.button(t, "Allow once")))
			waitAnswered(t, r.platform, "ran a", "re: two")
			r.accept(moved("9", "1", "end"))
			waitAnswered(t, r.platform, "re: end")
			r.stop()
			if got := fmt.Sprint(w.commands()); got != "[a]" {
				t.Errorf("ran %s", got)
			}
			for _, one := range r.platform.shown()[2:] {
				if one.to.Chat != newChat {
					t.Errorf("%q went to %v", one.text, one.to.Chat)
				}
			}
		})
	}
}

// What one person alone was shown is shown to nobody else when an administrator of the group converts it.
func TestACardForOnePersonDoesNotMoveWithItsChat(t *testing.T) {
	t.Parallel()
	_, r := lasting(t, group("1", "1", "run a"))
	list := r.command(group("", "1", ""), "/approvals")
	if !list.offers("✕ 1") {
		t.Fatalf("listed: %q", list.text)
	}
	r.move()
	r.accept(moved("9", "1", "end"))
	waitAnswered(t, r.platform, "re: end")
	r.stop()
	for _, one := range r.platform.shown() {
		if one.to.Chat == newChat && one.text != "re: end" {
			t.Errorf("all are shown %q", one.text)
		}
	}
}

// TestAMoveOutlivesAnyKill kills the program at each step of a move with turns in
// the old chat, one of which runs.
//
// A chat that moves takes its turns along.
func TestAMoveOutlivesAnyKill(t *testing.T) {
	t.Parallel()
	diesAtEachStep(t, 40, func(t *testing.T, life *mortal) {
		var effects sync.Map
		var mu sync.Mutex
		seen := map[string]int{}
		think := twoRounds(&effects)
		r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
			mu.Lock()
			defer mu.Unlock()
			for n, m := range turn.History {
				if m.Role == agent.RoleUser {
					seen[m.Text] = max(seen[m.Text], n)
				}
			}
			return think(ctx, turn)
		})
		r.stop()
		store, shown := r.cfg.Store, r.platform
		r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalPlatform{shown, life}}
		r.start()
		before := []chats.Message{group("1", "5", "one"), group("2", "5", "two")}
		after := moved("1", "5", "three")
		for _, m := range before {
			if err := r.bridge.Accept(t.Context(), m); err != nil && !errors.Is(err, errDead) {
				t.Fatal(err)
			}
		}
		if r.bridge.Moved(t.Context(), oldChat, newChat) == nil {
			_ = r.bridge.Accept(t.Context(), after) // dead, maybe
		}
		if life.dies == 0 {
			shown.wait(t, 3)
		} else {
			waitDead(t, life, shown)
		}
		r.stop()
		r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{shown}
		r.start()
		r.accept(before...)
		r.move()
		r.accept(after)
		waitAnswered(t, shown, "re: one", "re: two", "re: three")
		r.stop()
		checkAnswers(t, shown)
		// One conversation, with four messages in each turn.
		if fmt.Sprint(seen) != "map[one:0 three:8 two:4]" {
			t.Errorf("the turns saw their questions at %v", seen)
		}
	})
}

// A chat moves right after a /stop or /clear, and the process dies in between while any one step
// hangs, so that the move begins while the command is carried out again: what it has ended is not
// answered in the new chat either.
func TestAMoveBringsNothingBackThatACommandHasEnded(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"/stop", "/clear"} {
		t.Run(command, func(t *testing.T) {
			hangsAtEachStep(t, 6, func(t *testing.T, life *mortal) {
				s := newSlow()
				r := newHarness(t, s.think, func(cfg *bridge.Config) {
					cfg.Limits.MaxTurns, cfg.Access.Admins = 1, []string{"fake:5"}
				})
				r.stop()
				store, shown, hangs := r.cfg.Store, r.platform, life.hangs
				life.hangs = 0
				r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalPlatform{shown, life}}
				r.start()
				r.accept(in("busy", "1", "slow there")) // the only turn
				soon(t, s.asked)
				r.accept(group("1", "6", "two"), group("2", "7", "three"))
				pass(t, 1)
				life.mu.Lock()
				life.steps, life.hangs = 0, hangs
				life.mu.Unlock()
				accepted := make(chan error, 1)
				go func() { accepted <- r.bridge.Accept(t.Context(), group("3", "5", command)) }()
				pass(t, 3)
				life.end()
				taken := <-accepted == nil
				r.stop()
				r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{shown}
				r.start()
				soon(t, s.asked) // it has the only turn again
				r.move()
				pass(t, 5)
				close(s.free)
				pass(t, 10)
				r.accept(moved("9", "5", "next"))
				pass(t, 10)
				r.stop()
				got := shown.texts()
				for _, text := range got {
					if taken && (text == "re: two" || text == "re: three") {
						t.Errorf("answered after the %s: %q", command, got)
					}
				}
				if got[len(got)-1] != "re: next" {
					t.Errorf("the next answer is missing: %q", got)
				}
			})
		})
	}
}

// heldAt is a store that keeps writes of one key waiting.
type heldAt struct {
	storage.Store
	reached chan struct{}
	free    chan struct{}

	mu  sync.Mutex
	key string
}

func (s *heldAt) hold(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

func (s *heldAt) wait(key string) {
	s.mu.Lock()
	held := key == s.key
	s.mu.Unlock()
	if held {
		select {
		case s.reached <- struct{}{}:
		default:
		}
		<-s.free
	}
}

func (s *heldAt) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	s.wait(key)
	return s.Store.Put(ctx, key, value, rev)
}

func (s *heldAt) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	for _, op := range ops {
		if op.Kind == storage.KindPut {
			s.wait(op.Key)
		}
	}
	return s.Store.Write(ctx, ops...)
}

// elsewhere returns a chat in which nothing was said and that is not answered by who answers in a chat.
func (s several) elsewhere(t *testing.T, chat string) string {
	t.Helper()
	share := func(id string) uint32 {
		h := fnv.New32a()
		_, _ = h.Write([]byte("fake:" + id))
		return h.Sum32() % 256
	}
	owner, _ := s.sides(t, chat)
	for n := 1000; ; n++ {
		probe := fmt.Sprint(n)
		if other, _ := s.sides(t, probe); other == owner {
			continue
		}
		for n := 10_000; ; n++ {
			if id := fmt.Sprint(n); share(id) == share(probe) {
				return id
			}
		}
	}
}

// A chat moves while a /clear is about to write that its conversation is over, or a /clear comes while
// the move is about to write what the conversation of the new chat is: it ends what was said before.
// With two processes one has the old chat, the other the new one.
func TestAClearThatRunsWhileItsChatMovesHolds(t *testing.T) {
	for _, first := range []string{"clear", "move"} {
		for _, replicas := range []int{1, 2} {
			t.Run(fmt.Sprint(first, " ", replicas), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { clearWhileMoving(t, first, replicas) })
			})
		}
	}
}

func clearWhileMoving(t *testing.T, first string, replicas int) {
	var mu sync.Mutex
	saw := map[string]int{}
	think := func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		mu.Lock()
		defer mu.Unlock()
		saw[turn.History[len(turn.History)-1].Text] = len(turn.History)
		return echo(ctx, turn)
	}
	held := &heldAt{reached: make(chan struct{}, 1), free: make(chan struct{})}
	hold := func(cfg *bridge.Config) {
		if cfg.Sharing.Enabled = replicas > 1; held.Store == nil {
			held.Store = cfg.Store
		}
		cfg.Store = held
	}
	all := several{newHarness(t, think, hold)}
	from, to := in("99", "1", "said before"), in("100", "1", "")
	if replicas > 1 {
		all = append(all, newHarness(t, think, hold))
		pass(t, 60)
		to.Chat.ID = all.elsewhere(t, "99")
	}
	all[0].accept(from)
	pass(t, 10)
	begin := map[string]func(){
		"clear": func() { all[0].accept(in("99", "2", "/clear")) },
		"move": func() {
			if err := all[0].bridge.Moved(t.Context(), from.Chat, to.Chat); err != nil {
				t.Error(err)
			}
		},
	}
	held.hold(map[string]string{"clear": "session/fake:99", "move": "session/" + to.Chat.String()}[first])
	begin[first]()
	<-held.reached
	delete(begin, first)
	for _, second := range begin {
		second()
	}
	pass(t, 1)
	close(held.free)
	pass(t, 30)
	all[0].accept(in(to.Chat.ID, "3", "said after"))
	pass(t, 30)
	all.stop(t)
	all.once(t, "re: said before", "re: said after")
	mu.Lock()
	defer mu.Unlock()
	if n := saw["said after"]; n != 1 || !strings.Contains(strings.Join(all.texts(), "\n"), "Conversation cleared") {
		t.Errorf("after the /clear the model saw %d messages: %q", n, all.texts())
	}
}

// A chat moves while a turn runs there, and the move waits for that: a /clear does not, and in the new
// chat as in the old one it begins a conversation in which nothing was said.
func TestAClearEndsTheTurnForWhichAMoveWaits(t *testing.T) {
	for name, chat := range map[string]chats.Chat{"old chat": oldChat, "new chat": newChat} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow()
				var mu sync.Mutex
				var last int
				r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
					mu.Lock()
					defer mu.Unlock()
					last = len(turn.History)
					return s.think(ctx, turn)
				}, func(cfg *bridge.Config) { cfg.Access.Admins = []string{"fake:5"} })
				r.accept(group("1", "5", "slow one"))
				soon(t, s.asked)
				r.move()
				pass(t, 1)
				clear := group("2", "5", "/clear")
				clear.Chat = chat
				r.accept(clear)
				pass(t, 5)
				if got := r.platform.texts(); len(got) != 1 || !strings.HasPrefix(got[0], "Conversation cleared") {
					t.Errorf("while the turn runs: %q", got)
				}
				close(s.free)
				pass(t, 5)
				r.accept(moved("3", "5", "next"))
				pass(t, 5)
				r.stop()
				mu.Lock()
				defer mu.Unlock()
				if got := r.platform.texts(); got[len(got)-1] != "re: next" || last != 1 {
					t.Errorf("after the /clear the model saw %d messages: %q", last, got)
				}
			})
		})
	}
}

// A /stop that is found after a restart ends what waits in its chat, although that has moved.
func TestAStopThatIsFoundEndsWhatItsMovedChatLeftOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		r := newHarness(t, s.think, func(cfg *bridge.Config) { cfg.Limits.MaxTurns = 1 })
		r.accept(group("0", "5", "hello"))
		pass(t, 5)
		r.accept(in("busy", "1", "slow there"))
		soon(t, s.asked) // the only turn
		r.accept(group("1", "5", "two"))
		r.move()
		pass(t, 5)
		r.stop()
		stop := group("2", "5", "/stop")
		jobs := queue.Store{Store: r.cfg.Store, LeaseToken: func(chats.Chat) string { return "former" }, Base: new(atomic.Int64)}
		if added, err := jobs.Add(t.Context(), &queue.Run{Job: queue.Job{Message: stop, Kind: "stop", State: receipts.Open, LeaseToken: "former", Unstarted: true}}); !added || err != nil {
			t.Fatal(added, err)
		}
		r.start()
		pass(t, 5)
		close(s.free)
		pass(t, 10)
		r.accept(moved("3", "5", "next"))
		pass(t, 10)
		r.stop()
		r.want(t, "re: hello", "Stopped. One waiting message was dropped.", "re: slow there", "re: next")
	})
}

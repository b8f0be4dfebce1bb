package bridge_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/platformtest"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
)

// sleep pauses a process at its next step.
func (z *zombie) sleep() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.pauses = 1
}

// takeover is after how many seconds a replica that is paused has been replaced. Its writes
// have not timed out yet.
const takeover = 20

// sleepers are two replicas on one store and one platform. Before one writes anything, falls
// decides whether it is paused then: from there on it writes nothing before it is woken. What
// is read is not held up, as if it had been read right before.
type sleepers struct {
	several
	platform *platform
	lives    []*zombie
	// blind has nobody read what is open in a chat.
	blind atomic.Bool

	mu    sync.Mutex
	falls func(replica int, ops []storage.Op) bool
}

func newSleepers(t *testing.T, think thinker, change ...func(*bridge.Config)) *sleepers {
	t.Helper()
	s := &sleepers{platform: newPlatform()}
	var store storage.Store
	s.several = newSeveral(t, 2, think, append([]func(*bridge.Config){func(cfg *bridge.Config) {
		if store == nil {
			store = cfg.Store
		}
		life, replica := &zombie{awake: make(chan struct{})}, len(s.lives)
		s.lives = append(s.lives, life)
		cfg.Platforms = []chats.Platform{s.platform}
		cfg.Store = &faulty{
			Store: zombieStore{store, life},
			write: func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
				if s.sleeps(replica, ops) {
					life.sleep()
				}
				return do()
			},
			list: func(prefix string) error {
				if s.blind.Load() && strings.HasPrefix(prefix, queue.OpenPrefix+"fake:") {
					return errFaulty
				}
				return nil
			},
		}
	}}, change...)...)
	return s
}

func (s *sleepers) sleeps(replica int, ops []storage.Op) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.falls != nil && s.falls(replica, ops)
}

func (s *sleepers) when(falls func(replica int, ops []storage.Op) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.falls = falls
}

// owner returns who answers in chat 7, and the other one.
func (s *sleepers) owner(t *testing.T) (owner, other int) {
	t.Helper()
	owner = -1
	s.when(func(replica int, ops []storage.Op) bool {
		if appends(ops) {
			owner = replica
		}
		return false
	})
	s.several[0].accept(in("7", "side", "whose is it"))
	pass(t, 10)
	s.when(nil)
	if owner < 0 {
		t.Fatal("nobody answers")
	}
	return owner, 1 - owner
}

func (s *sleepers) wake(replica int) { close(s.lives[replica].awake) }

// outlast pauses a replica whose request waits, until another has replaced it, and lets the request go on before
// the writes of the replica.
func (s *sleepers) outlast(t *testing.T, replica int, goOn chan struct{}) {
	t.Helper()
	s.lives[replica].sleep()
	pass(t, takeover)
	close(goOn)
	pass(t, 1)
	s.wake(replica)
	pass(t, 60)
}

// answers are the answers to all but the first question, each where it came first.
func (s *sleepers) answers() (all []string) {
	for _, text := range s.platform.texts()[1:] {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// questions are all but the first in its conversation.
func (s *sleepers) questions(t *testing.T) (all []string) {
	t.Helper()
	store := s.several[0].cfg.Store
	session, err := conversation.Current(t.Context(), store, in("7", "", "").Chat)
	if err != nil {
		t.Fatal(err)
	}
	for m, err := range conversation.Messages(t.Context(), store, session.Log()) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Role == agent.RoleUser {
			all = append(all, m.Text)
		}
	}
	return all[1:]
}

func appends(ops []storage.Op) bool {
	return slices.ContainsFunc(ops, func(op storage.Op) bool { return op.Kind == storage.KindAppend })
}

// A replica is paused while it takes a chat over, and goes on when that is another's: it takes
// nothing away from that one, which would answer what came later first.
func TestAReplicaThatIsPausedWhileItTakesAChatOverTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := newSlow()
		s := newSleepers(t, slow.think)
		owner, other := s.owner(t)
		s.when(func(replica int, ops []storage.Op) bool {
			return replica == other && ops[0].Key == queue.OpenPrefix+"fake:7/2/text"
		})
		s.several[owner].accept(in("7", "1", "slow one"), in("7", "2", "two"))
		<-slow.asked
		s.lives[owner].sleep()
		pass(t, 60) // the other one takes the chat over, and is paused in it
		s.wake(owner)
		pass(t, 60) // the first has its chat again
		s.several[owner].accept(in("7", "3", "three"))
		pass(t, 1)
		s.blind.Store(true) // it would notice that something was taken away
		s.wake(other)
		pass(t, 1)
		close(slow.free)
		pass(t, 5)
		s.blind.Store(false)
		pass(t, 60)
		if got := s.answers(); !slices.Equal(got, []string{"re: slow one", "re: two", "re: three"}) {
			t.Errorf("answers: %q", got)
		}
		s.stop(t)
	})
}

// A replica is paused while it accepts a message, and goes on when its chat is another's.
func TestAMessageThatIsAcceptedAfterATakeoverIsNotLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSleepers(t, echo)
		owner, other := s.owner(t)
		s.when(func(replica int, ops []storage.Op) bool {
			return replica == owner && ops[0].Key == queue.OpenPrefix+"fake:7/1/text"
		})
		accepted := make(chan error, 1)
		go func() {
			accepted <- s.several[owner].bridge.Accept(t.Context(), in("7", "1", "one"), in("7", "2", "two"))
		}()
		pass(t, takeover)
		s.several[other].accept(in("7", "3", "three"))
		pass(t, 1)
		s.wake(owner)
		if err := <-accepted; err != nil {
			t.Error(err)
		}
		s.several[other].accept(in("7", "4", "four"))
		pass(t, 60)
		if got := s.answers(); !slices.Equal(got, []string{"re: three", "re: one", "re: two", "re: four"}) {
			t.Errorf("answers: %q", got)
		}
		s.stop(t)
	})
}

// The same with a /stop to which there is no room for a reply: it stops what runs by then.
func TestAStopThatIsAcceptedAfterATakeoverStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newSlow()
		s := newSleepers(t, slow.think, func(cfg *bridge.Config) { cfg.Limits.MaxWaitingMember = 1 })
		owner, other := s.owner(t)
		said := func(id, text string) chats.Message {
			m := in("7", id, text)
			m.Direct = false // the bound is for shared chats
			return m
		}
		s.several[owner].accept(said("1", "slow one"), said("2", "two"))
		<-slow.asked
		s.when(func(replica int, ops []storage.Op) bool {
			return replica == owner && ops[0].Key == queue.OpenPrefix+"fake:7/3/text"
		})
		accepted := make(chan error, 1)
		go func() { accepted <- s.several[owner].bridge.Accept(t.Context(), said("3", "/stop")) }()
		<-slow.asked // of the other one
		s.wake(owner)
		if err := <-accepted; err != nil {
			t.Error(err)
		}
		pass(t, 5)
		s.several[other].accept(said("4", "four"))
		pass(t, 5)
		if got := s.answers(); !slices.Equal(got, []string{"re: four"}) {
			t.Errorf("answers: %q", got)
		}
		s.stop(t)
	})
}

// A replica is paused while its answer waits for a rate limit, and goes on when its chat is another's, which has sent
// the answer. The first copy has not left, so no other one comes behind the marked one.
func TestAnAnswerThatWaitedUntilAfterATakeoverIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSleepers(t, echo)
		owner, other := s.owner(t)
		waiting, goOn := make(chan struct{}), make(chan struct{})
		s.platform.hold = sync.OnceFunc(func() {
			close(waiting)
			<-goOn
		})
		s.several[owner].accept(in("7", "1", "one"))
		<-waiting
		s.platform.hold = nil
		s.outlast(t, owner, goOn)
		s.several[other].accept(in("7", "2", "two"))
		pass(t, 10)
		shown := s.platform.shown()[1:]
		if len(shown) != 2 || shown[0].text != "re: one" || !shown[0].repeat || shown[1].text != "re: two" {
			t.Errorf("shown: %+v, want one marked answer to the first message, and one to the second", shown)
		}
		s.stop(t)
	})
}

// A replica is paused while a reaction waits for a rate limit, and goes on when the message has been answered by
// another one, which has removed the reaction.
func TestAReactionThatWaitedUntilAfterATakeoverIsNotAdded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		waiting, goOn := make(chan struct{}), make(chan struct{})
		var held atomic.Bool
		signs := &signing{hold: func() {
			if !held.Swap(true) {
				close(waiting)
				<-goOn
			}
		}}
		s := newSleepers(t, slowly, withSigns(signs))
		owner, _ := s.owner(t)
		s.several[owner].accept(in("7", "1", "slow one, for a quarter of a minute"), in("7", "2", "two"))
		<-waiting
		s.lives[owner].sleep()
		pass(t, 120)
		if got := s.answers(); len(got) != 2 {
			t.Errorf("answers: %q", got)
		}
		close(goOn)
		pass(t, 1)
		s.wake(owner)
		pass(t, 60)
		if shown, calls := signs.seen(); shown != "" {
			t.Errorf("in the end there are %q after %q", shown, calls)
		}
		s.several[owner].noSignsOnRecord()
		s.stop(t)
	})
}

// The same with the recording of an answer.
func TestARecordingThatWaitedUntilAfterATakeoverIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		waiting, goOn := make(chan struct{}), make(chan struct{})
		voice := &speaking{}
		s := newSleepers(t, echo, spokenBy(aloud), func(cfg *bridge.Config) {
			if voice.platform == nil { // otherwise the other replica runs with it
				voice.platform = cfg.Platforms[0].(*platform)
			}
			cfg.Platforms = []chats.Platform{voice}
		})
		owner, _ := s.owner(t)
		before := len(s.platform.texts())
		voice.hold = func() {
			close(waiting)
			<-goOn
		}
		s.several[owner].accept(in("7", "1", "one"))
		<-waiting
		s.outlast(t, owner, goOn)
		if got := s.platform.texts()[before:]; before != 2 || !slices.Equal(got, []string{"re: one"}) {
			t.Errorf("after %d messages there are %q", before, got)
		}
		s.stop(t)
	})
}

// A replica is paused before it stores a card, and goes on when its chat is another's: that one shows it.
func TestACardOfAPausedReplicaIsShownByTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSleepers(t, echo, voting(&voter{}))
		owner, _ := s.owner(t)
		s.when(func(replica int, ops []storage.Op) bool {
			return replica == owner && strings.HasPrefix(ops[0].Key, "card/")
		})
		posted := make(chan struct{})
		go func() {
			defer close(posted)
			s.several[owner].post("key", in("7", "", "").Chat, vote())
		}()
		pass(t, takeover)
		s.wake(owner)
		<-posted
		pass(t, 3)
		if got := s.answers(); !slices.Equal(got, []string{"Tea?"}) {
			t.Errorf("shown are %q", got)
		}
		pass(t, 60)
		s.stop(t)
	})
}

// TestAPausedReplicaKeepsTheOrder pauses a replica at each write about some messages that it
// is given together, until the other one has taken over what is on record, and lets it go on in
// the middle of that one's turn. The messages are asked and answered in their order.
func TestAPausedReplicaKeepsTheOrder(t *testing.T) {
	t.Parallel()
	steps := pausedAt(t, 0)
	if steps < 10 {
		t.Fatalf("only %d steps: the test does not see what is written", steps)
	}
	for step := range platformtest.Steps(t, 1, steps) {
		t.Run(fmt.Sprint("step ", step), func(t *testing.T) { pausedAt(t, step) })
	}
}

func pausedAt(t *testing.T, step int) (steps int) {
	synctest.Test(t, func(t *testing.T) {
		think, goOn := twoRounds(new(sync.Map)), make(chan struct{})
		var held atomic.Bool
		s := newSleepers(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
			if held.Load() {
				<-goOn
			}
			return think(ctx, turn)
		})
		owner, other := s.owner(t)
		s.when(func(replica int, ops []storage.Op) bool {
			about := func(op storage.Op) bool { return op.Log != "" || strings.HasPrefix(op.Key, "job/") }
			if replica == owner && slices.ContainsFunc(ops, about) {
				steps++
			}
			sleeps := replica == owner && steps == step
			if sleeps {
				held.Store(true)
			}
			return sleeps
		})
		accepted := make(chan error, 1)
		go func() {
			accepted <- s.several[owner].bridge.Accept(t.Context(), in("7", "1", "one"), in("7", "2", "two"), in("7", "3", "three"))
		}()
		pass(t, takeover)
		held.Store(false) // of who was paused
		s.wake(owner)
		if err := <-accepted; err != nil {
			t.Error(err)
		}
		pass(t, 1)
		close(goOn)
		pass(t, 30)
		s.several[other].accept(in("7", "4", "four"))
		pass(t, 30)
		if got := s.answers(); !slices.Equal(got, []string{"re: one", "re: two", "re: three", "re: four"}) {
			t.Errorf("answers: %q", got)
		}
		if got := s.questions(t); !slices.Equal(got, []string{"one", "two", "three", "four"}) {
			t.Errorf("questions: %q", got)
		}
		s.stop(t)
	})
	return steps
}

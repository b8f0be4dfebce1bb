package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/platformtest"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// zombie stands for a process that is paused at a step, is taken for dead, and goes on
// when another has taken its work over. Its steps are those of a [mortal].
type zombie struct {
	mu     sync.Mutex
	steps  int
	pauses int // the step at which it is paused; 0 for never
	awake  chan struct{}
}

func (z *zombie) step() {
	z.mu.Lock()
	z.steps++
	paused := z.pauses != 0 && z.steps >= z.pauses
	z.mu.Unlock()
	if paused {
		<-z.awake
	}
}

func (z *zombie) around(effect func() error) error {
	z.step()
	err := effect()
	z.step()
	return err
}

type zombieStore struct {
	storage.Store
	life *zombie
}

func (s zombieStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (got storage.Revision, err error) {
	err = s.life.around(func() error {
		got, err = s.Store.Put(ctx, key, value, rev)
		return err
	})
	return got, err
}

func (s zombieStore) Write(ctx context.Context, ops ...storage.Op) (got storage.Revision, err error) {
	err = s.life.around(func() error {
		got, err = s.Store.Write(ctx, ops...)
		return err
	})
	return got, err
}

func (s zombieStore) Delete(ctx context.Context, key string, rev storage.Revision) error {
	return s.life.around(func() error { return s.Store.Delete(ctx, key, rev) })
}

type zombiePlatform struct {
	*platform
	life *zombie
}

func (p zombiePlatform) Send(ctx context.Context, to chats.Address, part chats.Part) (id string, err error) {
	// What a paused process has not sent yet, it sends when it goes on: no timeout is seen
	// before that.
	err = p.life.around(func() error {
		id, err = p.platform.Send(context.WithoutCancel(ctx), to, part)
		return err
	})
	return id, err
}

// heldPlatform makes each send wait until it is let go on.
type heldPlatform struct {
	*platform
	goOn <-chan struct{}
}

func (p heldPlatform) Send(ctx context.Context, to chats.Address, part chats.Part) (string, error) {
	<-p.goOn
	return p.platform.Send(ctx, to, part)
}

// TestZombie pauses a bridge at every single step of three messages, has another take its
// work over, and lets the first go on: when the other is done, in the middle of its turn,
// or while it sends. What the first writes then is refused: nothing is lost, nothing comes
// twice without a mark, and nothing is written twice.
func TestZombie(t *testing.T) {
	t.Parallel()
	for _, wakes := range []string{"afterwards", "in its turn", "while it sends"} {
		t.Run(wakes, func(t *testing.T) {
			whole := &zombie{}
			takenOver(t, whole, "afterwards")
			if whole.steps < 30 {
				t.Fatalf("only %d steps: the test does not see what is written and sent", whole.steps)
			}
			for pauses := range platformtest.Steps(t, 1, whole.steps) {
				t.Run(fmt.Sprint("step ", pauses), func(t *testing.T) {
					takenOver(t, &zombie{pauses: pauses}, wakes)
				})
			}
		})
	}
}

func takenOver(t *testing.T, life *zombie, wakes string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		life.awake = make(chan struct{})
		var effects sync.Map
		think := twoRounds(&effects)
		r := newHarness(t, think)
		r.stop()
		store, shown := r.cfg.Store, r.platform
		r.cfg.Store, r.cfg.Platforms = zombieStore{store, life}, []chats.Platform{zombiePlatform{shown, life}}
		r.start()
		first, stopFirst := r.bridge, r.stop
		messages := []chats.Message{direct("1", "one"), direct("2", "two"), direct("3", "three")}
		var accepting sync.WaitGroup
		accepting.Go(func() {
			for _, m := range messages {
				if err := first.Accept(t.Context(), m); err != nil {
					t.Errorf("accept: %v", err)
				}
			}
		})
		pass(t, 5)
		r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{shown}
		goOn := make(chan struct{})
		switch wakes {
		case "in its turn":
			r.cfg.Turns.Agent = thinker(func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
				<-goOn
				return think(ctx, turn)
			})
		case "while it sends":
			r.cfg.Platforms = []chats.Platform{heldPlatform{shown, goOn}}
		}
		r.start()
		// The platform delivers again whatever was not accepted, and what was.
		r.accept(messages...)
		pass(t, 60)
		close(life.awake)
		accepting.Wait()
		pass(t, 600)
		close(goOn)
		waitAnswered(t, shown, "re: one", "re: two", "re: three")
		pass(t, 600)
		stopFirst()
		r.stop()
		checkAnswers(t, shown)
		checkRecords(t, store)
		if got := countHistory(t, r, 1); got != 12 {
			t.Errorf("the log has %d messages, want three questions with three each", got)
		}
		for _, question := range []string{"one", "two", "three"} {
			if n, _ := effects.Load(question); n == nil || n.(*atomic.Int32).Load() > 2 {
				t.Errorf("the tool of %q ran %v times", question, n)
			}
		}
	})
}

// checkRecords checks that each message has its receipt and no job is open.
func checkRecords(t *testing.T, store storage.Store) {
	t.Helper()
	for prefix, want := range map[string]int{queue.OpenPrefix: 0, receipts.Prefix: 3} {
		n := 0
		for entry, err := range store.List(t.Context(), storage.Range{Prefix: prefix}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			if prefix == queue.OpenPrefix {
				t.Errorf("still open: %s", entry.Value)
			}
		}
		if n != want {
			t.Errorf("%d records under %s, want %d", n, prefix, want)
		}
	}
}

// TestZombieLosesItsJob takes a job over while its answer has begun: every way to write it
// is refused from then on, to the former holder alone.
func TestZombieLosesItsJob(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "db"))
	former := queue.Store{Store: store, LeaseToken: func(chats.Chat) string { return "former" }, Base: new(atomic.Int64)}
	j := &queue.Run{Job: queue.Job{Message: direct("7", "hello"), State: receipts.Waiting}}
	if added, err := former.Add(t.Context(), j); !added || err != nil {
		t.Fatal(added, err)
	}
	present := queue.Store{Store: store, LeaseToken: func(chats.Chat) string { return "present" }, Base: new(atomic.Int64)}
	open, _, err := present.ListOpen(t.Context(), "", queue.AllChats)
	if err == nil {
		open, err = present.ClaimAll(t.Context(), open)
	}
	if err != nil || len(open) != 1 {
		t.Fatal(open, err)
	}
	for name, write := range map[string]func() error{
		"save":  func() error { return former.Save(t.Context(), j) },
		"close": func() error { return former.Close(t.Context(), j, nil) },
		"check": func() error { return former.Refresh(t.Context(), j) },
	} {
		if err := write(); !errors.Is(err, queue.ErrLost) {
			t.Errorf("%s by the former holder: %v", name, err)
		}
	}
	if added, err := former.Add(t.Context(), &queue.Run{Job: queue.Job{Message: direct("7", "hello")}}); added || err != nil {
		t.Errorf("added again: %v, %v", added, err)
	}
	for range 2 { // the second time as after a write that reported an error
		if err := present.Close(t.Context(), open[0], nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := former.Close(t.Context(), j, nil); !errors.Is(err, queue.ErrLost) {
		t.Errorf("closed by the former holder: %v", err)
	}
	found, err := present.Find(t.Context(), j.Key())
	if err != nil || found == nil || !strings.HasPrefix(found.LeaseToken, "present") {
		t.Errorf("the receipt is %+v, %v", found, err)
	}
}

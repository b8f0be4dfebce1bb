package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/storage"
)

// disk is one that is full for a while, from a write on, or slow all the time.
type disk struct {
	storage.Store
	slow time.Duration
	gone bool // where it is full it cannot be read either

	mu     sync.Mutex
	writes int
	fullAt int // the write at which it is full; 0 for never
	lasts  time.Duration
	until  time.Time
}

func (d *disk) write() error {
	if d.slow > 0 {
		<-time.NewTimer(d.slow).C
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.writes++; d.writes == d.fullAt {
		d.until = time.Now().Add(d.lasts)
	}
	if time.Now().Before(d.until) {
		return fmt.Errorf("write: %w", syscall.ENOSPC)
	}
	return nil
}

func (d *disk) Append(ctx context.Context, log string, after storage.Position, records ...storage.Record) (storage.Position, error) {
	if err := d.write(); err != nil {
		return 0, err
	}
	return d.Store.Append(ctx, log, after, records...)
}

func (d *disk) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	if err := d.write(); err != nil {
		return 0, err
	}
	return d.Store.Write(ctx, ops...)
}

func (d *disk) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	if err := d.write(); err != nil {
		return 0, err
	}
	return d.Store.Put(ctx, key, value, rev)
}

func (d *disk) Delete(ctx context.Context, key string, rev storage.Revision) error {
	if err := d.write(); err != nil {
		return err
	}
	return d.Store.Delete(ctx, key, rev)
}

func (d *disk) read() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone && time.Now().Before(d.until) {
		return fmt.Errorf("read: %w", syscall.ENOSPC)
	}
	return nil
}

func (d *disk) Get(ctx context.Context, key string) (storage.Entry, error) {
	if err := d.read(); err != nil {
		return storage.Entry{}, err
	}
	return d.Store.Get(ctx, key)
}

func (d *disk) List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error] {
	if err := d.read(); err != nil {
		return func(yield func(storage.Entry, error) bool) { yield(storage.Entry{}, err) }
	}
	return d.Store.List(ctx, r)
}

func (d *disk) Records(ctx context.Context, log string, q storage.Query) iter.Seq2[storage.Record, error] {
	if err := d.read(); err != nil {
		return func(yield func(storage.Record, error) bool) { yield(storage.Record{}, err) }
	}
	return d.Store.Records(ctx, log, q)
}

// deliverAll hands over messages as a platform does that gives again what was not
// accepted, and counts how often it had to.
func (r *harness) deliverAll(messages ...chats.Message) (again int) {
	for _, m := range messages {
		for {
			err := r.bridge.Accept(r.t.Context(), m)
			if err == nil {
				break
			}
			if !errors.Is(err, syscall.ENOSPC) {
				r.t.Fatal(err)
			}
			again++
			pass(r.t, 1)
		}
	}
	return again
}

// careful is twoRounds with a record of the start of its call, as the agent has for calls
// with effects: one that was started is not run again.
func careful(effects *sync.Map) thinker {
	return func(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			last, question := turn.History[len(turn.History)-1], ""
			for _, m := range turn.History {
				if m.Role == agent.RoleUser {
					question = m.Text
				}
			}
			next := func(m agent.Message) bool {
				last = m
				return yield(m, nil)
			}
			if last.Role == agent.RoleUser && !next(agent.Message{Role: agent.RoleAssistant, Text: "planning", Calls: []agent.Call{{ID: "0", Name: "x"}}}) {
				return
			}
			result := agent.Message{Role: agent.RoleTool, CallID: "0", Status: agent.StatusOK, Text: "done"}
			if last.Role == agent.RoleStarted {
				result.Status, result.Text = agent.StatusError, agent.TextInterrupted
			}
			if last.Role == agent.RoleAssistant {
				if !next(agent.Message{Role: agent.RoleStarted, CallID: "0"}) {
					return
				}
				n, _ := effects.LoadOrStore(question, new(atomic.Int32))
				n.(*atomic.Int32).Add(1)
			}
			if last.Role == agent.RoleStarted && !next(result) {
				return
			}
			next(agent.Message{Role: agent.RoleAssistant, Text: "re: " + question, Final: true})
		}
	}
}

// TestAFullDiskLosesNothing has the disk full for five minutes, from each write of three
// messages on, or gone altogether. What is not accepted is not acknowledged; all else
// waits.
func TestAFullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		refused := 0
		for full, writes := 1, 1; full <= writes && !t.Failed(); full++ {
			t.Run(fmt.Sprintf("write %d, gone %v", full, gone), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := &disk{gone: gone, fullAt: full, lasts: 5 * time.Minute}
					refused += outlast(t, d)
					writes = d.writes
				})
			})
		}
		if refused == 0 {
			t.Error("no message was refused: the test does not see the writes of Accept")
		}
	}
}

// outlast has three messages answered on a disk and returns how often one was refused.
func outlast(t *testing.T, d *disk) (refused int) {
	t.Helper()
	var effects sync.Map
	r := newHarness(t, careful(&effects))
	r.stop()
	store := r.cfg.Store
	d.Store, r.cfg.Store = store, d
	r.start()
	refused = r.deliverAll(direct("1", "one"), direct("2", "two"), direct("3", "three"))
	r.waitLong(3)
	pass(t, 10*60)
	r.stop()
	checkAnswers(t, r.platform)
	if n := len(r.platform.texts()); n != 3 {
		t.Errorf("%d answers: %q", n, r.platform.texts())
	}
	for _, question := range []string{"one", "two", "three"} {
		if n, _ := effects.Load(question); n == nil || n.(*atomic.Int32).Load() != 1 {
			t.Errorf("the tool of %q did not run once", question)
		}
	}
	if open, done := keys(t, store, "job/open/"), keys(t, store, "job/done/"); open != 0 || done != 3 {
		t.Errorf("%d open jobs and %d receipts, want 0 and 3", open, done)
	}
	if n := countLog(t, store); n != 15 {
		t.Errorf("the log has %d messages, want three questions with four each", n)
	}
	return refused
}

// The store does not answer for so long that a message would be given up, and is back just then: the
// message is answered, and its sender is told nothing else.
func TestAnOutageGivesNoMessageUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int32
		var back atomic.Bool
		r := newHarness(t, echo, func(c *bridge.Config) {
			c.Store = &faulty{
				Store: c.Store,
				write: func(_ []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
					if !back.Load() {
						back.Store(tries.Add(1) == 20)
						return 0, errFaulty
					}
					return do()
				},
				put: func(string) error { // of the dead letter
					back.Store(true)
					return nil
				},
			}
		})
		for r.bridge.Accept(t.Context(), direct("1", "hello")) != nil {
			pass(t, 15)
		}
		pass(t, 10)
		if got, letters := r.platform.texts(), deadLetters(t, r); !slices.Equal(got, []string{"re: hello"}) || len(letters) != 0 {
			t.Errorf("after %d tries: answers %q, dead letters %v", tries.Load(), got, letters)
		}
		r.stop()
	})
}

// countLog counts the messages of the first chat in its first session.
func countLog(t *testing.T, store storage.Store) int {
	t.Helper()
	c, n := conversation.Conversation{Chat: chats.Chat{Platform: "fake", ID: "1"}, Generation: 1}, 0
	for _, err := range conversation.Messages(t.Context(), store, c.Log()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// TestASlowDiskKeepsTheOrder has every write take seconds.
func TestASlowDiskKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo)
		r.stop()
		r.cfg.Store = &disk{Store: r.cfg.Store, slow: 3 * time.Second}
		r.start()
		var want []string
		for n := range 10 {
			r.accept(direct(fmt.Sprint(n), fmt.Sprint("message ", n)))
			want = append(want, fmt.Sprint("re: message ", n))
		}
		r.waitLong(len(want))
		pass(t, 60)
		if got := r.platform.texts(); strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("answers: %q", got)
		}
		r.stop()
	})
}

// waitLong waits in a synctest bubble for as many messages, for up to an hour.
func (r *harness) waitLong(n int) {
	r.t.Helper()
	for range 360 {
		if len(r.platform.texts()) >= n {
			return
		}
		pass(r.t, 10)
	}
	r.t.Fatalf("%d of %d messages were sent", len(r.platform.texts()), n)
}

// TestAFullDiskAtARestartLosesNothing restarts while the disk is full: what was
// accepted before is answered when there is room again.
func TestAFullDiskAtARestartLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		r := newHarness(t, s.think)
		r.accept(direct("1", "slow one"), direct("2", "two"))
		<-s.asked
		r.stop()
		store := r.cfg.Store
		r.cfg.Store = &disk{Store: store, fullAt: 1, lasts: 5 * time.Minute}
		close(s.free)
		r.start()
		pass(t, 60)
		if got := r.platform.texts(); len(got) != 0 {
			t.Errorf("while the disk is full the chat got %q", got)
		}
		again := r.deliverAll(direct("3", "three"))
		r.waitLong(3)
		got := strings.Join(r.platform.texts(), ", ")
		if got != "re: slow one, re: two, re: three" || again == 0 {
			t.Errorf("answers: %s; %d times refused", got, again)
		}
	})
}

// TestAFullDiskIsNoOutage: a send that cannot be recorded is not made, and says
// nothing about the platform.
func TestAFullDiskIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The job, the question with its answer, and that it is being sent.
		full := &disk{fullAt: 3, lasts: time.Minute}
		r, o := newOutage(t, chats.Unknown, false)
		r.stop()
		full.Store, r.cfg.Store = r.cfg.Store, full
		r.start()
		r.accept(direct("1", "a"))
		r.waitLong(1)
		if asked, _ := o.counts(); asked != 0 {
			t.Errorf("asked %d times whether the platform is back", asked)
		}
		if full.until.IsZero() {
			t.Error("the disk was not full")
		}
		r.stop()
	})
}

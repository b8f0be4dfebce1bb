package queue_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// message returns the text with a number of chat 1.
func message(n int) *queue.Run {
	return &queue.Run{Job: queue.Job{
		Message: chats.Message{Chat: chats.Chat{Platform: "fake", ID: "1"}, ID: strconv.Itoa(n), Kind: chats.KindText, User: "u", Direct: true},
		Seq:     int64(n),
	}}
}

// recorded is a store that records the keys that are written.
type recorded struct {
	storage.Store
	mu   sync.Mutex
	keys []string
}

func (r *recorded) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	r.record(key)
	return r.Store.Put(ctx, key, value, rev)
}

func (r *recorded) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	r.record(ops[0].Key)
	return r.Store.Write(ctx, ops...)
}

func (r *recorded) record(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = append(r.keys, key)
}

func open(t *testing.T) *recorded {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return &recorded{Store: store}
}

// leased returns the queue's records in a store, as the holder of the lease with a token sees them.
// The lease is in force while its record exists.
func leased(t *testing.T, store storage.Store, token string) queue.Store {
	t.Helper()
	rev, err := store.Put(t.Context(), "lease/"+token, nil, storage.Absent)
	if err != nil {
		t.Fatal(err)
	}
	return queue.Store{
		Store: store, Base: new(atomic.Int64),
		LeaseToken: func(chats.Chat) string { return token },
		Fence:      func(of string) storage.Op { return storage.Check("lease/"+of, rev) },
	}
}

func end(t *testing.T, store storage.Store, token string) {
	t.Helper()
	entry, err := store.Get(t.Context(), "lease/"+token)
	if err == nil {
		err = store.Delete(t.Context(), entry.Key, entry.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// add stores the jobs with some numbers under the lease of jobs.
func add(t *testing.T, jobs queue.Store, numbers ...int) (some []*queue.Run) {
	t.Helper()
	for _, n := range numbers {
		j := message(n)
		j.LeaseToken = jobs.LeaseToken(j.Message.Chat)
		if stored, err := jobs.Add(t.Context(), j); err != nil || !stored {
			t.Fatalf("%t (%v)", stored, err)
		}
		some = append(some, j)
	}
	return some
}

// Who still works on the first job of a chat, and ends it in the middle of a takeover, finds the jobs
// behind it claimed.
func TestATakeoverClaimsTheLastJobOfAChatFirst(t *testing.T) {
	store := open(t)
	some := add(t, leased(t, store, "old"), 1, 2, 3)
	store.keys = nil
	taken, err := leased(t, store, "new").ClaimAll(t.Context(), some)
	if err != nil || len(taken) != 3 || taken[0].Seq != 1 {
		t.Fatalf("%d claimed (%v)", len(taken), err)
	}
	if last := slices.DeleteFunc(store.keys, func(key string) bool { return key == "lease/new" }); last[0] != queue.OpenPrefix+some[2].Key() {
		t.Errorf("claimed in this order: %q", last)
	}
}

func TestAReplicaWhoseLeaseHasEndedClaimsNothing(t *testing.T) {
	store := open(t)
	old, late := leased(t, store, "old"), leased(t, store, "late")
	j := add(t, old, 1)[0]
	end(t, store, "late")
	if claimed, err := late.Claim(t.Context(), j); claimed || err != nil {
		t.Errorf("claimed %t (%v)", claimed, err)
	}
	if known, err := old.Load(t.Context(), j.Key()); err != nil || known.LeaseToken != "old" {
		t.Errorf("the job belongs to %q (%v)", known.LeaseToken, err)
	}
}

// A write that was prepared under a lease and happens after its end fails.
func TestALeaseThatIsNotHeldFencesEverythingOff(t *testing.T) {
	store := open(t)
	holder := queue.NewLeaseHolder(queue.LeaseHolderConfig{Sharing: queue.Sharing{Enabled: true}, Store: store, Takeover: nothing{}})
	if _, err := store.Write(t.Context(), storage.Put("a", nil, storage.Absent), holder.Fence("lost")); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("the write under a lost lease: %v", err)
	}
}

// A job of unknown fate that belongs to another lease by now is the other process's: its revision must
// not be taken over, under which this process could write it.
func TestAJobInDoubtThatAnotherProcessClaimedIsGone(t *testing.T) {
	store := open(t)
	here, other := leased(t, store, "here"), leased(t, store, "other")
	some := add(t, here, 1, 2)
	moved, err := here.Load(t.Context(), some[0].Key())
	if err != nil {
		t.Fatal(err)
	}
	if claimed, err := other.Claim(t.Context(), moved); !claimed || err != nil {
		t.Fatalf("claimed %t (%v)", claimed, err)
	}
	for _, j := range some {
		j.PossiblyJoined = true
	}
	known, gone, err := here.Reload(t.Context(), some)
	if err != nil || !slices.Equal(known, some[1:]) || !slices.Equal(gone, some[:1]) {
		t.Errorf("open %d, gone %d (%v)", len(known), len(gone), err)
	}
}

// A job of unknown fate takes over all of the message that is stored, such as that its text is not the sender's alone,
// except the chat, which may have moved meanwhile.
func TestTheMessageOfAJobInDoubtIsReadAgainWhole(t *testing.T) {
	store := leased(t, open(t), "here")
	j := add(t, store, 1)[0]
	edited, err := store.Load(t.Context(), j.Key())
	if err != nil {
		t.Fatal(err)
	}
	m := &edited.Message
	m.Text, m.Foreign, m.UserName, m.MentionsBot, m.Skipped = "ask @mallory", true, "Ann", true, []string{"a sticker"}
	if err := store.Put(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	j.PossiblyJoined, j.From, j.Message.Chat.ID = true, j.Message.Chat.ID, "moved"
	want := *m
	want.Chat.ID = "moved"
	if err := store.ReloadOne(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, j.Message); diff != "" {
		t.Errorf("the message is another (-want +got):\n%s", diff)
	}
}

// files keeps a line of each owner in a store.
type files struct{ storage.Store }

func (files) Prepare(context.Context, string) error { return nil }

func (f files) Keep(ctx context.Context, owner string, conditions ...storage.Op) error {
	_, err := f.Write(ctx, append(conditions, storage.Put("files/"+owner, nil, storage.Absent))...)
	return err
}

// Who was paused while another process took over a job does not replace the files that the other keeps.
func TestFilesOfAJobThatAnotherProcessClaimedAreNotKept(t *testing.T) {
	store := open(t)
	here, other := leased(t, store, "here"), leased(t, store, "other")
	j := add(t, here, 1)[0]
	claimed, err := here.Load(t.Context(), j.Key())
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := other.Claim(t.Context(), claimed); !ok || err != nil {
		t.Fatalf("claimed %t (%v)", ok, err)
	}
	if err := here.KeepFiles(t.Context(), files{store}, j); !errors.Is(err, queue.ErrLost) {
		t.Errorf("files are kept: %v", err)
	}
	if err := other.KeepFiles(t.Context(), files{store}, claimed); err != nil {
		t.Errorf("files of who has the job are not kept: %v", err)
	}
}

// nothing takes over chats in which there is nothing to do.
type nothing struct{}

func (nothing) CurrentChat(chat chats.Chat) chats.Chat { return chat }
func (nothing) OnLost(queue.ChatFilter)                {}
func (nothing) IsBusy(queue.ChatFilter) bool           { return false }
func (nothing) TakeOver(context.Context, queue.ChatFilter, func(chats.Chat) string) (func(), error) {
	return func() {}, nil
}

func TestWorkOfOneReplicaEndsWithItsLease(t *testing.T) {
	store := open(t)
	holder := queue.NewLeaseHolder(queue.LeaseHolderConfig{
		Sharing: queue.Sharing{Enabled: true, TTL: time.Minute}, Store: store, Takeover: nothing{}, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- holder.Run(ctx) }()
	begun, ended := make(chan struct{}), make(chan struct{})
	worked := make(chan error, 1)
	go func() {
		worked <- holder.WhileHeld(ctx, queue.Leader, func(held context.Context) error {
			close(begun)
			<-held.Done()
			close(ended)
			return held.Err()
		})
	}()
	<-begun
	holder.Retire()
	<-ended
	if ctx.Err() != nil || holder.Holds(queue.Leader) {
		t.Error("the work ended before its lease")
	}
	cancel()
	if err := errors.Join(<-worked, <-ran); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// worker runs each job until it is told to end. A job with a text waits for a decision about the tool
// that it names.
type worker struct {
	mu   sync.Mutex
	runs []string
	next []string // the first message behind each job that began to wait for a decision
	end  chan struct{}
}

func (w *worker) Work(_, _ context.Context, j *queue.Run) {
	w.mu.Lock()
	w.runs = append(w.runs, j.Message.ID)
	w.mu.Unlock()
	if j.Suspended = j.Message.Text != ""; !j.Suspended {
		<-w.end
	}
}

func (w *worker) Placement(j *queue.Run) queue.Placement {
	return queue.Placement{FromUser: true, Joinable: j.Message.Group != ""}
}

// CountPieces takes messages of a group for pieces of one.
func (w *worker) CountPieces(some []*queue.Run) int {
	of := some[0].Message.Group
	if n := slices.IndexFunc(some, func(j *queue.Run) bool { return of == "" || j.Message.Group != of }); n > 0 {
		return n
	}
	return max(1, len(some)*min(1, len(of)))
}

func (w *worker) PendingDecisions(j *queue.Run) (cards, tools []string) {
	return []string{"card"}, strings.Fields(j.Message.Text)
}

func (w *worker) CanJoin(_, _ *queue.Run) bool { return false }
func (w *worker) OnWaiting(*queue.Run)         {}
func (w *worker) OnSuperseded([]*queue.Run)    {}

func (w *worker) OnSuspended(_ *queue.Suspended, next *queue.Run) {
	if next != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.next = append(w.next, next.Message.ID)
	}
}

func working(t *testing.T) (*queue.Queue, *worker) {
	t.Helper()
	w := &worker{end: make(chan struct{})}
	return queue.New(queue.Config{Workers: w, MaxTurns: 4, Now: time.Now, Log: slog.New(slog.DiscardHandler)}), w
}

// A message that a platform and a watch of the store give at the same time is one job.
func TestAJobThatIsQueuedTwiceRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, w := working(t)
		q.Enqueue(message(1))
		synctest.Wait()
		q.Enqueue(message(1))
		q.Enqueue(message(2))
		close(w.end)
		synctest.Wait()
		if !slices.Equal(w.runs, []string{"1", "2"}) {
			t.Errorf("ran %q", w.runs)
		}
		q.Close(0)
	})
}

// What claims a job anew waits until the job no longer runs here, and nothing behind it begins meanwhile.
func TestAnEvictedJobHasStoppedBeforeItIsClaimedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, w := working(t)
		q.Enqueue(message(1))
		q.Enqueue(message(2))
		synctest.Wait()
		evicted := make(chan func(), 1)
		go func() {
			resume, err := q.Evict(t.Context(), message(1).Key())
			if err != nil {
				t.Error(err)
			}
			evicted <- resume
		}()
		synctest.Wait()
		if len(evicted) > 0 {
			t.Error("the job runs still")
		}
		close(w.end)
		resume := <-evicted
		synctest.Wait()
		if !slices.Equal(w.runs, []string{"1"}) {
			t.Errorf("ran %q before the chat goes on", w.runs)
		}
		resume()
		synctest.Wait()
		if !slices.Equal(w.runs, []string{"1", "2"}) {
			t.Errorf("ran %q", w.runs)
		}
		q.Close(0)
	})
}

// Of the messages behind a job that begins to wait for a decision, the sender of the next one is told.
func TestTheMessageBehindAWaitIsTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, w := working(t)
		asking := message(2)
		asking.Message.Text = "exec"
		for _, j := range []*queue.Run{message(1), asking, message(3), message(4)} {
			q.Enqueue(j)
		}
		close(w.end)
		synctest.Wait()
		if !slices.Equal(w.next, []string{"3"}) {
			t.Errorf("next are %q", w.next)
		}
		q.Close(0)
	})
}

// The question of a call may be shown just when /stop cancels its turn.
func TestACancelledJobWaitsForNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, w := working(t)
		j := message(1)
		q.Enqueue(j)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		if h, _ := q.Park(ctx, j); h == nil || q.Status(j.Message.Chat).Held != h {
			t.Error("the job does not wait")
		}
		command := message(2)
		if q.Unpark(command); q.Status(j.Message.Chat).Held == nil {
			t.Error("the end of a command has ended the wait")
		}
		q.Unpark(j)
		q.Interrupt(j.Message.Chat, 2, context.Canceled)
		cancel()
		if h, _ := q.Park(ctx, j); h != nil || q.Status(j.Message.Chat).Held != nil {
			t.Error("the job waits")
		}
		close(w.end)
		q.Close(0)
	})
}

// The pieces of an album are one message, and none of them waits once its turn has begun.
func TestPiecesOfAMessageWaitNoLongerThanIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, w := working(t)
		shared := func(n int, group string) *queue.Run {
			j := message(n)
			j.Message.Direct, j.Message.Group = false, group
			return j
		}
		for _, j := range []*queue.Run{shared(1, ""), shared(2, "album"), shared(3, "album"), shared(4, "album")} {
			q.Enqueue(j)
		}
		synctest.Wait()
		if _, sender := q.Reserve(shared(9, ""), 0); sender.Waiting != 3 {
			t.Errorf("%d messages of the sender wait", sender.Waiting)
		}
		close(w.end)
		synctest.Wait()
		if _, sender := q.Reserve(shared(9, ""), 0); sender.Waiting != 0 || !slices.Equal(w.runs, []string{"1", "2"}) {
			t.Errorf("%d messages of the sender wait, and %q ran", sender.Waiting, w.runs)
		}
		q.Close(0)
	})
}

// A job that waits for a decision is not overdue, nor is what waits behind it.
func TestStatsTellWhatHangsFromWhatIsUndecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, w := working(t)
		begun := time.Now()
		enqueue := func(n int, chat, asks string) {
			j := message(n)
			j.Message.Chat.ID, j.Message.Text, j.Accepted = chat, asks, begun.Add(time.Duration(n)*time.Minute)
			q.Enqueue(j)
			synctest.Wait()
		}
		at := func(n int) time.Time { return begun.Add(time.Duration(n) * time.Minute) }
		enqueue(1, "1", "exec")
		enqueue(2, "1", "")
		enqueue(3, "2", " ") // for tasks, which wait for no user's decision
		if got, want := q.Stats(), (queue.Stats{Open: 3, Waiting: 1, Oldest: at(1)}); got != want {
			t.Errorf("two wait: %+v, want %+v", got, want)
		}
		for n := range 4 {
			enqueue(4+n, "3", "")
		}
		if got, want := q.Stats(), (queue.Stats{Open: 7, Waiting: 4, Oldest: at(1), OldestDue: at(4)}); got != want {
			t.Errorf("one hangs: %+v, want %+v", got, want)
		}
		close(w.end)
		q.Close(0)
	})
}

// interrupted lets another process act before the first write.
type interrupted struct {
	storage.Store
	once sync.Once
	act  func()
}

func (s *interrupted) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	s.once.Do(s.act)
	return s.Store.Put(ctx, key, value, rev)
}

// Of processes that raise the numbers at the same time, each gives new jobs higher ones than all before.
func TestProcessesThatRaiseTheNumbersTogetherAgree(t *testing.T) {
	t.Parallel()
	const newest = 1_000_000
	store := open(t)
	other := queue.Store{Store: store, Base: new(atomic.Int64)}
	one := queue.Store{Base: new(atomic.Int64), Store: &interrupted{Store: store, act: func() {
		if err := other.RaiseNumbers(t.Context(), newest, 1); err != nil {
			t.Error(err)
		}
	}}}
	if err := one.RaiseNumbers(t.Context(), newest, 1); err != nil {
		t.Fatal(err)
	}
	for _, s := range []queue.Store{one, other} {
		j := &queue.Run{Rev: 10}
		if s.AssignSeq(j); j.Seq <= newest {
			t.Errorf("a new job has the number %d", j.Seq)
		}
	}
}

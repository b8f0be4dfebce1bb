package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/rescue"
	"oneclaw/storage"
)

// takeWrites bounds the jobs that are taken over at the same time; the engine joins them
// into few disk writes.
const takeWrites = 128

// WriteTimeout bounds a write that must happen although its job was interrupted.
const WriteTimeout = 30 * time.Second

// ErrLost says that a job belongs to another process now, or is closed. The process that worked on
// it stops without another word: what it would write is another's to write.
var ErrLost = errors.New("queue: another process has taken the job over")

// Store keeps jobs: open ones and receipts under prefixes of their own. What it writes
// holds only while a job belongs to its holder, so that a process which was taken for dead
// changes nothing any more.
type Store struct {
	Store storage.Store
	// LeaseToken names the lease under which this process works on the jobs of a chat: no other
	// lease has the same. It is empty where another process does that.
	LeaseToken func(chat chats.Chat) string
	// Fence returns the check that is a conflict unless the lease with a token lasts. No job
	// gets a token without it, so a process that takes a chat over finds all that bear an older one.
	// Nil where no other process works with the store.
	Fence func(token string) storage.Op
	// Types make what the records of jobs are read into. Nil is for readers that need neither Args nor Work:
	// a receipt has nothing of them then.
	Types Types
	// Base is what the numbers of jobs begin above.
	Base *atomic.Int64
}

// Add writes a new job, or an unclaimed one that was assigned to this process: see [Job.Unclaimed]. It
// reports false, and writes nothing, where the event is known or a process has claimed it.
// Where another process has taken the chat over, the job is unclaimed when it returns.
func (s Store) Add(ctx context.Context, j *Run) (bool, error) {
	op, err := j.Record()
	if err != nil {
		return false, err
	}
	ops := []storage.Op{op, storage.Check(receipts.Prefix+j.Key(), storage.Absent)}
	if s.Fence != nil {
		ops = s.fenced(j, ops...)
	}
	rev, err := s.Store.Write(ctx, ops...)
	if errors.Is(err, storage.ErrConflict) {
		over, err := s.over(ctx, j)
		if !over || err != nil {
			return false, err
		}
		j.LeaseToken, j.Kind, j.Unclaimed = "", "", true
		if j.Rev != storage.Absent {
			return false, nil // it was one, and still is
		}
		return s.Add(ctx, j)
	}
	if err != nil {
		return false, fmt.Errorf("store job %s: %w", j.Key(), err)
	}
	if j.Rev = rev; j.Seq == 0 {
		j.Seq = s.Base.Load() + int64(rev) //nolint:gosec // no store is written 2^63 times
	}
	return true, nil
}

// Discard removes an unclaimed job that no process needs; what was never written needs none.
func (s Store) Discard(ctx context.Context, j *Run) error {
	if j.Rev == storage.Absent {
		return nil
	}
	return remove(ctx, s.Store, OpenPrefix+j.Key(), j.Rev)
}

// Save writes a job that this process works on.
func (s Store) Save(ctx context.Context, j *Run) error {
	return s.WriteFenced(ctx, j, func() error { return s.Put(ctx, j) })
}

// SaveAlways is Save where the write must happen although ctx may have ended.
func (s Store) SaveAlways(ctx context.Context, j *Run) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), WriteTimeout)
	defer cancel()
	return s.Save(ctx, j)
}

// Put writes a job over its revision.
func (s Store) Put(ctx context.Context, j *Run) error {
	op, err := j.Record()
	if err != nil {
		return err
	}
	rev, err := s.Store.Put(ctx, op.Key, op.Value, op.Rev)
	if err != nil {
		return fmt.Errorf("store job %s: %w", j.Key(), err)
	}
	j.Rev = rev
	return nil
}

// WriteFenced makes a write that is about the revision of a job. Where that is a conflict because
// an earlier write happened although it reported an error, it is made again; where the job
// belongs to another process or is gone, the error is [ErrLost].
func (s Store) WriteFenced(ctx context.Context, j *Run, write func() error) error {
	for {
		was := j.Rev
		err := write()
		if !errors.Is(err, storage.ErrConflict) {
			return err
		}
		if lost := s.Check(ctx, j); lost != nil {
			return lost
		}
		if j.Rev == was {
			return err // it is about something else
		}
	}
}

// Check returns nil where a job belongs to this process, with its present revision and what is
// written beside who works on it.
func (s Store) Check(ctx context.Context, j *Run) error {
	known, err := s.Load(ctx, j.Key())
	switch {
	case err != nil:
		return err
	case known == nil || known.LeaseToken != j.LeaseToken && known.Rev != j.Rev:
		return fmt.Errorf("%s: %w", j.Key(), ErrLost)
	}
	j.Rev, j.Joined = known.Rev, known.Joined
	if work, ok := j.Work.(Adopter); ok {
		work.Adopt(known.Work)
	}
	return nil
}

// Claim makes a job that another lease has left this one's, as it is on disk by then. It
// reports false where it is gone, or this one's already, or the chat is another's by now.
func (s Store) Claim(ctx context.Context, j *Run) (bool, error) {
	for {
		holder := s.LeaseToken(j.Message.Chat)
		if holder == "" {
			return false, nil
		}
		j.LeaseToken = holder
		err := s.writeClaimed(ctx, j)
		if !errors.Is(err, storage.ErrConflict) {
			// Where the disk is full, the first write that succeeds claims it.
			s.AssignSeq(j)
			return true, context.Cause(ctx)
		}
		// The other one is not dead, or the chat is another's.
		known, err := s.Load(ctx, j.Key())
		if known == nil || err != nil || known.LeaseToken == j.LeaseToken || known.Rev == j.Rev {
			return false, err
		}
		*j = *known
	}
}

// Touch writes the record of a job once more as it is, to find out whether the store takes what
// is written about the job. The error is [ErrLost] where that is another process's, or closed.
func (s Store) Touch(ctx context.Context, j *Run) error {
	known, err := s.Store.Get(ctx, OpenPrefix+j.Key())
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("%s: %w", j.Key(), ErrLost)
	}
	if err != nil {
		return fmt.Errorf("read job %s: %w", j.Key(), err)
	}
	if its, err := s.Read(known); err == nil && its.LeaseToken != j.LeaseToken && its.Rev != j.Rev {
		return fmt.Errorf("%s: %w", j.Key(), ErrLost)
	}
	rev, err := s.Store.Put(ctx, known.Key, known.Value, known.Revision)
	if errors.Is(err, storage.ErrConflict) {
		return nil // the store takes writes, of others as well
	}
	if err != nil {
		return fmt.Errorf("store job %s: %w", j.Key(), err)
	}
	if j.Rev == known.Revision {
		j.Rev = rev
	}
	return nil
}

// Close puts a receipt in the place of a job. Where the store can, it does so together with the
// next write that comes before due; nil for at once.
func (s Store) Close(ctx context.Context, j *Run, due <-chan struct{}) error {
	err := s.WriteFenced(ctx, j, func() error {
		ops, err := j.Receipt().Ops(storage.Absent) // as it is known by now
		if err != nil {
			return err
		}
		if ops = append(ops, storage.Delete(OpenPrefix+j.Key(), j.Rev)); due == nil {
			_, err = s.Store.Write(ctx, ops...)
		} else {
			_, err = storage.WriteDeferred(ctx, s.Store, due, ops...)
		}
		return err
	})
	if errors.Is(err, ErrLost) && s.closed(ctx, j) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("close job %s: %w", j.Key(), err)
	}
	return nil
}

// closed reports whether this lease has closed a job: the write that did reported an
// error.
func (s Store) closed(ctx context.Context, j *Run) bool {
	known, err := s.receipt(ctx, j.Key())
	return err == nil && known != nil && known.LeaseToken == j.LeaseToken
}

// WriteReceipt writes the receipt of a message that is not answered, over a revision of one.
func (s Store) WriteReceipt(ctx context.Context, j *Run, rev storage.Revision) error {
	ops, err := j.Receipt().Ops(rev)
	if err == nil {
		if j.Rev != storage.Absent { // it was unclaimed
			ops = append(ops, storage.Delete(OpenPrefix+j.Key(), j.Rev))
		}
		_, err = s.Store.Write(ctx, ops...)
	}
	if err != nil {
		return fmt.Errorf("store receipt %s: %w", j.Key(), err)
	}
	return nil
}

// Closed reports whether there is a receipt under a key, whole or damaged.
func (s Store) Closed(ctx context.Context, key string) (bool, error) {
	_, err := s.Store.Get(ctx, receipts.Prefix+key)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the receipt of %s: %w", key, err)
	}
	return true, nil
}

// Open returns the open jobs in the chats that pass, in their order, and the
// records that do not decode. Under names what the keys of the chats begin with; empty for
// all.
func (s Store) Open(ctx context.Context, under string, passes func(chats.Chat) bool) (open []*Run, broken []error, err error) {
	for entry, err := range s.Store.List(ctx, storage.Range{Prefix: OpenPrefix + under}) {
		if err != nil {
			return nil, nil, fmt.Errorf("list open jobs: %w", err)
		}
		m, ok := MessageOf(entry.Key, OpenPrefix)
		if ok && !passes(m.Chat) {
			continue
		}
		if j, err := s.Read(entry); err != nil {
			broken = append(broken, err)
		} else {
			open = append(open, j)
		}
	}
	slices.SortFunc(open, Order)
	return open, broken, nil
}

// ClaimAll makes jobs this lease's that others have left, and returns those that it got, in
// their order. In each chat it begins with the last: who still works on the first does not go
// on to one that is not taken yet.
func (s Store) ClaimAll(ctx context.Context, some []*Run) (taken []*Run, err error) {
	byChat := make(map[chats.Chat][]*Run)
	for _, j := range some {
		byChat[j.Message.Chat] = append(byChat[j.Message.Chat], j)
	}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(takeWrites)
	for _, line := range byChat {
		group.Go(func() error {
			return rescue.Do(func() error {
				for _, j := range slices.Backward(line) {
					if got, err := s.Claim(ctx, j); err != nil {
						return err
					} else if got {
						mu.Lock()
						taken = append(taken, j)
						mu.Unlock()
					}
				}
				return nil
			})
		})
	}
	err = group.Wait()
	slices.SortFunc(taken, Order)
	return taken, err
}

// Load returns an open job; nil where there is none.
func (s Store) Load(ctx context.Context, key string) (*Run, error) {
	entry, err := s.Store.Get(ctx, OpenPrefix+key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the job %s: %w", key, err)
	}
	return s.Read(entry)
}

// Find returns what is known of a job, open or closed; nil where there is none.
func (s Store) Find(ctx context.Context, key string) (*receipts.Receipt, error) {
	j, err := s.Load(ctx, key)
	if err != nil {
		return nil, err
	}
	if j != nil {
		return j.Receipt(), nil
	}
	return s.receipt(ctx, key)
}

func (s Store) receipt(ctx context.Context, key string) (*receipts.Receipt, error) {
	entry, err := s.Store.Get(ctx, receipts.Prefix+key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the receipt of %s: %w", key, err)
	}
	return s.ReadReceipt(entry)
}

// ReadReceipt decodes a receipt. One of a message that was never a job has the number of its write.
func (s Store) ReadReceipt(entry storage.Entry) (*receipts.Receipt, error) {
	r := new(receipts.Receipt)
	if err := Decode(entry, r); err != nil {
		return nil, err
	}
	if r.Seq == 0 && s.Base != nil {
		r.Seq = s.Base.Load() + int64(entry.Revision) //nolint:gosec // no store is written 2^63 times
	}
	return r, nil
}

// Read decodes the record of an open job.
func (s Store) Read(entry storage.Entry) (*Run, error) {
	j := &Run{Rev: entry.Revision, Found: true}
	if s.Types != nil {
		j.Args, j.Work = s.Types(chats.Kind(entry.Key[strings.LastIndexByte(entry.Key, '/')+1:]))
	}
	if err := Decode(entry, &j.Job); err != nil {
		return nil, err
	}
	s.AssignSeq(j)
	return j, nil
}

// OpenBy yields the open jobs of a user, as platform:id, under a prefix of their keys; what is
// damaged is left out.
func (s Store) OpenBy(ctx context.Context, under, by string) iter.Seq2[*Run, error] {
	return func(yield func(*Run, error) bool) {
		for entry, err := range s.Store.List(ctx, storage.Range{Prefix: OpenPrefix + under}) {
			if err != nil {
				yield(nil, fmt.Errorf("list open jobs: %w", err))
				return
			}
			if j, err := s.Read(entry); err == nil && j.Message.User != "" && j.Message.By() == by && !yield(j, nil) {
				return
			}
		}
	}
}

func remove(ctx context.Context, kv storage.KV, key string, rev storage.Revision) error {
	if err := kv.Delete(ctx, key, rev); err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("remove %s: %w", key, err)
	}
	return nil
}

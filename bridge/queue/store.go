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

// takeWrites bounds how many jobs are claimed at the same time; the storage engine joins them into few
// disk writes.
const takeWrites = 128

// WriteTimeout bounds a write that must happen although its job was interrupted.
const WriteTimeout = 30 * time.Second

// ErrLost says that another process has a job now, or that it is closed. The process that worked on it
// stops without further writes, which are up to the other one.
var ErrLost = errors.New("queue: another process has taken the job over")

// Store stores jobs: open ones and receipts under different prefixes. Its writes succeed only while a
// job has its holder's token, so that a process that was presumed dead changes nothing any more.
type Store struct {
	Store storage.Store
	// LeaseToken returns the token of the lease under which this process works on the jobs of a chat;
	// no other lease has the same. It is empty if another process owns the chat.
	LeaseToken func(chat chats.Chat) string
	// Fence returns the check that conflicts unless the lease with a token is in force. No job gets a
	// token without it, so that a process that takes over a chat finds all jobs with an older one. Nil
	// if no other process uses the store.
	Fence func(token string) storage.Op
	// Types provides the values to decode jobs into. Nil is for readers that need neither Args nor
	// Work: receipts they derive lack these.
	Types Types
	// Base is the base of job numbers.
	Base *atomic.Int64
}

// Add writes a new job, or an unclaimed one that this process has claimed: see [Job.Unclaimed]. It
// returns false, and writes nothing, if the event is known or a process has claimed it. If another
// process has taken over the chat, the job is unclaimed when it returns.
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
			return false, nil // it was unclaimed, and still is
		}
		return s.Add(ctx, j)
	}
	if err != nil {
		return false, fmt.Errorf("store job %s: %w", j.Key(), err)
	}
	if j.Rev = rev; j.Seq == 0 {
		j.Seq = s.Base.Load() + int64(rev) //nolint:gosec // a store is never written 2^63 times
	}
	return true, nil
}

// Discard deletes an unclaimed job that is not needed; one that was never written needs nothing.
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

// SaveAlways is Save for a write that must happen although ctx may have ended.
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

// WriteFenced makes a write that depends on the revision of a job. After a conflict because an earlier
// write succeeded although it returned an error, it writes again; if the job belongs to another process
// or is gone, the error is [ErrLost].
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
			return err // the conflict has another cause
		}
	}
}

// Check returns nil if a job belongs to this process, and then updates its revision and what another
// goroutine has written to it.
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

// Claim moves a job from another lease to this one. It returns false if the job is gone, is this one's
// already, or another process owns the chat now.
func (s Store) Claim(ctx context.Context, j *Run) (bool, error) {
	for {
		holder := s.LeaseToken(j.Message.Chat)
		if holder == "" {
			return false, nil
		}
		j.LeaseToken = holder
		err := s.writeClaimed(ctx, j)
		if !errors.Is(err, storage.ErrConflict) {
			// If the disk is full, the first write that succeeds claims it.
			s.AssignSeq(j)
			return true, context.Cause(ctx)
		}
		// The other process is not dead, or another one owns the chat.
		known, err := s.Load(ctx, j.Key())
		if known == nil || err != nil || known.LeaseToken == j.LeaseToken || known.Rev == j.Rev {
			return false, err
		}
		*j = *known
	}
}

// Touch rewrites the record of a job unchanged, to find out whether the store accepts writes of the
// job. The error is [ErrLost] if another process has it, or it is closed.
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
		return nil // the store accepts writes, including those of others
	}
	if err != nil {
		return fmt.Errorf("store job %s: %w", j.Key(), err)
	}
	if j.Rev == known.Revision {
		j.Rev = rev
	}
	return nil
}

// Close replaces a job by its receipt. If the store supports it, it does so together with the next
// write before due; nil means at once.
func (s Store) Close(ctx context.Context, j *Run, due <-chan struct{}) error {
	err := s.WriteFenced(ctx, j, func() error {
		ops, err := j.Receipt().Ops(storage.Absent) // in its present state
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

// closed reports whether this lease has closed a job with a write that returned an error.
func (s Store) closed(ctx context.Context, j *Run) bool {
	known, err := s.receipt(ctx, j.Key())
	return err == nil && known != nil && known.LeaseToken == j.LeaseToken
}

// WriteReceipt writes the receipt of a message that is not answered, over the revision rev.
func (s Store) WriteReceipt(ctx context.Context, j *Run, rev storage.Revision) error {
	ops, err := j.Receipt().Ops(rev)
	if err == nil {
		if j.Rev != storage.Absent { // the job was unclaimed
			ops = append(ops, storage.Delete(OpenPrefix+j.Key(), j.Rev))
		}
		_, err = s.Store.Write(ctx, ops...)
	}
	if err != nil {
		return fmt.Errorf("store receipt %s: %w", j.Key(), err)
	}
	return nil
}

// Closed reports whether there is a receipt under a key, intact or damaged.
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

// Open returns the open jobs in the selected chats, in their order, and the errors of records that do
// not decode. under is a prefix of the keys; empty for all.
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

// ClaimAll moves jobs from other leases to this one, and returns those that it got, in their order. In
// each chat it begins with the last: a process that still works on the first then finds no next one.
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

// Load returns an open job; nil if there is none.
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

// Find returns the receipt of a closed job, or that of an open job in its present state; nil if there
// is none.
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

// ReadReceipt decodes a receipt. A message that was never a job has the number of the receipt's write.
func (s Store) ReadReceipt(entry storage.Entry) (*receipts.Receipt, error) {
	r := new(receipts.Receipt)
	if err := Decode(entry, r); err != nil {
		return nil, err
	}
	if r.Seq == 0 && s.Base != nil {
		r.Seq = s.Base.Load() + int64(entry.Revision) //nolint:gosec // a store is never written 2^63 times
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

// OpenBy yields the open jobs of a user, platform:id, under a prefix of their keys. It skips damaged
// ones.
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

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

// claimWrites bounds the concurrent claims of jobs. The storage engine groups them into a few disk
// writes.
const claimWrites = 128

// WriteTimeout bounds a write that must happen even if its job was interrupted.
const WriteTimeout = 30 * time.Second

// ErrLost is returned for a job that another process has taken over or closed. The process that worked
// on the job then stops without further writes.
var ErrLost = errors.New("queue: another process has taken the job over")

// Store stores open jobs and receipts, under different prefixes. A write of a job succeeds only while
// the job has the token of its process's lease, so that a process presumed dead changes nothing.
type Store struct {
	Store storage.Store
	// LeaseToken returns the token of the lease under which this process works on the jobs of a chat.
	// Each lease has its own. It is empty if another process owns the chat.
	LeaseToken func(chat chats.Chat) string
	// Fence returns an operation that makes a write fail with ErrConflict unless the lease with the
	// given token is in force. Every write that gives a job a token contains the operation, so that a
	// process that takes over a chat finds all jobs with an older token. Nil if no other process uses
	// the store.
	Fence func(token string) storage.Op
	// NewData returns the values to decode jobs into. Nil is for readers that need neither Args nor
	// Work; receipts that they derive from open jobs lack these.
	NewData DataFactory
	// Base is the base of job numbers.
	Base *atomic.Int64
}

// Add writes a new job, or an unclaimed job that this process claims; see [Job.Unclaimed], and with it
// more operations. It returns false, and writes nothing, if the event is stored already, another process
// has claimed it, or one of the operations conflicts. If another process has taken over the chat, Add
// stores the job as unclaimed.
func (s Store) Add(ctx context.Context, j *Run, more ...storage.Op) (bool, error) {
	added, err := j.NewOps()
	if err != nil {
		return false, err
	}
	ops := append(slices.Concat(more, added), storage.Check(receipts.Prefix+j.Key(), storage.Absent))
	if s.Fence != nil {
		ops = s.withFence(j, ops...)
	}
	rev, err := s.Store.Write(ctx, ops...)
	if errors.Is(err, storage.ErrConflict) {
		over, err := s.leaseEnded(ctx, j)
		if !over || err != nil {
			return false, err
		}
		j.LeaseToken, j.Kind, j.Unclaimed = "", "", true
		if j.Rev != storage.Absent {
			return false, nil // the job was unclaimed, and still is
		}
		return s.Add(ctx, j, more...)
	}
	if err != nil {
		return false, fmt.Errorf("store job %s: %w", j.Key(), err)
	}
	if j.Rev = rev; j.Seq == 0 {
		j.Seq = s.Base.Load() + int64(rev) //nolint:gosec // a store is never written 2^63 times
	}
	return true, nil
}

// Discard deletes an unclaimed job. For a job that was never written, it does nothing.
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

// SaveAlways is Save for a write that must happen even if ctx has ended.
func (s Store) SaveAlways(ctx context.Context, j *Run) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), WriteTimeout)
	defer cancel()
	return s.Save(ctx, j)
}

// Put writes a job if its record still has the revision j.Rev.
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

// WriteFenced calls write, which depends on the revision of a job. If write conflicts because an earlier
// write took effect although it returned an error, WriteFenced calls write again. If the job belongs to
// another process or is gone, it returns [ErrLost].
func (s Store) WriteFenced(ctx context.Context, j *Run, write func() error) error {
	for {
		was := j.Rev
		err := write()
		if !errors.Is(err, storage.ErrConflict) {
			return err
		}
		if lost := s.Refresh(ctx, j); lost != nil {
			return lost
		}
		if j.Rev == was {
			return err // the conflict has another cause
		}
	}
}

// Refresh updates the revision of a job, and the fields that other goroutines store. It returns
// [ErrLost] if the job no longer belongs to this process.
func (s Store) Refresh(ctx context.Context, j *Run) error {
	known, err := s.Load(ctx, j.Key())
	switch {
	case err != nil:
		return err
	case known == nil || known.LeaseToken != j.LeaseToken && known.Rev != j.Rev:
		return fmt.Errorf("%s: %w", j.Key(), ErrLost)
	}
	j.Adopt(known)
	return nil
}

// Adopt copies the revision of a job's record, and the fields that other goroutines store.
func (j *Run) Adopt(known *Run) {
	j.Rev, j.Joined = known.Rev, known.Joined
	if work, ok := j.Work.(Adopter); ok {
		work.Adopt(known.Work)
	}
}

// Claim moves a job from another lease to this process's lease of the chat. It returns false if the job
// is gone or has that lease already, or if another process now owns the chat.
func (s Store) Claim(ctx context.Context, j *Run) (bool, error) {
	for {
		holder := s.LeaseToken(j.Message.Chat)
		if holder == "" {
			return false, nil
		}
		j.LeaseToken = holder
		err := s.writeClaimed(ctx, j)
		if !errors.Is(err, storage.ErrConflict) {
			// After another error, such as a full disk, the first write that succeeds claims the job.
			s.AssignSeq(j)
			return true, context.Cause(ctx)
		}
		// Another process has written the job, or owns the chat now.
		known, err := s.Load(ctx, j.Key())
		if known == nil || err != nil || known.LeaseToken == j.LeaseToken || known.Rev == j.Rev {
			return false, err
		}
		*j = *known
	}
}

// Touch rewrites the record of a job, to find out whether the store accepts writes of this job. Only the
// job's number is added, which a first record lacks. It returns [ErrLost] if another process has taken over or closed the job.
func (s Store) Touch(ctx context.Context, j *Run) error {
	known, err := s.Store.Get(ctx, OpenPrefix+j.Key())
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("%s: %w", j.Key(), ErrLost)
	}
	if err != nil {
		return fmt.Errorf("read job %s: %w", j.Key(), err)
	}
	if its, damaged := s.DecodeJob(known); damaged == nil {
		if its.LeaseToken != j.LeaseToken && its.Rev != j.Rev {
			return fmt.Errorf("%s: %w", j.Key(), ErrLost)
		}
		op, err := its.Record()
		if err != nil {
			return err
		}
		known.Value = op.Value
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

// Close replaces a job by its receipt. If the store supports it, the write is deferred until the next
// write, at most until due is closed. If due is nil, it is not deferred.
func (s Store) Close(ctx context.Context, j *Run, due <-chan struct{}) error {
	err := s.WriteFenced(ctx, j, func() error {
		ops, err := j.Receipt().Ops(storage.Absent) // for the current state
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
	if errors.Is(err, ErrLost) && s.IsClosed(ctx, j) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("close job %s: %w", j.Key(), err)
	}
	return nil
}

// IsClosed reports whether a write that returned an error has closed a job under its lease.
func (s Store) IsClosed(ctx context.Context, j *Run) bool {
	known, err := s.loadReceipt(ctx, j.Key())
	return err == nil && known != nil && known.LeaseToken == j.LeaseToken
}

// WriteReceipt writes the receipt of a message that is not answered, and deletes its unclaimed job, if
// there is one. ErrConflict means that another process has stored, claimed or closed the message.
func (s Store) WriteReceipt(ctx context.Context, j *Run) error {
	ops, err := j.Receipt().Ops(storage.Absent)
	if err == nil {
		gone := storage.Check(OpenPrefix+j.Key(), storage.Absent)
		if j.Rev != storage.Absent {
			gone = storage.Delete(OpenPrefix+j.Key(), j.Rev)
		}
		_, err = s.Store.Write(ctx, append(ops, gone)...)
	}
	if err != nil {
		return fmt.Errorf("store receipt %s: %w", j.Key(), err)
	}
	return nil
}

// HasReceipt reports whether there is a receipt under a key, intact or damaged.
func (s Store) HasReceipt(ctx context.Context, key string) (bool, error) {
	entry, err := storage.Find(ctx, s.Store, receipts.Prefix+key)
	return entry.Revision != storage.Absent, err
}

// ListOpen returns the open jobs in the selected chats, in order, and the errors of records that do not
// decode. Only keys with the prefix under are read.
func (s Store) ListOpen(ctx context.Context, under string, passes func(chats.Chat) bool) (open []*Run, broken []error, err error) {
	for entry, err := range s.Store.List(ctx, storage.Range{Prefix: OpenPrefix + under}) {
		if err != nil {
			return nil, nil, fmt.Errorf("list open jobs: %w", err)
		}
		m, ok := MessageOf(entry.Key, OpenPrefix)
		if ok && !passes(m.Chat) {
			continue
		}
		if j, err := s.DecodeJob(entry); err != nil {
			broken = append(broken, err)
		} else {
			open = append(open, j)
		}
	}
	slices.SortFunc(open, Compare)
	return open, broken, nil
}

// ClaimAll moves jobs from other leases to this process's, and returns those that it claimed, in order.
// In each chat it begins with the last, so that a process that still works on the first finds no next.
func (s Store) ClaimAll(ctx context.Context, some []*Run) (taken []*Run, err error) {
	byChat := make(map[chats.Chat][]*Run)
	for _, j := range some {
		byChat[j.Message.Chat] = append(byChat[j.Message.Chat], j)
	}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(claimWrites)
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
	slices.SortFunc(taken, Compare)
	return taken, err
}

// Load returns an open job; nil if there is none.
func (s Store) Load(ctx context.Context, key string) (*Run, error) {
	entry, err := storage.Find(ctx, s.Store, OpenPrefix+key)
	if err != nil || entry.Revision == storage.Absent {
		return nil, err
	}
	return s.DecodeJob(entry)
}

// Find returns the receipt of a closed job, or one derived from the current state of an open job; nil if
// there is no such job.
func (s Store) Find(ctx context.Context, key string) (*receipts.Receipt, error) {
	j, err := s.Load(ctx, key)
	if err != nil {
		return nil, err
	}
	if j != nil {
		return j.Receipt(), nil
	}
	return s.loadReceipt(ctx, key)
}

func (s Store) loadReceipt(ctx context.Context, key string) (*receipts.Receipt, error) {
	entry, err := storage.Find(ctx, s.Store, receipts.Prefix+key)
	if err != nil || entry.Revision == storage.Absent {
		return nil, err
	}
	return s.DecodeReceipt(entry)
}

// DecodeReceipt decodes a receipt. A receipt without a job's number gets the number of its own write.
func (s Store) DecodeReceipt(entry storage.Entry) (*receipts.Receipt, error) {
	r := new(receipts.Receipt)
	if err := Decode(entry, r); err != nil {
		return nil, err
	}
	if r.Seq == 0 && s.Base != nil {
		r.Seq = s.Base.Load() + int64(entry.Revision) //nolint:gosec // a store is never written 2^63 times
	}
	return r, nil
}

// DecodeJob decodes the record of an open job.
func (s Store) DecodeJob(entry storage.Entry) (*Run, error) {
	j := &Run{Rev: entry.Revision, Found: true}
	if s.NewData != nil {
		j.Args, j.Work = s.NewData(chats.Kind(entry.Key[strings.LastIndexByte(entry.Key, '/')+1:]))
	}
	if err := Decode(entry, &j.Job); err != nil {
		return nil, err
	}
	s.AssignSeq(j)
	return j, nil
}

// ListOpenBy yields the open jobs of a user (platform:id) whose keys have the prefix under. It skips
// damaged records.
func (s Store) ListOpenBy(ctx context.Context, under, by string) iter.Seq2[*Run, error] {
	return func(yield func(*Run, error) bool) {
		for entry, err := range s.Store.List(ctx, storage.Range{Prefix: OpenPrefix + under}) {
			if err != nil {
				yield(nil, fmt.Errorf("list open jobs: %w", err))
				return
			}
			if j, err := s.DecodeJob(entry); err == nil && j.Message.User != "" && j.Message.SenderID() == by && !yield(j, nil) {
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

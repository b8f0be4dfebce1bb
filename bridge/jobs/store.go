package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"oneclaw/storage"
)

// WriteTimeout bounds a write that must happen although its job was interrupted.
const WriteTimeout = 30 * time.Second

// Store keeps jobs in a KV: open ones and receipts under prefixes of their own.
type Store struct{ KV storage.KV }

// Add writes a new job. It reports false, and writes nothing, where the event is known.
func (s Store) Add(ctx context.Context, j *Job) (bool, error) {
	if known, err := s.Closed(ctx, j.Key()); known || err != nil {
		return false, err
	}
	err := s.Put(ctx, j, storage.Absent)
	if errors.Is(err, storage.ErrConflict) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Between the look and the write the first delivery may have been closed.
	known, err := s.Closed(ctx, j.Key())
	if known && err == nil {
		err = s.remove(ctx, j)
	}
	return !known && err == nil, err
}

// Save writes a job that this process works on. A conflict means that an earlier write
// happened although it reported an error: an open job has one owner.
func (s Store) Save(ctx context.Context, j *Job) error {
	err := s.Put(ctx, j, j.Rev)
	if errors.Is(err, storage.ErrConflict) {
		return s.Put(ctx, j, storage.Any)
	}
	return err
}

// SaveAlways is Save where the write must happen although ctx may have ended.
func (s Store) SaveAlways(ctx context.Context, j *Job) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), WriteTimeout)
	defer cancel()
	return s.Save(ctx, j)
}

// Put writes a job over a revision.
func (s Store) Put(ctx context.Context, j *Job, rev storage.Revision) error {
	data, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode job %s: %w", j.Key(), err)
	}
	rev, err = s.KV.Put(ctx, OpenPrefix+j.Key(), data, rev)
	if err != nil {
		return fmt.Errorf("store job %s: %w", j.Key(), err)
	}
	j.Rev = rev
	return nil
}

func (s Store) remove(ctx context.Context, j *Job) error {
	if err := s.KV.Delete(ctx, OpenPrefix+j.Key(), storage.Any); err != nil {
		return fmt.Errorf("remove job %s: %w", j.Key(), err)
	}
	return nil
}

// Close writes the receipt, and only then removes the open job: a crash in between
// leaves both, and the receipt counts.
func (s Store) Close(ctx context.Context, j *Job) error {
	data, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode receipt %s: %w", j.Key(), err)
	}
	if _, err := s.KV.Put(ctx, ReceiptPrefix+j.Key(), data, storage.Any); err != nil {
		return fmt.Errorf("store receipt %s: %w", j.Key(), err)
	}
	return s.remove(ctx, j)
}

// Closed reports whether there is a receipt under a key.
func (s Store) Closed(ctx context.Context, key string) (bool, error) {
	_, err := s.KV.Get(ctx, ReceiptPrefix+key)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for receipt %s: %w", key, err)
	}
	return true, nil
}

// Open returns the jobs that a former run of the program left open, and the records that
// do not decode.
func (s Store) Open(ctx context.Context) (found []*Job, broken []error, err error) {
	for entry, err := range s.KV.List(ctx, storage.Range{Prefix: OpenPrefix}) {
		if err != nil {
			return nil, nil, fmt.Errorf("list open jobs: %w", err)
		}
		j := &Job{}
		if err := Decode(entry, j); err != nil {
			broken = append(broken, err)
			continue
		}
		j.Rev, j.Found = entry.Revision, true
		known, err := s.Closed(ctx, j.Key())
		if err != nil {
			return nil, nil, err
		}
		if !known {
			found = append(found, j)
			continue
		}
		if err := s.remove(ctx, j); err != nil {
			return nil, nil, err
		}
	}
	return found, broken, nil
}

// Load returns an open job; nil where there is none.
func (s Store) Load(ctx context.Context, key string) (*Job, error) {
	entry, err := s.KV.Get(ctx, OpenPrefix+key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read job %s: %w", key, err)
	}
	j := &Job{}
	if err := Decode(entry, j); err != nil {
		return nil, err
	}
	j.Rev, j.Found = entry.Revision, true
	return j, nil
}

// Find returns a job, open or closed; nil where there is none.
func (s Store) Find(ctx context.Context, key string) (*Job, error) {
	j, err := s.Load(ctx, key)
	if j != nil || err != nil {
		return j, err
	}
	entry, err := s.KV.Get(ctx, ReceiptPrefix+key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read receipt %s: %w", key, err)
	}
	j = &Job{}
	if err := Decode(entry, j); err != nil {
		return nil, err
	}
	return j, nil
}

// Prune removes receipts that were closed longer ago than ReceiptAge. One from the future
// was written when the clock was wrong: it counts from now on.
func (s Store) Prune(ctx context.Context, now time.Time, damaged func(*DamagedError) error) (int, error) {
	removed := 0
	for entry, err := range s.KV.List(ctx, storage.Range{Prefix: ReceiptPrefix}) {
		if err != nil {
			return removed, fmt.Errorf("list receipts: %w", err)
		}
		j := &Job{}
		if d, is := errors.AsType[*DamagedError](Decode(entry, j)); is {
			if err := damaged(d); err != nil {
				return removed, err
			}
			continue
		}
		age := now.Sub(j.Closed)
		if age >= -ReceiptAge && age <= ReceiptAge {
			continue
		}
		if age < 0 {
			if err := s.redate(ctx, j, now, entry); err != nil {
				return removed, err
			}
			continue
		}
		if err := s.KV.Delete(ctx, entry.Key, storage.Any); err != nil {
			return removed, fmt.Errorf("remove receipt: %w", err)
		}
		removed++
	}
	return removed, nil
}

func (s Store) redate(ctx context.Context, j *Job, now time.Time, entry storage.Entry) error {
	j.Closed = now
	data, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode receipt: %w", err)
	}
	_, err = s.KV.Put(ctx, entry.Key, data, entry.Revision)
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("store receipt: %w", err)
	}
	return nil
}

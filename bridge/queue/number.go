package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"oneclaw/storage"
)

// baseKey is the key of the base of job numbers; the base is 0 if it does not exist.
const baseKey = "numbers"

// AssignSeq gives a job without a number the number of its first write. Revisions grow with each write
// by any process.
func (s Store) AssignSeq(j *Run) {
	if j.Seq == 0 && s.Base != nil {
		j.Seq = s.Base.Load() + int64(j.Rev) //nolint:gosec // a store is never written 2^63 times
	}
}

// RaiseNumbers makes the numbers of new jobs higher than newest, the highest existing number, which may
// come from another store with higher revisions. seen is a revision that the store has reached.
func (s Store) RaiseNumbers(ctx context.Context, newest int64, seen storage.Revision) error {
	entry, err := s.Store.Get(ctx, baseKey)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("read %s: %w", baseKey, err)
	}
	var base int64
	if err == nil && json.Unmarshal(entry.Value, &base) != nil {
		base = 0 // derived from the existing numbers below
	}
	for rev := entry.Revision; base+int64(seen) < newest; seen = rev { //nolint:gosec // as above
		base = newest - int64(seen) //nolint:gosec // as above
		if rev, err = Write(ctx, s.Store, baseKey, base, rev); errors.Is(err, storage.ErrConflict) {
			return s.RaiseNumbers(ctx, newest, seen) // another process raises the numbers as well
		} else if err != nil {
			return err
		}
	}
	s.Base.Store(base)
	return nil
}

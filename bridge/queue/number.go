package queue

import (
	"context"

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
	return storage.Retry(ctx, func() error { // another process may raise the numbers as well
		base, rev, err := storage.Load[int64](ctx, s.Store, baseKey)
		if err != nil && rev == storage.Absent { // a damaged one is derived from the existing numbers
			return err
		}
		for ; base+int64(seen) < newest; seen = rev { //nolint:gosec // as above
			base = newest - int64(seen) //nolint:gosec // as above
			if rev, err = storage.Save(ctx, s.Store, baseKey, base, rev); err != nil {
				return err
			}
		}
		s.Base.Store(base)
		return nil
	})
}

package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"oneclaw/storage"
)

// baseKey is where the store keeps what the numbers of jobs begin above; 0 where it is not
// there.
const baseKey = "numbers"

// AssignSeq gives a job that has none the number of its first write: revisions grow with each
// write, whichever process makes it.
func (s Store) AssignSeq(j *Run) {
	if j.Seq == 0 && s.Base != nil {
		j.Seq = s.Base.Load() + int64(j.Rev) //nolint:gosec // no store is written 2^63 times
	}
}

// Begin has the numbers of new jobs be higher than the newest that there is: that may be of
// another store, whose revisions were higher. Seen is a revision that the store has reached.
func (s Store) Begin(ctx context.Context, newest int64, seen storage.Revision) error {
	entry, err := s.Store.Get(ctx, baseKey)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("read %s: %w", baseKey, err)
	}
	var base int64
	if err == nil && json.Unmarshal(entry.Value, &base) != nil {
		base = 0 // the numbers that there are say what it has to be
	}
	for rev := entry.Revision; base+int64(seen) < newest; seen = rev { //nolint:gosec // as above
		base = newest - int64(seen) //nolint:gosec // as above
		if rev, err = Write(ctx, s.Store, baseKey, base, rev); errors.Is(err, storage.ErrConflict) {
			return s.Begin(ctx, newest, seen) // another process begins, too
		} else if err != nil {
			return err
		}
	}
	s.Base.Store(base)
	return nil
}

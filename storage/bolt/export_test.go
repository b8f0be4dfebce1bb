package bolt

import (
	"context"

	"go.etcd.io/bbolt"
)

// CompactBy is Compact with a function that is called between its steps.
func CompactBy(path string, step func()) error {
	_, err := compact(context.Background(), Config{Path: path}, false, step)
	return err
}

// Check is Verify for a store that is open. Writes wait meanwhile, because only in a write
// transaction nobody changes the list of free pages.
func (s *Store) Check(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return recoverFaults(func() error {
		if err := checkSize(s.db); err != nil {
			return err
		}
		return rolledBack(s.db, func(tx *bbolt.Tx) error { return checkAll(ctx, tx) })
	})
}

func rolledBack(db *bbolt.DB, f func(*bbolt.Tx) error) error {
	tx, err := db.Begin(true)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	return f(tx)
}

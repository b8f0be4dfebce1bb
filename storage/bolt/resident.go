package bolt

import "go.etcd.io/bbolt"

const (
	// maxResident is about how much of the mapped file stays resident: what was read is let
	// go after that, and lies in the system's cache of files as before. The memory of the
	// program then does not grow with the database.
	maxResident = 32 << 20
	// readAround is how much the system maps around a page that is read.
	readAround = 64 << 10
)

// touch notes that a transaction read about n bytes of the mapped file.
func (s *Store) touch(tx *bbolt.Tx, n int) {
	if s.touched.Add(int64(n)) >= s.resident {
		s.touched.Store(0)
		release(tx)
	}
}

// touchWritten notes what a group of writes read on its way.
func (s *Store) touchWritten(writes int) {
	if s.touched.Add(int64(writes)*readAround) < s.resident {
		return
	}
	_ = s.db.View(func(tx *bbolt.Tx) error { // nothing is read, so nothing can fail
		s.touch(tx, 0)
		return nil
	})
}

package bolt

import "go.etcd.io/bbolt"

const (
	// maxResident is about how much of the mapped file stays resident: pages read before are released
	// to the system's file cache. The memory of the program then does not grow with the database.
	maxResident = 32 << 20
	// readAround is how much the system maps around a page that is read.
	readAround = 64 << 10
)

// touch counts about n bytes that a transaction has read of the mapped file.
func (s *Store) touch(tx *bbolt.Tx, n int) {
	if s.touched.Add(int64(n)) >= s.resident {
		s.touched.Store(0)
		release(tx)
	}
}

// touchWritten counts what a group of writes has read.
func (s *Store) touchWritten(writes int) {
	if s.touched.Add(int64(writes)*readAround) < s.resident {
		return
	}
	_ = s.db.View(func(tx *bbolt.Tx) error { // it reads nothing, so it cannot fail
		s.touch(tx, 0)
		return nil
	})
}

package bolt

import "go.etcd.io/bbolt"

const (
	// maxResident is about how much of the mapped file stays resident: pages read earlier are released
	// to the system's file cache, so that the memory of the program does not grow with the database.
	maxResident = 32 << 20
	// readAround is how much the system maps around a page that is read.
	readAround = 64 << 10
)

// touch counts about n bytes of the mapped file that a transaction has read.
func (s *Store) touch(tx *bbolt.Tx, n int) {
	if s.touched.Add(int64(n)) >= s.residentLimit {
		s.touched.Store(0)
		release(tx)
	}
}

// touchWritten counts the bytes that a group of writes has read.
func (s *Store) touchWritten(writes int) {
	if s.touched.Add(int64(writes)*readAround) < s.residentLimit {
		return
	}
	_ = s.db.View(func(tx *bbolt.Tx) error { // the transaction reads nothing, so it cannot fail
		s.touch(tx, 0)
		return nil
	})
}

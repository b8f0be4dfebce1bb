package bolt

import (
	"syscall"

	"go.etcd.io/bbolt"
)

// release lets the pages of the mapped file go. While tx runs the file is not mapped
// anew; a read meanwhile gets the pages back.
func release(tx *bbolt.Tx) {
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, tx.DB().Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED) // advice
}

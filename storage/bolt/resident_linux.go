package bolt

import (
	"syscall"

	"go.etcd.io/bbolt"
)

// release releases the pages of the mapped file. While tx runs the file is not remapped; concurrent
// reads get the pages back.
func release(tx *bbolt.Tx) {
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, tx.DB().Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED) // only advice
}

package bolt

import (
	"syscall"

	"go.etcd.io/bbolt"
)

// release releases the pages of the mapped file. The file is not remapped while tx runs; concurrent
// reads map the pages again.
func release(tx *bbolt.Tx) {
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, tx.DB().Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED) // only advice
}

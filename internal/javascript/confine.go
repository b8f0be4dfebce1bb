package javascript

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// addressSpace is how much a child may map beyond what it has at its start: the
// heap of the script, the copies made on the way out, and Go's own reserve.
const addressSpace = 1 << 30

// confine gives this process limits that it cannot raise again: no core dumps that
// would hold what a script saw, no writing of files, few open ones, and a bounded
// address space, where the system tells how much there is.
func confine() error {
	limits := map[int]uint64{syscall.RLIMIT_CORE: 0, syscall.RLIMIT_FSIZE: 0, syscall.RLIMIT_NOFILE: 16}
	if size, ok := mapped(); ok {
		limits[syscall.RLIMIT_AS] = size + addressSpace
	}
	for which, limit := range limits {
		if err := syscall.Setrlimit(which, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("javascript: set limit %d: %w", which, err)
		}
	}
	return nil
}

// mapped is the size of this process's address space.
func mapped() (uint64, bool) {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	first, _, _ := bytes.Cut(data, []byte(" "))
	pages, err := strconv.ParseUint(string(first), 10, 64)
	return pages * uint64(os.Getpagesize()), err == nil
}

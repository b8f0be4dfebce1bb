package workspace

import "syscall"

// changed is when a file was changed last, by the clock of its disk.
func changed(sys *syscall.Stat_t) int64 { return sys.Ctimespec.Nano() }

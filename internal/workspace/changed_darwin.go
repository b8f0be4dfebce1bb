package workspace

import "syscall"

// changeTime returns the time of a file's last change, by the clock of its disk.
func changeTime(sys *syscall.Stat_t) int64 { return sys.Ctimespec.Nano() }

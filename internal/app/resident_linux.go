package app

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releaseProgramPages gives back the pages of the program's file that the start has read, code and
// tables. The system maps a page again, usually from its cache, when it is used.
func releaseProgramPages() {
	program, err := os.Executable()
	if err != nil {
		return
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range unchangedMappings(string(smaps), program) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.begin, m.end-m.begin, syscall.MADV_DONTNEED) // only advice
	}
}

// mapping is a range of addresses.
type mapping struct{ begin, end uintptr }

// unchangedMappings returns the mappings of a file that are not writable, and in which no page differs
// from the file: relocation changes pages before it makes them read-only, and they would be lost.
func unchangedMappings(smaps, file string) (all []mapping) {
	known := false // whether the lines describe the last element of all
	for line := range strings.Lines(smaps) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if begin, end, is := strings.Cut(fields[0], "-"); is && len(fields) > 4 {
			from, err := strconv.ParseUint(begin, 16, strconv.IntSize)
			to, endErr := strconv.ParseUint(end, 16, strconv.IntSize)
			known = err == nil && endErr == nil && strings.HasSuffix(strings.TrimSuffix(line, "\n"), " "+file) && strings.HasPrefix(fields[1], "r-") && strings.HasSuffix(fields[1], "p")
			if known {
				all = append(all, mapping{uintptr(from), uintptr(to)})
			}
		}
		if known && (fields[0] == "Anonymous:" || fields[0] == "Swap:" || fields[0] == "Locked:") && fields[1] != "0" {
			all, known = all[:len(all)-1], false
		}
	}
	return all
}

package app

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestOnlyWhatIsAsInTheFileIsReleased(t *testing.T) {
	t.Parallel()
	part := func(addresses, mode, file string, anonymous, swap int) string {
		return fmt.Sprintf("%s %s 00000000 fe:00 24   %s\nSize:  8 kB\nRss:  8 kB\nAnonymous:  %d kB\nSwap:  %d kB\nVmFlags: rd mr\n", addresses, mode, file, anonymous, swap)
	}
	const program = "/usr/local/bin/the bot"
	smaps := strings.Join([]string{
		part("00400000-00500000", "r-xp", program, 0, 0),
		part("00500000-00600000", "r--p", program, 0, 0),
		part("00600000-00700000", "rw-p", program, 0, 0),
		part("00700000-00800000", "r--p", program, 4, 0), // relocated
		part("00800000-00900000", "r--p", program, 0, 4),
		part("00900000-00a00000", "r--s", program, 0, 0),
		part("00a00000-00b00000", "r--p", program+" of old", 0, 0),
		part("c000000000-c000400000", "rw-p", "", 100, 0),
		part("ffff00000000-ffff00001000", "r-xp", program, 0, 0),
	}, "")
	want := []mapping{{0x400000, 0x500000}, {0x500000, 0x600000}, {0xffff00000000, 0xffff00001000}}
	if got := unchangedMappings(smaps, program); !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// The program works on after its pages were released, and has some to release.
func TestTheProgramPagesAreReleased(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip("there is no /proc/self/smaps")
	}
	if all := unchangedMappings(string(smaps), program); len(all) == 0 {
		t.Errorf("no mapping of %s is found", program)
	}
	for range 3 {
		releaseProgramPages()
	}
}

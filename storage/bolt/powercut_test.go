package bolt_test

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"oneclaw/storage"
)

// sector is what a disk writes whole.
const sector = 512

// diskEvent is what a process has asked of the disk, or has acknowledged.
type diskEvent struct {
	data []byte // written at offset
	at   int64
	size int64 // of the file from here on, for a truncation
	kind string
	ack  string
}

var (
	tracedWrite = regexp.MustCompile(`pwrite64\(\d+, "([^"]*)", \d+, (\d+)`)
	tracedSize  = regexp.MustCompile(`ftruncate\(\d+, (\d+)`)
	tracedAck   = regexp.MustCompile(`write\(1, "([^"]*)"`)
	tracedSync  = regexp.MustCompile(`(?:fdatasync|fsync)(?:\(\d+\)| resumed>\)) += 0`)
)

// parseTrace reads the output of strace. A call that another thread interrupts has its
// arguments where it begins; a sync counts when it has ended.
func parseTrace(t *testing.T, file string) (events []diskEvent) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	unhex := func(s string) []byte {
		data, err := hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for lines.Scan() {
		line := lines.Text()
		number := func(s string) int64 {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				t.Fatalf("%s in %.100s", err, line)
			}
			return n
		}
		switch {
		case tracedSync.MatchString(line):
			events = append(events, diskEvent{kind: "sync"})
		case tracedWrite.MatchString(line):
			m := tracedWrite.FindStringSubmatch(line)
			events = append(events, diskEvent{kind: "write", data: unhex(m[1]), at: number(m[2])})
		case tracedSize.MatchString(line):
			events = append(events, diskEvent{kind: "size", size: number(tracedSize.FindStringSubmatch(line)[1])})
		case tracedAck.MatchString(line):
			events = append(events, diskEvent{kind: "ack", ack: string(unhex(tracedAck.FindStringSubmatch(line)[1]))})
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return events
}

// traced runs a child that appends until its standard output ends, and returns what it
// asked of the disk.
func traced(t *testing.T, acks int) []diskEvent {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed: nothing shows in which order the disk is written")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	cmd := exec.CommandContext(t.Context(), strace, "-f", "-xx", "-s", "16777216", "-o", trace,
		"-e", "trace=write,pwrite64,ftruncate,fsync,fdatasync", exe)
	cmd.Env = append(os.Environ(), childRole+"=append", childPath+"="+filepath.Join(dir, "db"))
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, n := bufio.NewScanner(out), 0
	for n < acks && lines.Scan() {
		n++
	}
	_ = out.Close() // ends the child
	_ = cmd.Wait()
	if n < acks {
		t.Skipf("strace cannot trace here: %s", said.String())
	}
	return parseTrace(t, trace)
}

// afterCut is what a disk may hold when the power goes: all that was written before the
// last sync, and of what came after it any sectors.
func afterCut(events []diskEvent, random *rand.Rand) []byte {
	synced := 0
	for n, e := range events {
		if e.kind == "sync" {
			synced = n
		}
	}
	var disk []byte
	put := func(data []byte, at int64) {
		if end := at + int64(len(data)); end > int64(len(disk)) {
			disk = append(disk, make([]byte, end-int64(len(disk)))...)
		}
		copy(disk[at:], data)
	}
	for n, e := range events {
		sure := n < synced
		switch {
		case e.kind == "size" && (sure || random.IntN(2) == 0):
			if e.size > int64(len(disk)) {
				put(nil, e.size)
			}
			disk = disk[:e.size]
		case e.kind == "write" && sure:
			put(e.data, e.at)
		case e.kind == "write":
			share := random.IntN(4) // of three thirds
			for from := 0; from < len(e.data); from += sector {
				if random.IntN(3) < share {
					put(e.data[from:min(from+sector, len(e.data))], e.at+int64(from))
				}
			}
		}
	}
	return disk
}

// TestTrialPowerCutKeepsWhatWasAcknowledged records what a process writes and syncs, and
// plays it back to a disk whose power goes at any moment, with any sectors lost of what
// was not synced, in any order. What was acknowledged by then is there.
func TestTrialPowerCutKeepsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	events := traced(t, 60)
	count := map[string]int{}
	for _, e := range events {
		count[e.kind]++
	}
	if count["write"] < 50 || count["sync"] < 30 || count["ack"] < 50 {
		t.Fatalf("the trace has only %v", count)
	}
	begun := 0 // from here on there is a database
	for syncs := 0; syncs < 2; begun++ {
		if events[begun].kind == "sync" {
			syncs++
		}
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	const cuts = 60
	for n := range cuts {
		at := begun + random.IntN(len(events)-begun)
		acknowledged := map[string]storage.Position{}
		for _, e := range events[:at] {
			var log string
			var pos storage.Position
			if _, err := fmt.Sscan(e.ack, &log, &pos); e.kind == "ack" && err == nil {
				acknowledged[log] = pos
			}
		}
		path := filepath.Join(t.TempDir(), fmt.Sprint("cut", n))
		if err := os.WriteFile(path, afterCut(events[:at], random), 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, path)
		for log, last := range acknowledged {
			checkAppended(t, s, log, last)
		}
		if err := s.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("cut at event %d of %d, seed %d", at, len(events), seed)
		}
	}
	t.Logf("%d cuts of %v", cuts, count)
}

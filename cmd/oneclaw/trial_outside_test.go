package main

import (
	"context"
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"oneclaw/internal/config"
	"oneclaw/internal/emulator/dns"
	"oneclaw/storage"
)

// namesVariable is the address of the name server that the program asks.
const namesVariable = "TEST_NAMES"

// newerVariable makes the program one that knows so many formats more.
const newerVariable = "TEST_NEWER"

// ttlVariable says after how long a silent replica counts as dead.
const ttlVariable = "TEST_TTL"

// fromTest is what the program is run with where a test starts it.
func fromTest() config.Runtime {
	o := config.DefaultRuntime()
	newer, _ := strconv.Atoi(os.Getenv(newerVariable))
	for range newer {
		o.Migrations = append(o.Migrations, func(ctx context.Context, store storage.Store, _ *slog.Logger) error {
			_, err := store.Put(ctx, "newer", []byte("format"), storage.Any)
			return err
		})
	}
	o.ReplicaTTL, _ = time.ParseDuration(os.Getenv(ttlVariable))
	if os.Getenv(unfencedVariable) != "" {
		o.WrapStore = func(store storage.Store) storage.Store { return unfenced{store} }
	}
	if address := os.Getenv(namesVariable); address != "" {
		o.Resolver = dns.Resolver(address)
	}
	if file := os.Getenv(clockVariable); file != "" {
		o.Now = clockOf(file)
	}
	return o
}

// clockVariable names the file that says how far the clock of the program is off.
const clockVariable = "TEST_CLOCK"

// offClock is how far the clock of a running program is off, which a test changes.
type offClock struct {
	t    *testing.T
	file *os.File
}

func newOffClock(t *testing.T, w *harness) *offClock {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "clock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	c := &offClock{t, f}
	c.jump(0)
	w.env[clockVariable] = f.Name()
	return c
}

// jump sets how far the clock is off, in whole seconds.
func (c *offClock) jump(off time.Duration) {
	c.t.Helper()
	if _, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(off/time.Second)), 0); err != nil {
		c.t.Fatal(err)
	}
}

// clockOf is the clock of a program for which a file says how far it is off. The file is
// mapped, so a change holds at once.
func clockOf(file string) func() time.Time {
	f, err := os.Open(file)
	if err != nil {
		panic(err)
	}
	defer func() { _ = f.Close() }()
	mapped, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	off := (*int64)(unsafe.Pointer(&mapped[0])) // the page is there as long as the program
	return func() time.Time { return jumped(time.Now(), atomic.LoadInt64(off)) }
}

// jumped is a time on a wall clock that somebody has set: the monotonic clock, which
// differences of two times are taken from, goes on as it did. Time has no method for
// that; its first word has the seconds of the wall clock above 30 bits.
func jumped(t time.Time, seconds int64) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(seconds) << 30
	return t
}

func TestTrialClockIsSetAsAWallClockIs(t *testing.T) {
	before := time.Now()
	for _, by := range []int64{0, 3600, -3600, -86400, 1000000} {
		after := jumped(before, by)
		if off := after.Unix() - before.Unix(); off != by || after.Sub(before) != 0 || after.Nanosecond() != before.Nanosecond() {
			t.Errorf("a jump by %d s moves the wall clock by %d s and the monotonic one by %s", by, off, after.Sub(before))
		}
	}
}

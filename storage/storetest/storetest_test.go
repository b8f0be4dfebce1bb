package storetest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"oneclaw/storage"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The failures of mutants are wanted: they need no file and no simplification.
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "0s", "rapid.checks": "40"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func memoryConfig(bug string) Config {
	return Config{
		Open:   func(testing.TB) storage.Store { return newMemory(bug) },
		Reopen: func(_ testing.TB, s storage.Store) storage.Store { return s.(*memory).reopen() },
		Second: func(_ testing.TB, s storage.Store) storage.Store { return s.(*memory).handle() },
	}
}

func TestCorrectEnginePasses(t *testing.T) {
	Run(t, memoryConfig(""))
}

// leavesOutVersions is no bug: a watch may do so.
const leavesOutVersions = "leaves out versions of a key that a newer one follows"

func TestEngineThatLeavesOutVersionsPasses(t *testing.T) {
	for _, p := range watchProperties() {
		t.Run(p.name, func(t *testing.T) { runProperty(t, memoryConfig(leavesOutVersions), p) })
	}
}

func TestEveryPropertyHasASentence(t *testing.T) {
	names := map[string]bool{}
	for _, p := range properties() {
		if p.sentence == "" || p.check == nil || names[p.name] {
			t.Errorf("property %q lacks a sentence or a check, or is there twice", p.name)
		}
		names[p.name] = true
	}
}

// bugs are the names that memory knows.
var bugs = []string{
	"counts revisions from 0 after reopening", "loses the newest record on reopening",
	"ignores contexts", "answers after Close", "cannot be closed twice", "leaves watches open on Close",
	"takes empty names", "takes long names", "takes negative limits",
	"writes the records before an invalid one", "appends behind a past position",
	"appends behind a position to come", "begins a log at any position",
	"keeps the caller's record", "yields its own record",
	"forgets labels", "indexes only the first label of an Append", "matches labels by prefix",
	"keeps labels over a Drop", "drops logs by prefix", "cannot drop what does not exist",
	"cannot erase in what does not exist", "keeps labels of what is erased", "moves up what is behind what is erased", "erases one record at a time", "leaves nothing of what is erased",
	"reads what is appended meanwhile", "ends after 256 records",
	"yields one more than the limit", "includes Before", "includes After",
	"ignores After when backward", "reads backward queries with a limit forward",
	"returns its own value", "keeps the caller's value", "lists its own values",
	"Put ignores the revision", "Put takes Absent for Any", "Put takes revisions to come",
	"Delete ignores the revision", "Delete takes Absent for Any", "Delete takes revisions to come",
	"counts revisions of a key from 1 after a deletion", "returns the revision before",
	"deletes what does not exist", "tells of deletions of nothing", "does not tell of deletions",
	"lists without values", "lists one less than the limit", "finds nothing below the prefix 0xff",
	"lists After itself", "lists in another order",
	"swaps events", "watches from the iteration on", "loses events of slow consumers silently",
	"takes a write of nothing", "takes a key twice", "writes what comes before a conflict",
	"Check ignores the revision", "Check takes Absent for Any", "Check takes revisions to come", "tells of checks",
	"gives each key of a write a revision of its own", "counts the revisions of each key apart",
	"lists dropped logs", "lists keys as logs", "leaves out the newest version",
	"remembers what a handle has read", "counts revisions in each handle", "tells a handle of its own changes only",
	"yields the end of the context", "watches all keys", "shares values between watches", "watches without revisions",
}

// hangs is the time after which a mutant that hangs has failed.
const hangs = 2 * time.Second

func TestMutantsFail(t *testing.T) {
	for _, bug := range bugs {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			for _, p := range properties() {
				if message := failure(t, memoryConfig(bug), p, hangs); message != "" {
					t.Logf("%s: %.200s", p.name, message)
					return
				}
			}
			t.Errorf("no property notices an engine that %s", bug)
		})
	}
}

// failure runs one property and returns how it failed first, or "". Beyond the limit it has failed.
func failure(t *testing.T, cfg Config, p property, limit time.Duration) string {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r := &recorder{TB: t, ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runProperty(r, cfg, p)
	}()
	<-done
	return r.message
}

// recorder notes failures instead of reporting them.
type recorder struct {
	testing.TB
	ctx context.Context //nolint:containedctx // the context of the test it stands for

	mu      sync.Mutex // guards message
	message string
}

func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Logf(string, ...any)      {}
func (r *recorder) Log(...any)               {}
func (r *recorder) Fail()                    { r.note("failed") }

func (r *recorder) note(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.message == "" {
		r.message = message
	}
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.message != ""
}

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) Error(args ...any)                 { r.note(fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.note(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

package platformtest

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCorrectPlatformPasses(t *testing.T) {
	t.Parallel()
	for _, p := range properties() {
		t.Run(p.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runProperty(t, newMemoryHarness(t, ""), p) })
		})
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

func TestMutantsFail(t *testing.T) {
	t.Parallel()
	all := map[string]property{}
	for _, p := range properties() {
		all[p.name] = p
	}
	noticed := map[string]bool{}
	for bug, names := range bugs() {
		for _, name := range names {
			p, known := all[name]
			if !known {
				t.Fatalf("there is no property %s", name)
			}
			noticed[name] = true
			t.Run(name+"/"+bug, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					message := failure(t, bug, p)
					if message == "" {
						t.Errorf("%s does not notice a platform that %s", name, bug)
					}
					t.Logf("%.200s", message)
				})
			})
		}
	}
	for name := range all {
		if !noticed[name] {
			t.Errorf("no mutant shows that %s can fail", name)
		}
	}
}

// failure runs one property on a mutant and returns how it failed first, or "".
func failure(t *testing.T, bug string, p property) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runProperty(r, newMemoryHarness(r, bug), p)
	}()
	<-done
	return r.message
}

// recorder notes failures instead of reporting them.
type recorder struct {
	testing.TB

	mu      sync.Mutex // guards message
	message string
}

func (r *recorder) Helper()             {}
func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.message != ""
}

func (r *recorder) Error(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.message == "" {
		r.message = fmt.Sprint(args...)
	}
}

func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

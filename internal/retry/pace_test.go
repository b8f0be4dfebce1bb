package retry

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPacer(5 * time.Second)
		begin := time.Now()
		at := func() time.Duration { return time.Since(begin) }
		for range 100 { // nothing is held back before Slack says so
			if wait := p.Wait(t.Context(), "a"); wait != 0 || at() != 0 {
				t.Fatalf("%v at %v", wait, at())
			}
			p.RecordSuccess("a")
		}
		p.RecordRefusal("a", 3*time.Second, time.Second, time.Second)
		if p.Wait(t.Context(), "b") != 0 || at() != 0 || p.Busy("b") || !p.Busy("a") {
			t.Errorf("another place waits, at %v", at())
		}
		var mu sync.Mutex
		var begun []time.Duration
		var calls sync.WaitGroup
		for range 4 { // three fit into the time that a call may be held
			calls.Go(func() {
				wait := p.Wait(t.Context(), "a")
				mu.Lock()
				defer mu.Unlock()
				begun = append(begun, at()+wait)
			})
		}
		calls.Wait()
		want := []time.Duration{6 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second}
		if diff := cmp.Diff(want, begun); diff != "" {
			t.Errorf("calls begin at (-want +got):\n%s", diff)
		}
		time.Sleep(time.Second)
		for range 50 {
			p.RecordSuccess("a")
		}
		for range 2 {
			if begin := time.Now(); p.Wait(t.Context(), "a") != 0 || time.Now() != begin {
				t.Error("a limit that is over is kept")
			}
		}
	})
}

func TestPacesEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPacer(5 * time.Second)
		p.RecordRefusal("a", 4*time.Second, time.Second, time.Second)
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin := time.Now()
		if wait := p.Wait(short, "a"); wait != 4*time.Second || time.Now() != begin {
			t.Errorf("wait %v after %v", wait, time.Since(begin))
		}
		long, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		if wait := p.Wait(long, "a"); wait != 3*time.Second || time.Since(begin) != time.Second {
			t.Errorf("wait %v after %v", wait, time.Since(begin))
		}
		// A limit told meanwhile holds for those that wait already.
		time.AfterFunc(time.Second, func() { p.RecordRefusal("a", 4*time.Second, time.Second, time.Second) })
		if wait := p.Wait(t.Context(), "a"); wait != 0 || time.Since(begin) != 6*time.Second {
			t.Errorf("wait %v after %v", wait, time.Since(begin))
		}
		for i := range 2 * maxKeys {
			p.RecordRefusal(strconv.Itoa(i), time.Second, time.Second, time.Second)
		}
		if len(p.limits) > maxKeys {
			t.Errorf("%d paces are kept", len(p.limits))
		}
		time.Sleep(2 * halveAfter)
		p.RecordRefusal("b", time.Second, time.Second, time.Second)
		if len(p.limits) != 1 {
			t.Errorf("%d paces are kept", len(p.limits))
		}
	})
}

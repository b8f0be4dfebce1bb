package bridge_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge"
)

// At the bound of a person's unattended runs of a day further ones pause, with one line and a button that
// lets them go on; the next day they go on by themselves.
func TestUnattendedRunsOfADayAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &clock{}
		r := newHarness(t, echo, func(cfg *bridge.Config) {
			cfg.Limits.MaxUnattended, cfg.Now, cfg.Access.Allow = 3, c.Now, []string{"*"}
		})
		submit := func(n int) error {
			return r.bridge.Submit(t.Context(), task(fmt.Sprint("a.", n), "T", fmt.Sprint("run ", n)))
		}
		for n := range 3 {
			if err := submit(n); err != nil {
				t.Error(err)
			}
		}
		if err := submit(0); err != nil { // known already
			t.Error(err)
		}
		for range 2 {
			if err := submit(3); !errors.Is(err, bridge.ErrPaused) {
				t.Errorf("the fourth run: %v", err)
			}
		}
		card := r.platform.one(t, "⏸ 3 runs")
		r.restart()
		if err := submit(3); !errors.Is(err, bridge.ErrPaused) {
			t.Errorf("the fourth run after a restart: %v", err)
		}
		r.accept(pressOn(card, "p1", "2", card.button(t, "Go on")))
		if got := r.platform.toast(t, "p1"); !strings.HasPrefix(got, "Only the person") {
			t.Errorf("another person was told %q", got)
		}
		r.accept(pressOn(card, "p2", "1", card.button(t, "Go on")))
		r.platform.one(t, "▶ Unattended runs go on today, up to 6.")
		for n := 3; n < 6; n++ {
			if err := submit(n); err != nil {
				t.Error(err)
			}
		}
		if err := submit(6); !errors.Is(err, bridge.ErrPaused) {
			t.Errorf("the seventh run: %v", err)
		}
		r.platform.one(t, "⏸ 6 runs")
		c.advance(24 * time.Hour)
		if err := submit(6); err != nil {
			t.Errorf("the next day: %v", err)
		}
		r.platform.one(t, "re: run 6")
		r.stop()
		if got := strings.Count(strings.Join(r.platform.texts(), "\n"), "⏸"); got != 1 {
			t.Errorf("%d lines about the pause: %q", got, r.platform.texts())
		}
	})
}

func TestReplicasCountUnattendedRunsTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newSeveral(t, 3, echo, func(c *bridge.Config) { c.Limits.MaxUnattended = 6 })
		var mu sync.Mutex
		var submitting sync.WaitGroup
		accepted := 0
		for n := range 12 {
			submitting.Go(func() {
				err := all[n%3].bridge.Submit(t.Context(), task(fmt.Sprint("a.", n), "T", fmt.Sprint("run ", n)))
				if err != nil && !errors.Is(err, bridge.ErrPaused) {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					accepted++
				}
			})
		}
		submitting.Wait()
		if accepted != 6 {
			t.Errorf("%d runs were accepted", accepted)
		}
		pass(t, 60)
	})
}

func TestBackgroundTasksCountAsUnattendedRuns(t *testing.T) {
	t.Parallel()
	f := newTaskModel()
	r, _ := backgroundHarness(t, f, func(c *bridge.Config) { c.Limits.MaxUnattended = 1 })
	r.accept(direct("1", "start hold one")) // a result that comes during a turn is part of its question
	r.platform.one(t, "done: Started")
	r.accept(direct("2", "start two"))
	r.platform.one(t, "done: The unattended runs of this user are used up for today.")
	r.platform.one(t, "⏸ 1 run ")
	f.free <- struct{}{}
}

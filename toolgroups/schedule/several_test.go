package schedule_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/storage"
	"oneclaw/toolgroups/schedule"
)

// startAt runs another schedule on the store, as another process has it whose clock is wrong.
func (o *harness) startAt(wrong time.Duration) {
	o.t.Helper()
	right := o.cfg.Now
	o.cfg.Now = func() time.Time { return right().Add(wrong) }
	o.open()
	o.start()
	o.cfg.Now = right
}

// TestSchedulesWhoseClocksAreAnHourApartRunEachTaskOnceADay has three processes with one
// store: each run has one key, whoever takes it on, and no day has two.
func TestSchedulesWhoseClocksAreAnHourApartRunEachTaskOnceADay(t *testing.T) {
	t.Parallel()
	at(t, "Europe/Berlin", "2026-03-27T05:10:00Z", func(t *testing.T, o *harness) {
		for _, hour := range []int{0, 2, 23} {
			o.make(fmt.Sprintf(`{"name":"n","prompt":"p","schedule_type":"daily","hour":%d,"minute":30}`, hour))
		}
		o.make(`{"name":"n","prompt":"p","schedule_type":"weekly","day_of_week":"sunday","hour":2,"minute":30}`)
		o.make(`{"name":"n","prompt":"p","schedule_type":"one_time","date":"2026-03-28","hour":12,"minute":0}`)
		o.make(`{"name":"n","prompt":"p","schedule_type":"cron","cron":"0 */6 * * *","time_zone":"America/New_York"}`)
		o.make(`{"name":"n","prompt":"p","schedule_type":"interval","every_minutes":360}`)
		for _, wrong := range []time.Duration{0, time.Hour, -time.Hour} {
			o.startAt(wrong)
		}
		pass(3 * day)
		days, moments := map[string]string{}, map[string]int{}
		for _, r := range o.runs {
			id, when, _ := strings.Cut(r.Key, ".")
			if strings.HasSuffix(when, "Z") {
				moments[id]++
				continue
			}
			onDay := id + " " + when[:8]
			if other := days[onDay]; other != "" {
				t.Errorf("two runs on one day, %s and %s", other, r.Key)
			}
			days[onDay] = r.Key
		}
		for id, n := range moments {
			if n != 4*3 {
				t.Errorf("%s ran %d times in 3 days, want 12", id, n)
			}
		}
		if want := 3*3 + 1 + 1; len(days) != want || len(moments) != 2 || o.twice != 0 {
			t.Errorf("%d runs in 3 days, want %d; %d came twice", len(days), want, o.twice)
		}
		if got := o.index(); len(got) != 6 {
			t.Errorf("index %q", got)
		}
	})
}

// racing is a store in which another process acts before a write of this one.
type racing struct {
	storage.Store
	before func()
}

func (s *racing) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	if act := s.before; act != nil {
		s.before = nil
		act()
	}
	return s.Store.Write(ctx, ops...)
}

// TestATaskThatIsClaimedWhileItsChatMovesRunsOnce: the other process claims the run between
// the look at the task and its move.
func TestATaskThatIsClaimedWhileItsChatMovesRunsOnce(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		o.make(morning)
		other := o.Schedule
		slow := &racing{Store: o.store}
		o.cfg.Store = slow
		o.open()
		slow.before = func() {
			o.jump(4 * time.Hour)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- other.Run(ctx) }()
			synctest.Wait()
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if err := o.Move(t.Context(), "fake:1", "fake:2", "fake:2"); err != nil {
			t.Fatal(err)
		}
		o.start()
		pass(time.Hour)
		o.expect("20260610T0800 (was due 2026-06-10 08:00)")
		moved := o.tasks("fake:2")
		if len(o.tasks("fake:1")) != 0 || len(moved) != 1 || len(moved[0].History) != 1 {
			t.Errorf("after the move: %+v", moved)
		}
		if got := o.index(); len(got) != 1 {
			t.Errorf("index %q", got)
		}
	})
}

// TestATaskThatIsPlannedAnewByTwoStaysInTheIndex: one process plans it for another time, and
// back, while the other is about to do the same.
func TestATaskThatIsPlannedAnewByTwoStaysInTheIndex(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		id := o.make(morning)
		other := o.Schedule
		slow := &racing{Store: o.store}
		o.cfg.Store = slow
		o.open()
		here := o.Schedule
		plan := func(s *schedule.Schedule, hour int) {
			o.Schedule = s
			o.must("update_scheduled_task", fmt.Sprintf(`{"task_id":%q,"hour":%d}`, id, hour))
		}
		slow.before = func() { plan(other, 10); plan(other, 8) }
		plan(here, 9)
		slow.before = func() { plan(other, 8) }
		plan(here, 8)
		if got := o.index(); len(got) != 1 || !strings.HasPrefix(got[0], "20260610T080000Z/") {
			t.Errorf("index %q", got)
		}
		o.start()
		pass(4 * time.Hour)
		o.expect("20260610T0800")
	})
}

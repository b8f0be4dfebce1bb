package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/storage"
	"oneclaw/toolgroups/schedule"
)

// at runs a test in a bubble in which it is the given time.
func at(t *testing.T, zoneName, now string, f func(t *testing.T, o *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, zoneName)
		o.set(now)
		f(t, o)
		o.stop()
	})
}

func TestADailyTaskRunsOnceADayAcrossChangesOfTheClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, from, hour, minute, want string }{
		{"Europe/Berlin", "2026-03-27T20:00:00Z", "2", "30", "20260328T0230 20260329T0300 20260330T0230"},
		{"Europe/Berlin", "2026-10-23T20:00:00Z", "2", "30", "20261024T0230 20261025T0230 20261026T0230"},
		{"America/New_York", "2026-03-07T00:00:00Z", "2", "15", "20260307T0215 20260308T0300 20260309T0215"},
		{"America/New_York", "2026-10-31T00:00:00Z", "1", "15", "20261031T0115 20261101T0115 20261102T0115"},
		{"Australia/Lord_Howe", "2026-10-02T20:00:00Z", "2", "10", "20261004T0230 20261005T0210 20261006T0210"},
		{"Asia/Kolkata", "2026-03-27T20:00:00Z", "2", "30", "20260328T0230 20260329T0230 20260330T0230"},
	} {
		t.Run(c.zone+" "+c.from[:10], func(t *testing.T) {
			at(t, c.zone, c.from, func(t *testing.T, o *harness) {
				o.make(`{"name":"n","prompt":"p","schedule_type":"daily","hour":` + c.hour + `,"minute":` + c.minute + `}`)
				o.start()
				pass(3 * day)
				o.expect(strings.Fields(c.want)...)
			})
		})
	}
}

func TestWhatIsSubmitted(t *testing.T) {
	at(t, "Europe/Berlin", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		id := o.make(morning)
		o.start()
		pass(time.Hour)
		want := schedule.Run{
			Key: id + ".20260610T0800", Title: "News", Prompt: "What is new?", Plan: "daily, 08:00", Quiet: true,
			Owner: "fake:1", Chat: "fake:1", User: "fake:1", Direct: true, Version: o.tasks("fake:1")[0].Version,
		}
		synctest.Wait()
		if len(o.runs) != 1 || !reflect.DeepEqual(o.runs[0], want) {
			t.Errorf("submitted %+v at the full hour, want %+v", o.runs, want)
		}
	})
}

func TestWeeklyAndOneTime(t *testing.T) {
	t.Parallel()
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) { // a Wednesday
		o.start()
		o.make(`{"name":"n","prompt":"p","schedule_type":"weekly","day_of_week":"tuesday","hour":9,"minute":5}`)
		o.make(`{"name":"n","prompt":"p","schedule_type":"one_time","date":"2026-06-12","hour":23,"minute":59}`)
		pass(15 * day)
		o.expect("20260612T2359", "20260616T0905", "20260623T0905")
		for _, task := range o.tasks("fake:1") {
			if again := task.Plan.Kind == schedule.Weekly; task.Enabled != again || task.Due.IsZero() == again {
				t.Errorf("after its run a %s task is enabled: %v, due %s", task.Plan.Kind, task.Enabled, task.Due)
			}
		}
	})
}

func TestMissedRuns(t *testing.T) {
	const once = `{"name":"n","prompt":"p","schedule_type":"one_time","date":"2026-06-10","hour":8,"minute":0}`
	const weekly = `{"name":"n","prompt":"p","schedule_type":"weekly","day_of_week":"wednesday","hour":8,"minute":0}`
	for name, c := range map[string]struct {
		task   string
		away   time.Duration // from 05:00
		want   string
		states string
	}{
		"a moment late is not worth a word":   {morning, 3*time.Hour + time.Minute, "20260610T0800", "queued"},
		"daily, some hours":                   {morning, 10 * time.Hour, "20260610T0800 (was due 2026-06-10 08:00)", "queued"},
		"daily, a week: the latest alone":     {morning, 7 * day, "20260616T0800 (was due 2026-06-16 08:00)", "skipped queued"},
		"weekly, some hours":                  {weekly, 10 * time.Hour, "20260610T0800 (was due 2026-06-10 08:00)", "queued"},
		"weekly, two days":                    {weekly, 2 * day, "", "skipped"},
		"weekly, a month and a little":        {weekly, 28*day + 5*time.Hour, "20260708T0800 (was due 2026-07-08 08:00)", "skipped queued"},
		"one-time, a month":                   {once, 30 * day, "20260610T0800 (was due 2026-06-10 08:00)", "queued"},
		"daily, the clock was wrong by years": {morning, 9 * 365 * day, "20350607T0800 (was due 2035-06-07 08:00)", "queued"},
	} {
		t.Run(name, func(t *testing.T) {
			at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
				o.make(c.task)
				o.jump(c.away)
				o.start()
				synctest.Wait()
				if got := strings.Join(o.take(), " "); got != c.want {
					t.Errorf("made up for %q, want %q", got, c.want)
				}
				if got := strings.Join(o.states(), " "); got != c.states {
					t.Errorf("history %q, want %q", got, c.states)
				}
				pass(time.Hour)
				o.expect()
			})
		})
	}
}

func TestTheClockJumps(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		o.make(morning)
		o.start()
		pass(time.Minute)
		o.jump(4 * time.Hour) // 09:01
		pass(time.Minute)
		o.expect("20260610T0800 (was due 2026-06-10 08:00)")
		o.jump(-4 * time.Hour) // 05:02: no second run at 08:00
		pass(12 * time.Hour)
		o.expect()
		pass(day)
		o.expect("20260611T0800")
		o.jump(5 * 365 * day)
		pass(time.Minute)
		if n := len(o.take()); n != 1 {
			t.Errorf("%d runs after a jump by years", n)
		}
		o.jump(-5 * 365 * day)
		pass(day)
		o.expect("20260612T0800")
	})
}

func TestRestarts(t *testing.T) {
	at(t, "Europe/Berlin", "2026-06-10T05:55:00Z", func(t *testing.T, o *harness) {
		o.make(morning)
		for range 30 { // one every minute, from 07:55 on
			o.open()
			o.start()
			pass(time.Minute)
			o.stop()
		}
		o.expect("20260610T0800")
	})
}

func TestATimeZoneThatChangesMovesTheTasks(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		o.make(morning)
		o.start()
		pass(time.Minute)
		o.mu.Lock()
		o.zone = zone(t, "America/New_York")
		o.mu.Unlock()
		pass(4 * time.Hour) // 08:00 UTC has passed
		o.expect()
		pass(4 * time.Hour)
		o.expect("20260610T0800")
		if got := o.index(); len(got) != 1 || !strings.HasPrefix(got[0], "20260611T120000Z/fake:1/") {
			t.Errorf("index %q", got)
		}
	})
}

func TestATaskThatMovesToAnotherTimeZoneAfterItsRunRunsThereToday(t *testing.T) {
	at(t, "Europe/Berlin", "2026-11-27T07:00:00Z", func(t *testing.T, o *harness) {
		id := o.make(`{"name":"n","prompt":"p","schedule_type":"daily","hour":9,"minute":0}`)
		o.start()
		pass(2 * time.Hour)
		o.mu.Lock()
		ran := len(o.runs) // they stay: a submission knows the keys of earlier ones
		o.mu.Unlock()
		if ran != 1 {
			t.Fatalf("%d runs in Berlin", ran)
		}
		o.must("update_scheduled_task", `{"task_id":"`+id+`","time_zone":"America/Los_Angeles"}`)
		pass(9 * time.Hour) // 10:00 in Los Angeles
		o.expect("20261127T0900", "20261127T170000Z")
		pass(day)
		o.expect("20261128T0900")
		if o.twice != 0 {
			t.Errorf("%d runs were submitted under the key of an earlier one", o.twice)
		}
	})
}

func TestOfTwoSchedulesOneClaimsARun(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		for n := range 5 {
			o.make(strings.ReplaceAll(morning, "News", fmt.Sprint("News ", n)))
		}
		o.start()
		o.open()
		o.start()
		pass(3 * day)
		if n := len(o.take()); n != 15 || o.twice != 0 {
			t.Errorf("%d runs of 5 tasks in 3 days, %d submitted twice", n, o.twice)
		}
		if got := o.index(); len(got) != 5 {
			t.Errorf("index %q", got)
		}
	})
}

func TestASubmissionThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		o.make(morning)
		o.start()
		o.refuses(errOut)
		pass(4 * time.Hour)
		o.expect()
		o.refuses(nil)
		pass(2 * time.Minute)
		o.expect("20260610T0800")
		o.refuses(errOut)
		pass(3 * day)
		o.refuses(nil)
		pass(2 * time.Minute)
		got := o.states()
		if len(got) < 2 || got[1] != "failed" {
			t.Errorf("history %q, want a failed run after one that was submitted", got)
		}
		pass(day)
		if got := o.index(); len(got) != 1 {
			t.Errorf("index %q", got)
		}
	})
}

// What panics when one task is handed over costs that run two lives, and no other task its run.
func TestATaskThatPanicsHoldsUpNoOther(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		bad := o.make(morning)
		o.make(strings.ReplaceAll(morning, "8", "9"))
		var lives atomic.Int64
		o.cfg.Submit = func(ctx context.Context, run schedule.Run) error {
			if strings.HasPrefix(run.Key, bad+".") {
				lives.Add(1)
				panic("broken by the test")
			}
			return o.submit(ctx, run)
		}
		o.open()
		o.start()
		pass(5 * time.Hour)
		o.expect("20260610T0900")
		for _, task := range o.tasks("fake:1") {
			if task.ID == bad && (lives.Load() != 2 || len(task.History) != 1 || task.History[0].State != schedule.Failed) {
				t.Errorf("it had %d lives and ended %+v", lives.Load(), task.History)
			}
		}
		pass(day)
		o.expect("20260611T0900")
	})
}

func TestATaskThatIsDeletedOrDisabledDoesNotRun(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		first, second := o.make(morning), o.make(morning)
		o.start()
		synctest.Wait()
		o.must("delete_scheduled_task", `{"task_id":"`+first+`"}`)
		o.must("update_scheduled_task", `{"task_id":"`+second+`","enabled":false}`)
		if got := o.index(); len(got) != 0 {
			t.Errorf("index %q", got)
		}
		pass(2 * day)
		o.expect()
		o.must("update_scheduled_task", `{"task_id":"`+second+`","enabled":true}`)
		pass(day)
		o.expect("20260612T0800")
	})
}

// mortal is a store of a process that is killed: from one step on nothing that it
// writes has any effect. Each write is two steps, before and after it takes effect.
type mortal struct {
	storage.Store
	mu          sync.Mutex
	steps, dies int
}

func (m *mortal) around(effect func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, step := range []func() error{effect, func() error { return nil }} {
		if m.steps++; m.dies != 0 && m.steps >= m.dies {
			return errOut
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (m *mortal) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (got storage.Revision, err error) {
	err = m.around(func() error {
		got, err = m.Store.Put(ctx, key, value, rev)
		return err
	})
	return got, err
}

func (m *mortal) Delete(ctx context.Context, key string, rev storage.Revision) error {
	return m.around(func() error { return m.Store.Delete(ctx, key, rev) })
}

func (m *mortal) Write(ctx context.Context, ops ...storage.Op) (got storage.Revision, err error) {
	err = m.around(func() error {
		got, err = m.Store.Write(ctx, ops...)
		return err
	})
	return got, err
}

// TestACrashAtAnyStepNeitherLosesNorDoublesARun kills the process at every single step
// of a life in which a task is due, is claimed, submitted and released.
func TestACrashAtAnyStepNeitherLosesNorDoublesARun(t *testing.T) {
	t.Parallel()
	steps := crash(t, 0)
	if steps < 20 {
		t.Fatalf("only %d steps: the test does not see the writes", steps)
	}
	for dies := 1; dies <= steps; dies++ {
		t.Run(fmt.Sprint("step ", dies), func(t *testing.T) { crash(t, dies) })
	}
}

// crash lives with a task for five hours, dies in a step, lives on and says how many
// steps there were.
func crash(t *testing.T, dies int) (steps int) {
	t.Helper()
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		life := &mortal{Store: o.store, dies: dies}
		o.make(morning)
		o.make(`{"name":"n","prompt":"p","schedule_type":"one_time","date":"2026-06-10","hour":9,"minute":0}`)
		o.make(`{"name":"n","prompt":"p","schedule_type":"cron","cron":"30 7 * * *","time_zone":"Europe/Berlin"}`)
		o.cfg.Store = life
		o.cfg.Submit = func(ctx context.Context, run schedule.Run) error {
			return life.around(func() error { return o.submit(ctx, run) })
		}
		o.open()
		o.start()
		pass(5 * time.Hour)
		o.stop()
		o.cfg.Store, o.cfg.Submit = o.store, o.submit
		o.open()
		o.start()
		pass(day)
		times := map[string]int{}
		for _, r := range o.runs {
			times[moment(r)]++
		}
		want := []string{
			"20260610T0800", "20260610T0900", "20260611T0800", // at a time of the day
			"20260610T053000Z", "20260611T053000Z", // by a cron expression
		}
		for _, when := range want {
			if times[when] != 1 {
				t.Errorf("%d runs at %s", times[when], when)
			}
		}
		if len(o.runs) != len(want) {
			t.Errorf("runs %v", times)
		}
		if got := o.index(); len(got) != 2 {
			t.Errorf("index %q", got)
		}
		steps = life.steps
	})
	return steps
}

// A schedule that says delivered and was not.
func TestTheLastResultIsOnRecord(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		id := o.make(morning)
		o.start()
		for n, c := range []struct {
			outcome schedule.Outcome
			want    string
		}{
			{schedule.Outcome{Session: "s", MessageID: "7"}, "delivered"},
			{schedule.Outcome{Session: "s"}, "failed"},
			{schedule.Outcome{Session: "s", Silent: true}, "silent"},
			{schedule.Outcome{Session: "s", MessageID: "8", Fault: "incident AB12"}, "failed: incident AB12"},
		} {
			pass(day)
			c.outcome.Owner, c.outcome.Key = "fake:1", fmt.Sprintf("%s.202606%dT0800", id, 10+n)
			for range 2 {
				if err := o.RecordOutcome(t.Context(), c.outcome); err != nil {
					t.Fatal(err)
				}
			}
			want := fmt.Sprintf("last run: 2026-06-%d 08:00 %s\n", 10+n, c.want)
			if got := o.must("list_scheduled_tasks", `{}`); !strings.Contains(got, want) {
				t.Errorf("listed as %q, want %q in it", got, want)
			}
		}
		if err := o.RecordOutcome(t.Context(), schedule.Outcome{Owner: "fake:2", Key: id + ".20260610T0800"}); err != nil {
			t.Errorf("a run of no task: %v", err)
		}
		for range 60 {
			o.jump(day)
			pass(time.Minute)
		}
		if n := len(o.tasks("fake:1")[0].History); n != 50 {
			t.Errorf("%d entries are kept of 64, want 50", n)
		}
	})
}

func TestHistoryIsKeptForNinetyDays(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		o.make(`{"name":"n","prompt":"p","schedule_type":"weekly","day_of_week":"tuesday","hour":9,"minute":5}`)
		o.start()
		for range 30 {
			o.jump(7 * day)
			pass(time.Minute)
		}
		if n := len(o.tasks("fake:1")[0].History); n != 13 {
			t.Errorf("%d entries are kept of 30 weeks, want those of 13", n)
		}
	})
}

func TestNewRefusesHalfAConfiguration(t *testing.T) {
	submit := func(context.Context, schedule.Run) error { return errors.New("unused") }
	for name, cfg := range map[string]schedule.Config{
		"no store": {Submit: submit, Now: time.Now}, "no clock": {Store: &mortal{}, Submit: submit}, "no port": {Store: &mortal{}, Now: time.Now}, "a negative limit": {Store: &mortal{}, Submit: submit, MaxTasks: -1, Now: time.Now},
	} {
		if _, err := schedule.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oneclaw/toolgroups/schedule"
)

func cronPlan(expression string) schedule.Plan {
	return schedule.Plan{Kind: schedule.Cron, Expression: expression}
}

func TestCronAcrossChangesOfTheClock(t *testing.T) {
	for name, c := range map[string]struct{ zone, cron, after, want string }{
		"a missing hour: right after it, once": {
			"Europe/Berlin", "0,15,30 2 * * *", "2026-03-28T12:00:00Z",
			"2026-03-29T03:00:00+02:00 2026-03-30T02:00:00+02:00",
		},
		"a doubled hour: the first of the two": {
			"Europe/Berlin", "30 2,3 * * *", "2026-10-24T12:00:00Z",
			"2026-10-25T02:30:00+02:00 2026-10-25T03:30:00+01:00 2026-10-26T02:30:00+01:00",
		},
		"every hour, one is missing": {
			"Europe/Berlin", "30 * * * *", "2026-03-29T00:00:00Z",
			"2026-03-29T01:30:00+01:00 2026-03-29T03:30:00+02:00 2026-03-29T04:30:00+02:00",
		},
		"every hour, one is doubled": {
			"America/New_York", "0 * * * *", "2026-11-01T04:30:00Z",
			"2026-11-01T01:00:00-04:00 2026-11-01T01:00:00-05:00 2026-11-01T02:00:00-05:00",
		},
		"Samoa had no 30 December 2011": {
			"Pacific/Apia", "0 8 * * *", "2011-12-29T12:00:00Z",
			"2011-12-29T08:00:00-10:00 2011-12-31T08:00:00+14:00",
		},
		"workdays": {
			"UTC", "0 9 * * MON-FRI", "2026-06-12T08:00:00Z",
			"2026-06-12T09:00:00Z 2026-06-15T09:00:00Z",
		},
		"a day of the month or of the week, as crontab has it": {
			"UTC", "0 0 13 * 5", "2026-06-09T00:00:00Z",
			"2026-06-12T00:00:00Z 2026-06-13T00:00:00Z 2026-06-19T00:00:00Z",
		},
		"the last day of a month": {
			"UTC", "59 23 L * *", "2027-12-31T23:59:00Z",
			"2028-01-31T23:59:00Z 2028-02-29T23:59:00Z",
		},
		"leap days across 2100": {
			"Asia/Kolkata", "0 0 29 2 *", "2096-03-01T00:00:00Z",
			"2104-02-29T00:00:00+05:30",
		},
		"a name for it": {"UTC", "@daily", "2026-06-09T00:00:00Z", "2026-06-10T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, local, after := cronPlan(c.cron), zone(t, c.zone), instant(t, c.after)
			if err := plan.Check(); err != nil {
				t.Fatal(err)
			}
			for want := range strings.FieldsSeq(c.want) {
				got := plan.Next(after, local, "")
				if shown := got.In(local).Format(time.RFC3339); shown != want {
					t.Fatalf("after %s: %s, want %s", after, shown, want)
				}
				if last := plan.Last(got, local); !last.Equal(got) {
					t.Errorf("the last moment at %s is %s", got, last)
				}
				after = got
			}
		})
	}
}

// TestACronExpressionForADayIsADailyPlan follows both over changes of the clock.
func TestACronExpressionForADayIsADailyPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		local := zone(t, rapid.SampledFrom(zones()).Draw(t, "zone"))
		daily := schedule.Plan{Kind: schedule.Daily, Hour: rapid.IntRange(0, 23).Draw(t, "hour"), Minute: rapid.IntRange(0, 59).Draw(t, "minute")}
		plan := cronPlan(fmt.Sprintf("%d %d * * *", daily.Minute, daily.Hour))
		after := time.Unix(rapid.Int64Range(0, 2_000_000_000).Draw(t, "after"), 0)
		for range 10 {
			want := daily.Next(after, local, "")
			if got := plan.Next(after, local, ""); !got.Equal(want) {
				t.Fatalf("after %s: %s, a daily plan has %s", after, got, want)
			}
			at := after.Add(time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "since")))
			if got, want := plan.Last(at, local), daily.Last(at, local); !got.Equal(want) {
				t.Fatalf("last at %s: %s, a daily plan has %s", at, got, want)
			}
			after = want
		}
	})
}

// TestMomentsOfPlansGrow looks for the next moment and for the last one from anywhere: no
// moment lies between them.
func TestMomentsOfPlansGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		local := zone(t, rapid.SampledFrom(zones()).Draw(t, "zone"))
		plan := cronPlan(rapid.SampledFrom([]string{
			"*/15 * * * *", "7 * * * *", "0,30 1-3 * * *", "*/20 0-22/2 * * *", "0 12 1 * *", "5 4 * * 0", "* 2 * * *", "@hourly", "0 0 L 2 *",
		}).Draw(t, "cron"))
		if rapid.Bool().Draw(t, "interval") {
			plan = schedule.Plan{Kind: schedule.Interval, EveryMinutes: rapid.IntRange(1, 5000).Draw(t, "every"), From: rapid.Int64Range(0, 3_000_000_000).Draw(t, "from")}
		}
		after := time.Unix(rapid.Int64Range(0, 2_000_000_000).Draw(t, "after"), 0)
		for range 6 {
			next := plan.Next(after, local, "")
			if !next.After(after) {
				t.Fatalf("%s: next after %s is %s", plan, after, next)
			}
			if at := next.Add(-time.Second); plan.Last(at, local).After(after) {
				t.Fatalf("%s: between %s and %s there is %s", plan, after, next, plan.Last(at, local))
			}
			if last := plan.Last(next, local); !last.Equal(next) {
				t.Fatalf("%s: the last moment at %s is %s", plan, next, last)
			}
			after = next.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Hour)).Draw(t, "on")))
		}
	})
}

const everyQuarter = `{"name":"n","prompt":"p","schedule_type":"cron","cron":"*/15 * * * *"}`

func TestCronAndIntervalsRun(t *testing.T) {
	for name, c := range map[string]struct{ task, now, want string }{
		"cron in both hours that are doubled": {
			`{"name":"n","prompt":"p","schedule_type":"cron","cron":"0 * * * *","time_zone":"Europe/Berlin"}`, "2026-10-24T23:30:00Z",
			"20261025T000000Z 20261025T010000Z 20261025T020000Z",
		},
		"an interval, from the full minute on": {
			`{"name":"n","prompt":"p","schedule_type":"interval","every_minutes":45}`, "2026-06-10T05:00:20Z",
			"20260610T054500Z 20260610T063000Z 20260610T071500Z 20260610T080000Z",
		},
		"a day in a zone of its own": {
			`{"name":"n","prompt":"p","schedule_type":"daily","hour":8,"minute":0,"time_zone":"Asia/Tokyo"}`, "2026-06-09T22:00:00Z",
			"20260610T0800",
		},
	} {
		t.Run(name, func(t *testing.T) {
			at(t, "America/New_York", c.now, func(_ *testing.T, o *harness) {
				o.make(c.task)
				o.start()
				pass(3 * time.Hour)
				o.expect(strings.Fields(c.want)...)
			})
		})
	}
}

// TestCronWhenTheClockJumps puts the clock forward and back, and has been away.
func TestCronWhenTheClockJumps(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		o.make(everyQuarter)
		o.start()
		pass(time.Minute)
		o.jump(time.Hour) // 06:01: the latest is made up for
		pass(time.Minute)
		o.expect("20260610T060000Z")
		o.jump(-time.Hour) // 05:02: nothing comes a second time
		pass(time.Hour)
		o.expect()
		pass(15 * time.Minute)
		o.expect("20260610T061500Z")
		o.jump(5 * 365 * day)
		pass(time.Minute)
		if n := len(o.take()); n != 1 {
			t.Errorf("%d runs after a jump by years", n)
		}
		o.jump(-5 * 365 * day)
		pass(15 * time.Minute)
		o.expect("20260610T063000Z")
		o.stop()
		pass(2 * time.Hour)
		o.open()
		o.start()
		pass(time.Minute)
		o.expect("20260610T083000Z")
		if got := o.index(); len(got) != 1 {
			t.Errorf("index %q", got)
		}
	})
}

func TestAPlanThatIsChanged(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		id := o.make(morning)
		for _, c := range []struct{ fields, want, due string }{
			{`"cron":"0  9 * * 1-5","time_zone":"Asia/Tokyo"`, "schedule_type, hour 8 -> 0, cron, time_zone. Schedule: cron 0 9 * * 1-5 (Asia/Tokyo). Next run: 2026-06-11 09:00 (Asia/Tokyo)", "20260611T000000Z"},
			{`"time_zone":""`, "time_zone. Schedule: cron 0 9 * * 1-5. Next run: 2026-06-10 09:00 (UTC)", "20260610T090000Z"},
			{`"every_minutes":90`, "schedule_type, cron, every_minutes 0 -> 90. Schedule: every 90 minutes.", "20260610T063000Z"},
			{`"every_minutes":90,"cron":""`, "Nothing to change", "20260610T063000Z"},
			{`"schedule_type":"daily","hour":7,"minute":30`, "Schedule: daily, 07:30.", "20260610T073000Z"},
		} {
			got := o.must("update_scheduled_task", `{"task_id":"`+id+`",`+c.fields+`}`)
			if index := o.index(); !strings.Contains(got, c.want) || len(index) != 1 || !strings.HasPrefix(index[0], c.due) {
				t.Errorf("%s: %q, index %q; want %q, %s", c.fields, got, index, c.want, c.due)
			}
		}
		o.must("update_scheduled_task", `{"task_id":"`+id+`","every_minutes":5}`)
		if _, err := o.run(ann, "update_scheduled_task", `{"task_id":"`+id+`","schedule_type":"daily"}`); err == nil || !strings.Contains(err.Message, "needs 'hour' and 'minute'") {
			t.Errorf("to a daily task without a time: %+v", err)
		}
		if got := o.must("list_scheduled_tasks", `{}`); !strings.Contains(got, "schedule: every 5 minutes\n") {
			t.Errorf("list: %q", got)
		}
	})
}

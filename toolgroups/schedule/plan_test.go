package schedule_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"oneclaw/toolgroups/schedule"
)

func zone(t interface{ Fatal(...any) }, name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func instant(t interface{ Fatal(...any) }, text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestNextAcrossChangesOfTheClock(t *testing.T) {
	at := func(kind schedule.Kind, hour, minute int) schedule.Plan {
		return schedule.Plan{Kind: kind, Hour: hour, Minute: minute, Weekday: "sunday", Date: "2026-03-29"}
	}
	for name, c := range map[string]struct {
		zone  string
		plan  schedule.Plan
		after string
		want  []string
	}{
		"Berlin in spring: the first minute after the gap": {
			"Europe/Berlin", at(schedule.Daily, 2, 30), "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},
		},
		"Berlin in autumn: the first of the two": {
			"Europe/Berlin", at(schedule.Daily, 2, 30), "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		},
		"Berlin, between the two": {
			"Europe/Berlin", at(schedule.Daily, 2, 30), "2026-10-25T00:45:00Z",
			[]string{"2026-10-26T02:30:00+01:00"},
		},
		"New York in spring, weekly": {
			"America/New_York", at(schedule.Weekly, 2, 0), "2026-03-07T12:00:00Z",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-15T02:00:00-04:00"},
		},
		"New York in autumn": {
			"America/New_York", at(schedule.Daily, 1, 59), "2026-10-31T12:00:00Z",
			[]string{"2026-11-01T01:59:00-04:00", "2026-11-02T01:59:00-05:00"},
		},
		"Lord Howe moves by half an hour": {
			"Australia/Lord_Howe", at(schedule.Daily, 2, 15), "2026-10-03T00:00:00Z",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"},
		},
		"Lord Howe in autumn": {
			"Australia/Lord_Howe", at(schedule.Daily, 1, 45), "2026-04-04T00:00:00Z",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"},
		},
		"Kolkata never changes": {
			"Asia/Kolkata", at(schedule.Daily, 2, 30), "2026-03-28T22:00:00Z",
			[]string{"2026-03-30T02:30:00+05:30", "2026-03-31T02:30:00+05:30"},
		},
		"Cairo skips midnight": {
			"Africa/Cairo", at(schedule.Daily, 0, 0), "2026-04-23T12:00:00Z",
			[]string{"2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"},
		},
		"Toronto once skipped the end of a day: its last minute": {
			"America/Toronto", at(schedule.Daily, 23, 45), "1919-03-30T12:00:00Z",
			[]string{"1919-03-30T23:29:00-05:00", "1919-03-31T23:45:00-04:00"},
		},
		"Samoa had no 30 December 2011": {
			"Pacific/Apia", at(schedule.Daily, 8, 0), "2011-12-29T12:00:00Z",
			[]string{"2011-12-29T08:00:00-10:00", "2011-12-31T08:00:00+14:00"},
		},
		"one-time in the gap": {
			"Europe/Berlin", at(schedule.OneTime, 2, 30), "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", ""},
		},
		"today counts only while the time is ahead": {
			"Asia/Kolkata", at(schedule.Weekly, 8, 0), "2026-11-22T02:30:00Z",
			[]string{"2026-11-29T08:00:00+05:30"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			after := instant(t, c.after)
			for _, want := range c.want {
				got, shown := c.plan.Next(after, zone(t, c.zone), ""), ""
				if !got.IsZero() {
					shown = got.Format(time.RFC3339)
				}
				if shown != want {
					t.Fatalf("after %s: %q, want %q", after, shown, want)
				}
				after = got
			}
		})
	}
}

func TestARunIsNotRepeatedWhereTheClockWentBack(t *testing.T) {
	plan, berlin := schedule.Plan{Kind: schedule.Daily, Hour: 8}, zone(t, "Europe/Berlin")
	now := instant(t, "2026-06-10T05:00:00Z") // 07:00 there
	for lastDay, want := range map[string]string{
		"":           "2026-06-10T08:00:00+02:00",
		"2026-06-09": "2026-06-10T08:00:00+02:00",
		"2026-06-10": "2026-06-11T08:00:00+02:00",
		"2031-01-01": "2026-06-10T08:00:00+02:00", // the clock was wrong when it ran
	} {
		if got := plan.Next(now, berlin, lastDay).Format(time.RFC3339); got != want {
			t.Errorf("run on %q: next %s, want %s", lastDay, got, want)
		}
	}
}

// zones change their clocks in all the ways there are.
func zones() []string {
	return []string{
		"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata",
		"Africa/Cairo", "America/Santiago", "Africa/Casablanca", "Asia/Tehran", "Pacific/Auckland",
	}
}

// TestEveryLocalDayHasOneRun follows a daily plan over some weeks.
func TestEveryLocalDayHasOneRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		local := zone(t, rapid.SampledFrom(zones()).Draw(t, "zone"))
		plan := schedule.Plan{
			Kind: schedule.Daily, Hour: rapid.IntRange(0, 23).Draw(t, "hour"), Minute: rapid.IntRange(0, 59).Draw(t, "minute"),
		}
		after := time.Unix(rapid.Int64Range(0, 2_000_000_000).Draw(t, "after"), 0)
		ran := ""
		for range 40 {
			next := plan.Next(after, local, ran)
			if !next.After(after) {
				t.Fatalf("next after %s is %s", after, next)
			}
			if back := plan.Last(next, local); !back.Equal(next) {
				t.Fatalf("the last moment at %s is %s", next, back)
			}
			day := next.Format(time.DateOnly)
			if ran != "" {
				before, _ := time.Parse(time.DateOnly, ran) // formatted above
				if want := before.AddDate(0, 0, 1).Format(time.DateOnly); day != want {
					t.Fatalf("the run of %s is followed by one of %s", ran, day)
				}
			}
			if again := plan.Next(after, local, ""); !again.Equal(next) {
				t.Fatalf("without the day of the last run: %s, with it %s", again, next)
			}
			// Any moment before the next run leads to the same.
			gap := next.Sub(after)
			at := after.Add(time.Duration(rapid.Int64Range(0, int64(gap)-1).Draw(t, "between")))
			if same := plan.Next(at, local, ran); !same.Equal(next) {
				t.Fatalf("at %s the next is %s, at %s it is %s", after, next, at, same)
			}
			after, ran = next, day
		}
	})
}

func TestWeeklyRunsOnItsWeekday(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		local := zone(t, rapid.SampledFrom(zones()).Draw(t, "zone"))
		day := rapid.SampledFrom([]string{"monday", "wednesday", "friday", "saturday", "sunday"}).Draw(t, "day")
		plan := schedule.Plan{
			Kind: schedule.Weekly, Weekday: day,
			Hour: rapid.IntRange(0, 23).Draw(t, "hour"), Minute: rapid.IntRange(0, 59).Draw(t, "minute"),
		}
		after := time.Unix(rapid.Int64Range(0, 2_000_000_000).Draw(t, "after"), 0)
		first := plan.Next(after, local, "")
		second := plan.Next(first, local, first.Format(time.DateOnly))
		a, _ := time.Parse(time.DateOnly, first.Format(time.DateOnly))
		b, _ := time.Parse(time.DateOnly, second.Format(time.DateOnly))
		if !first.After(after) || first.Weekday() != second.Weekday() || b.Sub(a) != 7*24*time.Hour {
			t.Fatalf("%s after %s: %s, then %s", day, after, first, second)
		}
	})
}

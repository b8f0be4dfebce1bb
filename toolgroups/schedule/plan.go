package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is how often a task runs.
type Kind string

// The kinds of schedules.
const (
	OneTime Kind = "one_time"
	Daily   Kind = "daily"
	Weekly  Kind = "weekly"
)

// dayFormat is how local days are written and compared.
const dayFormat = time.DateOnly

// lookAhead is how many days are looked at for the next run: two weeks, because a day
// can be missing where a place has moved across the date line.
const lookAhead = 15

// Plan says at which local times a task runs.
//
// Each local day has at most one moment of a plan. Where the clock is put forward past
// it, that is the first minute after the gap; where the clock is put back and shows the
// time twice, it is the first of the two.
type Plan struct {
	Kind   Kind `json:"kind"`
	Hour   int  `json:"hour"`
	Minute int  `json:"minute"`
	// Weekday is the English name in lower case, for Weekly.
	Weekday string `json:"weekday,omitempty"`
	// Date is YYYY-MM-DD, for OneTime.
	Date string `json:"date,omitempty"`
}

// Check returns nil for a plan that has moments.
func (p Plan) Check() error {
	if p.Hour < 0 || p.Hour > 23 {
		return fmt.Errorf("'hour' is %d, want 0 to 23", p.Hour)
	}
	if p.Minute < 0 || p.Minute > 59 {
		return fmt.Errorf("'minute' is %d, want 0 to 59", p.Minute)
	}
	switch p.Kind {
	case Daily:
	case Weekly:
		if p.Weekday == "" {
			return errors.New("a weekly task needs 'day_of_week'")
		}
		if _, ok := weekday(p.Weekday); !ok {
			return fmt.Errorf("'day_of_week' is %q, want an English weekday such as monday", p.Weekday)
		}
	case OneTime:
		if p.Date == "" {
			return errors.New("a one_time task needs 'date' as YYYY-MM-DD")
		}
		day, err := time.Parse(dayFormat, p.Date)
		if err != nil || day.Year() < 1970 || day.Year() > 2200 {
			return fmt.Errorf("'date' is %q, want a day as YYYY-MM-DD", p.Date)
		}
	default:
		return fmt.Errorf("'schedule_type' is %q, want one_time, daily or weekly", p.Kind)
	}
	return nil
}

// String says in words when the plan runs.
func (p Plan) String() string {
	at := fmt.Sprintf("%02d:%02d", p.Hour, p.Minute)
	switch p.Kind {
	case Weekly:
		day, _ := weekday(p.Weekday)
		return "every " + day.String() + ", " + at
	case OneTime:
		return "one-time on " + p.Date + ", " + at
	}
	return "daily, " + at
}

func weekday(name string) (time.Weekday, bool) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if strings.ToLower(day.String()) == name {
			return day, true
		}
	}
	return 0, false
}

// Next returns the first moment of a valid plan after the given time. Of a daily or
// weekly one it skips the local days up to lastDay (YYYY-MM-DD, or empty), on which
// the task has run. It returns the zero time where there is none.
func (p Plan) Next(after time.Time, zone *time.Location, lastDay string) time.Time {
	if p.Kind == OneTime {
		if at := p.once(zone); at.After(after) {
			return at
		}
		return time.Time{}
	}
	today := civil(after.In(zone))
	if ahead := today.AddDate(0, 0, 2).Format(dayFormat); lastDay > ahead {
		lastDay = "" // written while the clock was wrong
	}
	for n := range lookAhead {
		day := today.AddDate(0, 0, n)
		if day.Format(dayFormat) <= lastDay {
			continue
		}
		if at := p.on(day, zone); at.After(after) {
			return at
		}
	}
	return time.Time{}
}

// Last returns the last moment of a valid plan up to the given time, or the zero time.
func (p Plan) Last(now time.Time, zone *time.Location) time.Time {
	if p.Kind == OneTime {
		if at := p.once(zone); !at.After(now) {
			return at
		}
		return time.Time{}
	}
	today := civil(now.In(zone))
	for n := range lookAhead {
		if at := p.on(today.AddDate(0, 0, -n), zone); !at.IsZero() && !at.After(now) {
			return at
		}
	}
	return time.Time{}
}

// once is the moment of a one-time plan.
func (p Plan) once(zone *time.Location) time.Time {
	day, err := time.Parse(dayFormat, p.Date)
	if err != nil {
		return time.Time{}
	}
	return clock(day, p.Hour, p.Minute, zone)
}

// on is the moment of a daily or weekly plan on a day, or the zero time.
func (p Plan) on(day time.Time, zone *time.Location) time.Time {
	if p.Kind == Weekly {
		if want, _ := weekday(p.Weekday); day.Weekday() != want {
			return time.Time{}
		}
	}
	return clock(day, p.Hour, p.Minute, zone)
}

// civil is the local day of a time as midnight UTC, for counting days.
func civil(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

// wall is what a clock on the wall shows, for comparing.
func wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC)
}

// clock is when the clocks of a zone show a time on a day: first, where they do twice;
// right after, where they skip it. A day that the zone does not have gives the zero time.
func clock(day time.Time, hour, minute int, zone *time.Location) time.Time {
	want := time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, time.UTC)
	at := time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, zone)
	start, end := at.ZoneBounds()
	if shown := wall(at); !shown.Equal(want) {
		// In a gap time.Date may use the offset before or after it.
		change := start
		if shown.Before(want) {
			change = end
		}
		return afterGap(change, want, zone)
	}
	if start.IsZero() {
		return at
	}
	_, offset := at.Zone()
	_, before := start.Add(-time.Second).In(zone).Zone()
	first := at.Add(time.Duration(offset-before) * time.Second)
	if first.Before(start) && wall(first).Equal(want) {
		return first
	}
	return at
}

// afterGap is the first full minute after a change of the clocks that skipped want, or
// the last one before it where that is on the next day.
func afterGap(change, want time.Time, zone *time.Location) time.Time {
	next := change.In(zone)
	if civil(next).Equal(civil(want)) {
		return ceilMinute(next)
	}
	if last := change.Add(-time.Minute).In(zone); civil(last).Equal(civil(want)) {
		return last.Truncate(time.Minute)
	}
	return time.Time{}
}

// ceilMinute is for the odd seconds of offsets before the twentieth century.
func ceilMinute(t time.Time) time.Time {
	if s := t.Second(); s > 0 {
		return t.Add(time.Duration(60-s) * time.Second)
	}
	return t
}

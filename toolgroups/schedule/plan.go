package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"oneclaw/internal/wording"
)

// Kind is the kind of a schedule.
type Kind string

// The kinds of schedules.
const (
	OneTime  Kind = "one_time"
	Daily    Kind = "daily"
	Weekly   Kind = "weekly"
	Cron     Kind = "cron"
	Interval Kind = "interval"
)

// hasTimeOfDay reports whether a task of this kind runs at a given hour and minute.
func (k Kind) hasTimeOfDay() bool { return k != Cron && k != Interval }

// maxEvery bounds the minutes of an interval: a year.
const maxEvery = 366 * 24 * 60

// dayFormat is the format of local days, which also sorts.
const dayFormat = time.DateOnly

// lookAheadDays is the number of days searched for the next run: two weeks, because a day can be
// missing if a place has moved across the date line.
const lookAheadDays = 15

// Plan says at which local times a task runs.
//
// A plan with an hour and a minute has at most one moment on each local day. If the clock skips that
// time, the moment is the first minute after the gap; if the clock shows the time twice, the moment
// is the first of the two. See [expression] for cron expressions. An interval counts elapsed minutes,
// whatever the clock does.
type Plan struct {
	Kind   Kind `json:"kind"`
	Hour   int  `json:"hour"`
	Minute int  `json:"minute"`
	// Weekday is the English name in lower case, for Weekly.
	Weekday string `json:"weekday,omitempty"`
	// Date is YYYY-MM-DD, for OneTime.
	Date string `json:"date,omitempty"`
	// Expression has five fields, for Cron.
	Expression string `json:"cron,omitempty"`
	// EveryMinutes is the number of minutes between two runs, for Interval, and From the start of the
	// first interval, in seconds since 1970.
	EveryMinutes int   `json:"every,omitempty"`
	From         int64 `json:"from,omitempty"`
	// Zone is the IANA name of the time zone; empty means the zone in the settings.
	Zone string `json:"zone,omitempty"`
}

// zoneOr returns the time zone of a plan, or the given zone if the plan has none.
func (p Plan) zoneOr(otherwise *time.Location) *time.Location {
	if p.Zone == "" {
		return otherwise
	}
	zone, err := time.LoadLocation(p.Zone)
	if err != nil {
		return otherwise // the host no longer has it
	}
	return zone
}

// Check returns an error if the plan is invalid or never fires.
func (p Plan) Check() error {
	if p.Hour < 0 || p.Hour > 23 {
		return fmt.Errorf("'hour' is %d, want 0 to 23", p.Hour)
	}
	if p.Minute < 0 || p.Minute > 59 {
		return fmt.Errorf("'minute' is %d, want 0 to 59", p.Minute)
	}
	if _, err := wording.LoadZone(p.Zone); err != nil && p.Zone != "" {
		return fmt.Errorf("'time_zone' is %q, want an IANA name such as Europe/Berlin", p.Zone)
	}
	switch p.Kind {
	case Daily:
		return nil
	case Weekly:
		return p.checkWeekday()
	case OneTime:
		return p.checkDate()
	case Cron:
		_, err := parseExpression(p.Expression)
		return err
	case Interval:
		if p.EveryMinutes < 1 || p.EveryMinutes > maxEvery {
			return fmt.Errorf("'every_minutes' is %d, want 1 to %d", p.EveryMinutes, maxEvery)
		}
		return nil
	}
	return fmt.Errorf("'schedule_type' is %q, want one_time, daily, weekly, cron or interval", p.Kind)
}

func (p Plan) checkWeekday() error {
	if p.Weekday == "" {
		return errors.New("a weekly task needs 'day_of_week'")
	}
	if _, ok := parseWeekday(p.Weekday); !ok {
		return fmt.Errorf("'day_of_week' is %q, want an English weekday such as monday", p.Weekday)
	}
	return nil
}

func (p Plan) checkDate() error {
	if p.Date == "" {
		return errors.New("a one_time task needs 'date' as YYYY-MM-DD")
	}
	day, err := time.Parse(dayFormat, p.Date)
	if err != nil || day.Year() < 1970 || day.Year() > 2200 {
		return fmt.Errorf("'date' is %q, want a day as YYYY-MM-DD", p.Date)
	}
	return nil
}

// String describes when the plan runs.
func (p Plan) String() string {
	if p.Zone == "" {
		return p.describe()
	}
	return p.describe() + " (" + p.Zone + ")"
}

func (p Plan) describe() string {
	at := fmt.Sprintf("%02d:%02d", p.Hour, p.Minute)
	switch p.Kind {
	case Cron:
		return "cron " + p.Expression
	case Interval:
		return fmt.Sprintf("every %d minutes", p.EveryMinutes)
	case Weekly:
		day, _ := parseWeekday(p.Weekday)
		return "every " + day.String() + ", " + at
	case OneTime:
		return "one-time on " + p.Date + ", " + at
	}
	return "daily, " + at
}

func parseWeekday(name string) (time.Weekday, bool) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if strings.ToLower(day.String()) == name {
			return day, true
		}
	}
	return 0, false
}

// Next returns the first moment of a valid plan after the given time, or the zero time; zone is the
// zone in the settings. For a daily or weekly plan it skips the local days up to lastDay
// (YYYY-MM-DD, or empty), the day of the task's last run.
func (p Plan) Next(after time.Time, zone *time.Location, lastDay string) time.Time {
	zone = p.zoneOr(zone)
	switch p.Kind {
	case OneTime:
		if at := p.oneTimeMoment(zone); at.After(after) {
			return at
		}
		return time.Time{}
	case Cron:
		e, err := parseExpression(p.Expression)
		if err != nil {
			return time.Time{}
		}
		return e.nextAfter(after, zone)
	case Interval:
		return p.lastOfInterval(after).Add(p.interval())
	}
	today := localDay(after.In(zone))
	if ahead := today.AddDate(0, 0, 2).Format(dayFormat); lastDay > ahead {
		lastDay = "" // written while the clock was wrong
	}
	for n := range lookAheadDays {
		day := today.AddDate(0, 0, n)
		if day.Format(dayFormat) <= lastDay {
			continue
		}
		if at := p.momentOn(day, zone); at.After(after) {
			return at
		}
	}
	return time.Time{}
}

// Last returns the last moment of a valid plan up to the given time, or the zero time.
func (p Plan) Last(now time.Time, zone *time.Location) time.Time {
	zone = p.zoneOr(zone)
	switch p.Kind {
	case OneTime:
		if at := p.oneTimeMoment(zone); !at.After(now) {
			return at
		}
		return time.Time{}
	case Cron:
		e, err := parseExpression(p.Expression)
		if err != nil {
			return time.Time{}
		}
		return e.lastUpTo(now, zone)
	case Interval:
		return p.lastOfInterval(now)
	}
	today := localDay(now.In(zone))
	for n := range lookAheadDays {
		if at := p.momentOn(today.AddDate(0, 0, -n), zone); !at.IsZero() && !at.After(now) {
			return at
		}
	}
	return time.Time{}
}

// interval returns the time between two runs; a minute if the record is invalid.
func (p Plan) interval() time.Duration {
	return time.Duration(min(max(p.EveryMinutes, 1), maxEvery)) * time.Minute
}

// lastOfInterval returns the last moment of an interval up to the given time.
func (p Plan) lastOfInterval(now time.Time) time.Time {
	since := now.Unix() - p.From
	every := int64(p.interval() / time.Second)
	over := since % every
	if over < 0 {
		over += every
	}
	return time.Unix(now.Unix()-over, 0)
}

// oneTimeMoment returns the moment of a one-time plan.
func (p Plan) oneTimeMoment(zone *time.Location) time.Time {
	day, err := time.Parse(dayFormat, p.Date)
	if err != nil {
		return time.Time{}
	}
	return localMoment(day, p.Hour, p.Minute, zone)
}

// momentOn returns the moment of a daily or weekly plan on a day, or the zero time.
func (p Plan) momentOn(day time.Time, zone *time.Location) time.Time {
	if p.Kind == Weekly {
		if want, _ := parseWeekday(p.Weekday); day.Weekday() != want {
			return time.Time{}
		}
	}
	return localMoment(day, p.Hour, p.Minute, zone)
}

// localDay returns the local day of a time as midnight UTC, for counting days.
func localDay(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

// wallClock returns the local date and time as UTC, for comparing.
func wallClock(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC)
}

// localMoment returns when the local clock shows a time on a day. It returns the first of two such
// moments, the end of the gap for a skipped time, and the zero time for a day that the zone skips.
func localMoment(day time.Time, hour, minute int, zone *time.Location) time.Time {
	want := time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, time.UTC)
	at := time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, zone)
	start, end := at.ZoneBounds()
	if shown := wallClock(at); !shown.Equal(want) {
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
	if first.Before(start) && wallClock(first).Equal(want) {
		return first
	}
	return at
}

// afterGap returns the first full minute after a clock change that skipped want, or the last minute
// before the change if the first one after it is on the next day.
func afterGap(change, want time.Time, zone *time.Location) time.Time {
	next := change.In(zone)
	if localDay(next).Equal(localDay(want)) {
		return ceilMinute(next)
	}
	if last := change.Add(-time.Minute).In(zone); localDay(last).Equal(localDay(want)) {
		return last.Truncate(time.Minute)
	}
	return time.Time{}
}

// ceilMinute rounds up to a full minute: offsets before the twentieth century have odd seconds.
func ceilMinute(t time.Time) time.Time {
	if s := t.Second(); s > 0 {
		return t.Add(time.Duration(60-s) * time.Second)
	}
	return t
}

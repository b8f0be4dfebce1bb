package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

const (
	// maxExpression bounds a cron expression, in bytes.
	maxExpression = 100
	// maxYears bounds the search: no weekday falls on 29 February less often than once in 40 years.
	maxYears = 41
	// maxSteps bounds the steps of a search for the next moment. It suffices for the minutes of some
	// days that a zone skips, and for its clock changes in maxYears.
	maxSteps = 5000
	// maxRepeatedHours is the longest time that a clock has ever shown twice.
	maxRepeatedHours = 25 * time.Hour
)

// expression is a cron expression of five fields.
//
// An expression for every hour follows elapsed time: it fires in both of the hours that a clock
// shows twice, and not in an hour that the clock skips. Any other expression follows the local clock
// like other plans: once if a time is shown twice, and right after the gap if it is skipped.
type expression struct {
	*cron.SpecSchedule
	everyHour bool
}

// parseExpression parses an expression and refuses expressions that never fire.
func parseExpression(text string) (expression, error) {
	if text == "" {
		return expression{}, errors.New("a cron task needs 'cron', an expression of five fields such as '0 9 * * 1-5'")
	}
	bad := func(why string) (expression, error) {
		return expression{}, fmt.Errorf("'cron' is %q: %s; want minute, hour, day of month, month and day of week, such as '0 9 * * 1-5'", clip(text), why)
	}
	switch {
	case len(text) > maxExpression:
		return bad(fmt.Sprintf("it has more than %d characters", maxExpression))
	case strings.Contains(text, "="):
		return bad("the time zone belongs into 'time_zone'")
	case strings.HasPrefix(text, "@every"):
		return bad("an interval is the schedule_type interval with 'every_minutes'")
	}
	options := cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.Extended | cron.DowOrDom
	parser := cron.MustNewParser(options).WithMaxSearchYears(maxYears)
	parsed, err := parser.Parse(text)
	if err != nil {
		return bad(explainFields(text, func(text string) bool { _, err := parser.Parse(text); return err == nil }))
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return bad("it names no times")
	}
	spec.Location = time.Local // the location of the time passed to Next
	const allHours = 1<<24 - 1
	e := expression{SpecSchedule: spec, everyHour: spec.Hour&allHours == allHours}
	if e.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return expression{}, fmt.Errorf("'cron' is %q, which never fires: there is no such day", text)
	}
	return e, nil
}

// explainFields says which fields of an expression cannot be read, and what works instead.
func explainFields(text string, parses func(string) bool) string {
	names := []string{"minute", "hour", "day of month", "month", "day of week"}
	fields := strings.Fields(text)
	if len(fields) != len(names) {
		return fmt.Sprintf("it has %d fields", len(fields))
	}
	var wrong []string
	for i, name := range names {
		alone := []string{"*", "*", "*", "*", "*"}
		if alone[i] = fields[i]; parses(strings.Join(alone, " ")) {
			continue
		}
		wrong = append(wrong, fmt.Sprintf("%q is no %s", fields[i], name))
		switch field := strings.ToUpper(fields[i]); {
		case name == "day of week" && strings.Contains(field, "L"):
			wrong = append(wrong, "the last Friday of a month is FRI#L")
		case name == "day of month" && strings.Contains(field, "L"):
			wrong = append(wrong, "the last day of a month is L")
		case strings.Contains(field, "H"):
			wrong = append(wrong, "a number stands for H, such as 17")
		}
	}
	if len(wrong) == 0 {
		return "it cannot be read"
	}
	return strings.Join(wrong, ", ")
}

func clip(text string) string { return text[:min(len(text), maxExpression)] }

// nextAfter returns the first moment of the expression after a time, or the zero time.
func (e expression) nextAfter(t time.Time, zone *time.Location) time.Time {
	if e.everyHour {
		return e.nextAfterElapsed(t, zone)
	}
	shown := wallClock(t.In(zone))
	for range maxSteps {
		if shown = e.Next(shown); shown.IsZero() {
			return time.Time{}
		}
		if at := localMoment(localDay(shown), shown.Hour(), shown.Minute(), zone); at.After(t) {
			return at
		}
	}
	return time.Time{}
}

// nextAfterElapsed is nextAfter for expressions that follow elapsed time. Between two clock changes
// a zone has one offset.
func (e expression) nextAfterElapsed(t time.Time, zone *time.Location) time.Time {
	within := t
	for range maxSteps {
		local := within.In(zone)
		_, offset := local.Zone()
		_, end := local.ZoneBounds()
		at := e.Next(t.In(time.FixedZone("", offset)))
		if at.IsZero() || end.IsZero() || at.Before(end) {
			return at
		}
		within, t = end, end.Add(-time.Nanosecond)
	}
	return time.Time{}
}

// lastUpTo returns the last moment of the expression up to a time, or the zero time.
func (e expression) lastUpTo(t time.Time, zone *time.Location) time.Time {
	if e.everyHour {
		return e.lastUpToElapsed(t, zone)
	}
	shown := wallClock(t.In(zone)).Add(maxRepeatedHours)
	for range maxSteps {
		if shown = e.Prev(shown); shown.IsZero() {
			return time.Time{}
		}
		if at := localMoment(localDay(shown), shown.Hour(), shown.Minute(), zone); !at.IsZero() && !at.After(t) {
			return at
		}
	}
	return time.Time{}
}

// lastUpToElapsed is lastUpTo for expressions that follow elapsed time.
func (e expression) lastUpToElapsed(t time.Time, zone *time.Location) time.Time {
	within, before := t, t.Truncate(time.Second).Add(time.Second)
	for range maxSteps {
		local := within.In(zone)
		_, offset := local.Zone()
		start, _ := local.ZoneBounds()
		at := e.Prev(before.In(time.FixedZone("", offset)))
		if at.IsZero() || start.IsZero() || !at.Before(start) {
			return at
		}
		within, before = start.Add(-time.Nanosecond), start
	}
	return time.Time{}
}

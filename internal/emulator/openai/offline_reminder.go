package openai

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	reminderPattern = regexp.MustCompile(`(?is)\bremind(?:er)?\b`)
	inTime          = regexp.MustCompile(`(?i)\bin\s+(a|an|one|two|three|four|five|six|seven|ten|\d{1,4})\s*(s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)\b`)
	atTime          = regexp.MustCompile(`(?i)\b(?:at\s+)?(\d{1,2})(?::(\d{2}))\s*(am|pm)?\b|\bat\s+(\d{1,2})\s*(am|pm)?\b`)
	everyDay        = regexp.MustCompile(`(?i)\b(?:every|each)\s+(day|morning|evening|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b|\b(daily)\b`)
	tomorrow        = regexp.MustCompile(`(?i)\btomorrow\b`)
	reminderRun     = regexp.MustCompile(`(?is)^Remind the user: (.+)$`)
	reminderPrefix  = regexp.MustCompile(`(?i)^(?:please\s+)?(?:can you\s+|could you\s+)?(?:set (?:me )?a reminder|remind me|reminder)\b`)
	connectives     = regexp.MustCompile(`(?i)^[\s,.:]*(?:to|that|about|for|:)\s+`)
	my              = regexp.MustCompile(`(?i)\bmy\b`)
)

// numberWords are words for small numbers before a unit of time.
var numberWords = map[string]int{"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10}

// scheduleReminder schedules a reminder.
func (t *turn) scheduleReminder() Reply {
	what := reminderText(t.said)
	if what == "" {
		return Reply{Text: "What shall I remind you of, and when? For example: remind me in 10 minutes to stretch."}
	}
	clock, known := t.toolResult("get_current_time")
	if !known {
		return t.useTool("get_current_time", map[string]any{"format": "iso8601"}, nil)
	}
	now, err := time.Parse(time.RFC3339, firstLine(clock))
	if err != nil {
		return Reply{Text: "I could not read the clock, so I set no reminder."}
	}
	args, when, ok := parseSchedule(t.said, now)
	if !ok {
		return Reply{Text: "When? I understand “in 10 minutes”, “at 15:30”, “tomorrow at 9:00” and “every Monday at 9:00”."}
	}
	args["name"], args["prompt"] = shorten(what, 60), "Remind the user: "+what
	return t.useGroupTool("scheduled_tasks", "schedule_task", args, func(text string) string {
		if !strings.HasPrefix(text, "Scheduled ") {
			return "I could not set the reminder: " + rewordForUser(text)
		}
		return fmt.Sprintf("⏰ I will remind you %s: %s.", when, strings.TrimRight(what, "."))
	})
}

// reminderText returns the subject of the reminder, without the time.
func reminderText(said string) string {
	text := said
	for _, cutOut := range []*regexp.Regexp{inTime, everyDay, tomorrow, atTime} {
		text = cutOut.ReplaceAllString(text, "")
	}
	text = reminderPrefix.ReplaceAllString(strings.TrimSpace(text), "")
	text = connectives.ReplaceAllString(" "+strings.TrimSpace(text), "")
	text = strings.Trim(strings.Join(strings.Fields(text), " "), " ,.!?")
	return my.ReplaceAllString(text, "your")
}

// parseSchedule parses the time of a reminder, as arguments of schedule_task and in words.
func parseSchedule(said string, now time.Time) (args map[string]any, when string, ok bool) {
	once := func(at time.Time) (map[string]any, string, bool) {
		day := "on " + at.Format("Monday 2 January")
		switch at.Format(time.DateOnly) {
		case now.Format(time.DateOnly):
			day = "today"
		case now.AddDate(0, 0, 1).Format(time.DateOnly):
			day = "tomorrow"
		}
		return map[string]any{"schedule_type": "one_time", "date": at.Format(time.DateOnly), "hour": at.Hour(), "minute": at.Minute()},
			day + " at " + at.Format("15:04"), true
	}
	if m := inTime.FindStringSubmatch(said); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			n = numberWords[strings.ToLower(m[1])]
		}
		unit := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[strings.ToLower(m[2])[0]]
		// Tasks run at full minutes, so round up to the next one.
		return once(now.Add(time.Duration(n)*unit + time.Minute - time.Nanosecond).Truncate(time.Minute))
	}
	hour, minute, timed := parseClockTime(said)
	if m := everyDay.FindStringSubmatch(said); m != nil {
		day := strings.ToLower(m[1] + m[2])
		if !timed {
			if hour = 9; day == "evening" {
				hour = 18
			}
		}
		at := fmt.Sprintf(" at %02d:%02d", hour, minute)
		switch day {
		case "day", "daily", "morning", "evening":
			return map[string]any{"schedule_type": "daily", "hour": hour, "minute": minute}, "every day" + at, true
		}
		return map[string]any{"schedule_type": "weekly", "day_of_week": day, "hour": hour, "minute": minute},
			"every " + strings.ToUpper(day[:1]) + day[1:] + at, true
	}
	later := tomorrow.MatchString(said)
	if !timed && !later {
		return nil, "", false
	}
	if !timed {
		hour = 9
	}
	at := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, now.Location())
	if later || !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return once(at)
}

// parseClockTime parses a time of day.
func parseClockTime(said string) (hour, minute int, ok bool) {
	m := atTime.FindStringSubmatch(said)
	if m == nil {
		return 0, 0, false
	}
	hour, _ = strconv.Atoi(m[1] + m[4])
	minute, _ = strconv.Atoi(m[2])
	switch half := strings.ToLower(m[3] + m[5]); {
	case half == "pm" && hour < 12:
		hour += 12
	case half == "am" && hour == 12:
		hour = 0
	}
	return hour, minute, hour < 24 && minute < 60
}

// remindNow answers the prompt of a reminder that is due.
func (t *turn) remindNow() Reply {
	return Reply{Text: "⏰ Reminder: " + strings.TrimSpace(reminderRun.FindStringSubmatch(t.said)[1])}
}

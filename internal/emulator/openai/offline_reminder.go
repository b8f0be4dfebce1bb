package openai

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	numberWord  = `a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,4}`
	weekdayWord = `monday|tuesday|wednesday|thursday|friday|saturday|sunday`
	// otherTimes are words for times in German, Spanish and French that are not put into English.
	otherTimes = `woche\w*|semanas?|semaines?|monat\w*|mes|meses|mois|tage?n?|d[ií]as?|jours?|stunden?|horas|heures|jahr\w*|mittags?|abends?|nachmittags?|nachts?|tarde|noche|soir|matin`
	monthWord  = `january|february|march|april|may|june|july|august|september|october|november|december`
)

var (
	reminderPattern = regexp.MustCompile(`(?is)\bremind (?:me|us)\b|\b(?:set|make|create|add|need|want|give me)\s+(?:me\s+)?(?:a|another)\s+reminder\b|^(?:a\s+)?reminder\b|\b(?:tell|ping|nudge) me to\b|\bwake me\b`)
	cancelPattern   = regexp.MustCompile(`(?i)\b(?:cancel|delete|remove|stop|drop|clear)\b.*\b(?:reminders?|reminding|schedules?|scheduled)\b|\b(?:don't|do not|stop) remind`)
	cancelsThat     = regexp.MustCompile(`(?i)^(?:(?:no|oh|ok|please|actually|sorry|wait|never ?mind)\b[\s,.!]*)*(?:never ?mind|(?:cancel|undo|delete|remove|drop|forget) (?:it|that|this)(?: one)?(?: again)?(?:,? please)?)\W*$`)
	allOfThem       = regexp.MustCompile(`(?i)\b(?:all|every|everything)\b`)
	keepPattern     = regexp.MustCompile(`(?i)\b(?:keep|except|but not|apart from|other than)\b(.+)$`)
	correction      = regexp.MustCompile(`(?is)^((?:(?:no|oh|sorry|wait|oops|actually)\b[\s,.!]*)*(?:(?:i meant?|make (?:it|that)|i wanted|it should be|(?:change|move) (?:it|that) to)\s+)?)(.+?)(?:,?\s+(?:and )?not\s+.+)?[.!]*$`)
	besidesTime     = regexp.MustCompile(`(?i)^(?:\W|\b(?:to|for|on|at|by|instead|please|rather|then)\b)*$`)
	sameAgain       = regexp.MustCompile(`(?i)\b(?:do|repeat|make|set|schedule|have) (?:the same(?: thing)?|that|it|this)(?: again)?\s+((?:every|each|tomorrow|on|at|in)\b.+?)[?.!]*$`)
	listTasks       = regexp.MustCompile(`(?i)\b(?:which|what|list|show|any|do i have|have i)\b.*\b(?:reminders?|schedules?|scheduled)\b|^my (?:reminders|schedules?)\b|^(?:check|read) my (?:schedule|reminders)\b`)
	inTime          = regexp.MustCompile(`(?i)\bin\s+(half an hour|` + numberWord + `)\s*(s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?|weeks?)?\b(\s+and a half\b)?`)
	atTime          = regexp.MustCompile(`(?i)\b(?:at\s+)?(?:(half past|quarter past|quarter to)\s+(` + numberWord + `)|(\d{1,2})[:.](\d{2})|(\d{1,2})(?:\s*o'clock)?)\s*(am|pm|a\.m\.|p\.m\.)?(?:\W|$)|\b(?:at\s+)?(noon|midday|midnight)\b`)
	everyDay        = regexp.MustCompile(`(?i)\b(?:every|each)\s+(day|morning|evening|weekday|` + weekdayWord + `)\b|\b(daily)\b|\bon (weekdays)\b`)
	everySome       = regexp.MustCompile(`(?i)\bevery\s+(?:(` + numberWord + `)\s+)?(minutes?|hours?)\b`)
	everyOther      = regexp.MustCompile(`(?i)\b(?:every|each)\b`)
	limited         = regexp.MustCompile(`(?i)\b(?:every|each|daily)\b.*\b(?:except|but not|until|till|starting|from)\b|\b(?:hours?|days?|weeks?|minutes?) and (?:a quarter|(?:` + numberWord + `)\s*(?:minutes?|mins?|hours?|days?|seconds?)\b)|\b(?:in (?:` + numberWord + `) (?:month|year)|next (?:week|month|year)|(?:before|after) (?:tomorrow|` + weekdayWord + `)|(?:days?|weeks?|months?) (?:from|after|before)|(?:from|between) \d{1,2}|` + otherTimes + `)\b`)
	ordinal         = regexp.MustCompile(`(?i)\b(?:on|by) (?:the )?\d{1,2}(?:st|nd|rd|th)\b`)
	onDay           = regexp.MustCompile(`(?i)\b(?:(?:on|by)\s+)?(?:this\s+|next\s+)?(` + weekdayWord + `)\b`)
	onDate          = regexp.MustCompile(`(?i)\b(?:on\s+)?(?:the\s+)?(?:(\d{1,2})(?:st|nd|rd|th)?(?:\s+of)?\s+(` + monthWord + `)|(` + monthWord + `)\s+(\d{1,2})(?:st|nd|rd|th)?)\b(?:,?\s+(\d{4})\b)?`)
	tomorrow        = regexp.MustCompile(`(?i)\btomorrow\b(?:\s+morning)?`)
	partOfDay       = regexp.MustCompile(`(?i)\b(?:tonight|(?:this|tomorrow|every|each|` + weekdayWord + `|in the) (?:afternoon|evening|night)|at night)\b`)
	today           = regexp.MustCompile(`(?i)\b(today|tonight|this evening|this afternoon)\b`)
	reminderRun     = regexp.MustCompile(`(?is)^Remind the user: (.+)$`)
	reminderPrefix  = regexp.MustCompile(`(?i)^(?:(?:please|can you|could you|oh|and|also)[\s,]+)*(?:(?:set|make|create|add|i need|i want|give me) (?:me )?(?:a|another) reminder|(?:remind|tell|ping|nudge|wake) (?:me|us)|(?:a )?reminder)\b`)
	connectives     = regexp.MustCompile(`(?i)^[\s,.:]*(?:(?:to|that|about|for|of|up|daran|an|de|:)\s*,?\s+)+`)
	my              = regexp.MustCompile(`(?i)\bmy\b`)
	himOrHer        = regexp.MustCompile(`(?i)\b(?:him|her|them)\b`)
	madeID          = regexp.MustCompile(`(?s)^(?:(?:Scheduled|Updated) '.*' \(id ([a-z0-9]+)\)|\{.*?"id":\s*"([^"]+)")`)
	taskEntry       = regexp.MustCompile(`(?m)^\d+\. (.*)\n\s+id: (\S+)\n\s+schedule: (.*)\n\s+enabled: (\S+)(?:\n\s+last run: .*\n\s+next run: (.*))?`)
)

// numberWords are words for small numbers.
var numberWords = map[string]int{"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}

// understood begins what to say of a time, after a question for it.
const understood = "I understand “"

const whenText = "When? " + understood + "in 10 minutes”, “at 15:30”, “tomorrow at 9:00”, “on 14 March”, “on Friday at half past 8” and “every Monday at 9:00”."

// asksForReminder reports whether a text asks for a reminder, and not about reminders.
func asksForReminder(said string) bool {
	return reminderPattern.MatchString(said) && !cancelPattern.MatchString(said)
}

// scheduleReminder schedules a reminder, or changes the one that the message corrects.
func (t *turn) scheduleReminder() string {
	what := reminderText(t.said)
	if what == "" && t.hasWord("wake") {
		what = "wake up"
	}
	if what == "" {
		return "What shall I remind you of, and when? For example: remind me in 10 minutes to stretch."
	}
	if name := contactName(t.given, t.whole); name != "" {
		what = himOrHer.ReplaceAllString(what, name)
	}
	when, ok := parseSchedule(t.said, t.now())
	switch {
	case !ok && when.words != "":
		return "That was " + when.words + " already. " + whenText
	case !ok:
		return whenText
	}
	told := fmt.Sprintf("I will remind you %s: %s.", when.words, strings.TrimRight(what, "."))
	if t.corrects && t.last.task != "" {
		when.args["task_id"] = t.last.task
		return t.do("scheduled_tasks", "update_scheduled_task", when.args, "Updated ", "change the reminder", "⏰ Changed. "+told)
	}
	when.args["name"], when.args["prompt"] = shorten(what, 60), "Remind the user: "+what
	return t.do("scheduled_tasks", "schedule_task", when.args, "Scheduled ", "set the reminder", "⏰ "+told)
}

// now returns the present time, by the tool that tells it.
func (t *turn) now() time.Time {
	now, err := time.Parse(time.RFC3339, firstLine(t.use("get_current_time", map[string]any{"format": "iso8601"})))
	if err != nil {
		panic(stop{Text: "I could not read the clock, so I did nothing."})
	}
	return now
}

// made is what a message made: a task, or an event of the calendar, by its id.
type made struct{ task, event string }

// lastMade returns what was made last.
func lastMade(messages []Message) (last made) {
	for _, r := range resultsIn(messages) {
		switch found := madeID.FindStringSubmatch(r.text); {
		case found == nil:
		case found[1] != "":
			last.task = found[1]
		case strings.HasPrefix(r.call.Name, "calendar_create") || strings.HasPrefix(r.call.Name, "calendar_update"):
			last.event = found[2]
		}
	}
	return last
}

// lastAsked returns what the last message of a user asks for, with what it corrects, and what the bot said last.
func lastAsked(messages []Message) (asks, bot string) {
	for _, m := range messages {
		switch m.Role {
		case "user":
			said := inEnglish(plainText(m.Content))
			asks = append(corrected(asks, bot, said), said)[0]
		case "assistant":
			bot = m.Content
		}
	}
	return asks, bot
}

// corrected returns the wish in a message with the time that the next one gives: a correction, a repetition, or
// an answer to the question for it; nil if that is about something else.
func corrected(before, asked, said string) []string {
	again, m := sameAgain.FindStringSubmatch(said), correction.FindStringSubmatch(said)
	switch {
	case m != nil && (m[1] != "" || again == nil && strings.Contains(asked, understood)):
		said = m[2]
	case m != nil && again != nil:
		said = again[1]
	default:
		return nil
	}
	noDay, noClock := withoutDay(said), withoutClock(said)
	if !besidesTime.MatchString(withoutClock(noDay)) || noDay == "" && noClock == "" {
		return nil
	}
	for _, p := range slices.Backward((&turn{said: before}).parts()) {
		wish := before[p[0]:p[1]]
		if !asksForReminder(wish) && !addEvent.MatchString(wish) {
			continue
		}
		if noDay != said {
			wish = withoutDay(wish)
		}
		if noClock != said || inTime.MatchString(said) || everySome.MatchString(said) {
			wish = withoutClock(wish)
		}
		return []string{strings.TrimRight(wish, " .!?") + " " + strings.TrimSpace(said)}
	}
	return nil
}

// correct does what the message before asked for at another time, or once more.
func (t *turn) correct(m []string) string {
	one := t.about(m[0])
	one.corrects = correction.FindStringSubmatch(t.said)[1] != "" || !sameAgain.MatchString(t.said)
	if asksForReminder(one.said) {
		return one.scheduleReminder()
	}
	return one.createEvent()
}

// scheduledTask is an entry of list_scheduled_tasks.
type scheduledTask struct{ name, id, line string }

// scheduled returns what is scheduled, and the tool's own words.
func (t *turn) scheduled() (list []scheduledTask, text string) {
	text = t.useOf("scheduled_tasks", "list_scheduled_tasks", nil)
	for _, m := range taskEntry.FindAllStringSubmatch(text, -1) {
		if m[4] == "yes" {
			list = append(list, scheduledTask{m[1], m[2], fmt.Sprintf("- **%s**, %s", m[1], m[3])})
		}
	}
	return list, text
}

func (t *turn) listReminders() string {
	list, text := t.scheduled()
	if len(list) == 0 {
		return rewordForUser(text)
	}
	return "Your reminders and schedules:\n" + taskLines(list)
}

func taskLines(list []scheduledTask) string {
	var lines []string
	for _, task := range list {
		lines = append(lines, task.line)
	}
	return strings.Join(lines, "\n")
}

// cancelReminders deletes the reminders that a message names, or all but those that it wants to keep.
func (t *turn) cancelReminders() string {
	said, keep := t.said, ""
	if m := keepPattern.FindStringSubmatchIndex(said); m != nil {
		said, keep = said[:m[0]], said[m[2]:m[3]]
	}
	list, _ := t.scheduled()
	if len(list) == 0 {
		return "There is nothing to cancel."
	}
	all := allOfThem.MatchString(said)
	words, spared := contentWords(cancelWords.ReplaceAllString(said, " ")), contentWords(keep)
	isKept := func(task scheduledTask) bool {
		name := contentWords(task.name)
		named := countShared(words, name) > 0 || len(words) == 0 && (all || len(list) == 1 || task.id == t.last.task)
		return !named || countShared(spared, name) > 0
	}
	var chosen []ToolCall
	var kept []scheduledTask
	for _, task := range list {
		if isKept(task) {
			kept = append(kept, task)
		} else {
			chosen = append(chosen, call("delete_scheduled_task", map[string]any{"task_id": task.id}))
		}
	}
	switch {
	case all && keep != "" && len(kept) == 0:
		return "I find no reminder like that to keep, so I cancelled none. There are:\n" + taskLines(list)
	case len(chosen) == 0 || len(chosen) > 1 && !all:
		return "Which one? Say “cancel the reminder about …”, or “cancel all my reminders”. There are:\n" + taskLines(list)
	}
	gone := t.useAll(chosen...)
	for i, text := range gone {
		gone[i] = "- " + strings.TrimSuffix(rewordForUser(text), " It will not run again.")
	}
	if all && len(kept) > 0 {
		gone = append(gone, "\nI kept:\n"+taskLines(kept))
	}
	return "What became of it:\n" + strings.Join(gone, "\n")
}

var cancelWords = regexp.MustCompile(`(?i)\b(?:cancel|undo|forget|never ?mind|delete|remove|stop|drop|clear|every|everything|actually|sorry|wait|ok|please|reminders?|reminding|schedules?|scheduled|don't|do not|remind|about|one|for)\b`)

// reminderText returns the subject of the reminder, without the time.
func reminderText(said string) string {
	text := strings.Trim(withoutClock(withoutDay(said)), " ,.!?")
	text = reminderPrefix.ReplaceAllString(text, "")
	text = connectives.ReplaceAllString(" "+strings.TrimSpace(text), "")
	text = strings.Trim(strings.Join(strings.Fields(text), " "), " ,.!?")
	return my.ReplaceAllString(text, "your")
}

// days are the ways to name a day, apart from each other.
var days = [...]*regexp.Regexp{onDate, onDay, tomorrow, today}

// withoutDay returns a text without what it says of days and intervals.
func withoutDay(text string) string {
	for _, cutOut := range []*regexp.Regexp{everySome, inTime, partOfDay, everyDay, tomorrow, today, onDate, onDay} {
		text = cutOut.ReplaceAllString(text, "")
	}
	return strings.Join(strings.Fields(text), " ")
}

func withoutClock(text string) string {
	if m := findClock(text); m != nil {
		text = strings.Replace(text, m[0], " ", 1)
	}
	return strings.Join(strings.Fields(text), " ")
}

// schedule is a time of a reminder: as arguments of schedule_task, in words, and if it is once as a time.
type schedule struct {
	args  map[string]any
	words string
	at    time.Time
}

// once is the schedule of a time. It is not ok if it is over.
func once(at, now time.Time) (schedule, bool) {
	day := "on " + at.Format("Monday 2 January")
	switch at.Format(time.DateOnly) {
	case now.Format(time.DateOnly):
		day = "today"
	case now.AddDate(0, 0, 1).Format(time.DateOnly):
		day = "tomorrow"
	}
	args := map[string]any{"schedule_type": "one_time", "date": at.Format(time.DateOnly), "hour": at.Hour(), "minute": at.Minute()}
	return schedule{args, day + " at " + at.Format("15:04"), at}, at.After(now)
}

// parseSchedule parses the time of a reminder. It is not ok if there is no time, one that it does not understand, or
// one that is over, which it says.
func parseSchedule(said string, now time.Time) (when schedule, ok bool) { //nolint:cyclop // One form of words after another.
	hour, minute, timed := parseClockTime(said)
	after, some, every := inTime.FindStringSubmatch(said), everySome.FindStringSubmatch(said), everyDay.FindStringSubmatch(said)
	switch {
	case isAmbiguous(said):
		return when, false
	case after != nil && (after[2] != "" || strings.EqualFold(after[1], "half an hour")):
		wait := 30 * time.Minute
		if unit := unitOf(after[2]); unit > 0 {
			wait = time.Duration(readNumber(after[1])) * unit
			if after[3] != "" {
				wait += unit / 2
			}
		}
		// Tasks run at full minutes, so round up to the next one.
		return once(now.Add(wait+time.Minute-time.Nanosecond).Truncate(time.Minute), now)
	case some != nil:
		minutes := max(1, readNumber(some[1])) * int(unitOf(some[2])/time.Minute)
		return schedule{args: map[string]any{"schedule_type": "interval", "every_minutes": minutes}, words: fmt.Sprintf("every %d minutes", minutes)}, true
	case every != nil:
		return everyPlan(strings.ToLower(every[1]+every[2]+every[3]), hour, minute, timed), true
	case everyOther.MatchString(said):
		return when, false
	}
	if part := strings.ToLower(partOfDay.FindString(said)); !timed {
		hour = 9
		if strings.HasSuffix(part, "noon") {
			hour = 15
		} else if part != "" {
			hour = 19
		}
	}
	at := onClock(now, hour, minute)
	switch {
	case tomorrow.MatchString(said):
		at = at.AddDate(0, 0, 1)
	case onDate.MatchString(said):
		day, ok := dateIn(said, now)
		if at = onClock(day, hour, minute); !ok {
			return when, false
		}
	case onDay.MatchString(said):
		named := onDay.FindStringSubmatch(said)[1]
		for !strings.EqualFold(at.Weekday().String(), named) || !at.After(now) {
			at = at.AddDate(0, 0, 1)
		}
	case today.MatchString(said):
	case !timed:
		return when, false
	case !at.After(now):
		at = at.AddDate(0, 0, 1)
	}
	return once(at, now)
}

// dateIn returns the beginning of the day that a text names by its date: the next one if it names no year.
func dateIn(said string, now time.Time) (day time.Time, ok bool) {
	m := onDate.FindStringSubmatch(said)
	if m == nil {
		return day, false
	}
	month, err := time.Parse("January", m[2]+m[3])
	number := readNumber(m[1] + m[4])
	day = time.Date(cmp.Or(readNumber(m[5]), now.Year()), month.Month(), number, 0, 0, 0, 0, now.Location())
	ok = err == nil && day.Day() == number
	if m[5] == "" && now.Sub(day) > 24*time.Hour {
		day = day.AddDate(1, 0, 0)
	}
	return day, ok
}

// isAmbiguous reports whether a text names several times or days, or limits them: a reminder at one of them would be
// wrong.
func isAmbiguous(said string) bool {
	named := 0
	for _, day := range days {
		named += len(day.FindAllString(said, -1))
	}
	return named > 1 || limited.MatchString(said) || ordinal.MatchString(onDate.ReplaceAllString(said, "")) || len(clockTimes(said)) > 1
}

// unitOf returns the unit of time that a word begins with.
func unitOf(word string) time.Duration {
	const day = 24 * time.Hour
	return map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": day, "w": 7 * day}[strings.ToLower(word[:min(1, len(word))])]
}

// everyPlan returns the schedule of what is wanted every day, weekday, or day of that name.
func everyPlan(day string, hour, minute int, timed bool) schedule {
	if !timed {
		if hour, minute = 9, 0; day == "evening" {
			hour = 18
		}
	}
	args := map[string]any{"hour": hour, "minute": minute}
	switch day {
	case "day", "daily", "morning", "evening":
		args["schedule_type"], day = "daily", "day"
	case "weekday", "weekdays":
		args, day = map[string]any{"schedule_type": "cron", "cron": fmt.Sprintf("%d %d * * 1-5", minute, hour)}, "weekday"
	default:
		args["schedule_type"], args["day_of_week"], day = "weekly", day, titleCase(day)
	}
	return schedule{args: args, words: fmt.Sprintf("every %s at %02d:%02d", day, hour, minute)}
}

// findClock returns what a text says of a time of day, as atTime finds it: the only one.
func findClock(said string) []string {
	if found := clockTimes(said); len(found) == 1 {
		return found[0]
	}
	return nil
}

// clockTimes returns the times of day in a text. A bare number is one only after "at" or before am, pm and o'clock.
func clockTimes(said string) [][]string {
	return slices.DeleteFunc(atTime.FindAllStringSubmatch(said, -1), func(m []string) bool {
		text := strings.ToLower(m[0])
		return m[5] != "" && m[6] == "" && !strings.HasPrefix(text, "at") && !strings.Contains(text, "clock")
	})
}

// parseClockTime parses the time of day in a text.
func parseClockTime(said string) (hour, minute int, ok bool) {
	m := findClock(strings.ToLower(said))
	if m == nil {
		return 0, 0, false
	}
	hour, minute = readNumber(m[2]+m[3]+m[5]), readNumber(m[4])
	switch m[1] + m[7] {
	case "noon", "midday":
		return 12, 0, true
	case "midnight":
		return 0, 0, true
	case "half past":
		minute = 30
	case "quarter past":
		minute = 15
	case "quarter to":
		hour, minute = hour-1, 45
	}
	later := strings.ToLower(partOfDay.FindString(said))
	switch half := strings.ReplaceAll(m[6], ".", ""); {
	case half == "pm" && hour < 12:
		hour += 12
	case half == "am" && hour == 12:
		hour = 0
	case half == "" && later != "" && hour < 12 && (hour > 4 || strings.HasSuffix(later, "noon")):
		hour += 12
	}
	return hour, minute, hour >= 0 && hour < 24 && minute < 60
}

package openai

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

var (
	deleteSpam = regexp.MustCompile(`(?i)\b(delete|remove|trash|throw away)\b.*\b(spam|junk)\b`)
	aboutMail  = regexp.MustCompile(`(?i)\b(e-?mails?|mails?|inbox|gmail|letters)\b`)
	aboutDays  = regexp.MustCompile(`(?i)\b(calendar|appointments?|meetings?|agenda)\b`)
	aboutSheet = regexp.MustCompile(`(?i)\b(?:budget sheet|budget spreadsheet|sheet budget|my (?:budget|sheets?|spreadsheets?))\b`)
	looks      = regexp.MustCompile(`(?i)\b(?:check|show|list|read|any|new|unread|what|what's|which|is there|are there|do i have|did i|have i|look)\b`)
	sendMail   = regexp.MustCompile(`(?i)\b(?:send|write|draft|compose)\b.*\be?-?mail\b|^(?:please )?(?:e-?mail|mail)\s+\S+`)
	mailTo     = regexp.MustCompile(`[\w.+-]+@[\w-]+\.[\w.-]*\w`)
	mailBody   = regexp.MustCompile(`(?is)(?:\bsaying\b|\bthat says\b|\bwith the text\b|:)\s*["“]?(.+?)["”]?\s*$`)
	mailFrom   = regexp.MustCompile(`(?i)\bfrom\s+([\p{L}\d.@_-]+)`)
	addEvent   = regexp.MustCompile(`(?i)\b(?:put|add|create|schedule|book|make|enter|set up)\b.*\b(?:calendar|appointment|meeting|event)\b`)
	inCalendar = regexp.MustCompile(`(?i)\b(?:in|into|on|to)\s+(?:my|the|our)\s+calendar\b`)
	eventVerb  = regexp.MustCompile(`(?i)^(?:please )?(?:put|add|create|schedule|book|make|enter|set up)\s+(?:me\s+)?(?:an?\s+|the\s+)?`)
	dangling   = regexp.MustCompile(`(?: at)?(?: on)?(?: for)?$`)
	mailID     = regexp.MustCompile(`"id":\s*"([^"]+)"`)
	duration   = regexp.MustCompile(`(?i),?\s*\b(?:for\s+)?(half an hour|(?:` + numberWord + `)\s+(?:hours?|minutes?))\b`)
)

// maxShown bounds a list in an answer.
const maxShown = 8

// sendEmail sends an email whose address and words the message gives.
func (t *turn) sendEmail() string {
	to, body := mailTo.FindString(t.said), mailBody.FindStringSubmatch(t.said)
	if to == "" || body == nil {
		return "I sent no email. Without a real model I need the address and the words: send an email to anna@example.org saying “See you at nine”."
	}
	text := t.useOf("google_gmail", "gmail_send", map[string]any{"to": to, "subject": shorten(firstLine(body[1]), 60), "body": body[1]})
	if refusal := rewordForUser(text); refusal != text || !strings.Contains(text, `"id"`) {
		return refusal
	}
	return "The email to " + to + " is sent."
}

// createEvent adds an event to the calendar, of an hour unless the message says how long.
func (t *turn) createEvent() string {
	now := t.now()
	long, said := time.Hour, duration.ReplaceAllString(t.said, "")
	if length := duration.FindStringSubmatch(t.said); length != nil {
		long = 30 * time.Minute
		if parts := strings.Fields(length[1]); len(parts) == 2 {
			long = time.Duration(readNumber(parts[0])) * unitOf(parts[1])
		}
	}
	when, ok := parseSchedule(said, now)
	if !ok || when.at.IsZero() {
		return "When is it? " + understood + "tomorrow at 9:00” and “on Friday at 2 pm”."
	}
	what := strings.Trim(strings.Join(strings.Fields(eventVerb.ReplaceAllString(reminderText(inCalendar.ReplaceAllString(said, "")), "")), " "), " ,.")
	what = dangling.ReplaceAllString(what, "")
	tool, event := "calendar_create_event", map[string]any{
		"calendar_id": "primary", "summary": what, "start": when.at.Format(time.RFC3339), "end": when.at.Add(long).Format(time.RFC3339),
	}
	if t.corrects && t.last.event != "" {
		tool, event["event_id"] = "calendar_update_event", t.last.event
	}
	if text := t.useOf("google_calendar", tool, event); !strings.Contains(text, `"id"`) {
		return rewordForUser(text)
	}
	return fmt.Sprintf("In your calendar: **%s**, %s, for %v minutes.", what, when.words, long.Minutes())
}

func (t *turn) listEmails() string {
	query, unread, from := "in:inbox", "", ""
	if t.hasWord("unread", "new") {
		query, unread = query+" is:unread", "unread "
	}
	if m := mailFrom.FindStringSubmatch(t.said); m != nil {
		query, from = query+" from:"+strings.ToLower(m[1]), " from "+m[1]
	}
	text := t.useOf("google_gmail", "gmail_search", map[string]any{"query": query})
	lines, ok := listed(text)
	count := len(lines)
	switch {
	case !ok:
		return rewordForUser(text)
	case count == 0 && query == "in:inbox":
		return "Your inbox is empty."
	case count == 0:
		return "There is no " + unread + "email" + from + " in your inbox."
	case count > maxShown:
		lines = append(lines[:maxShown:maxShown], fmt.Sprintf("- … and %d more", count-maxShown))
	}
	return fmt.Sprintf("There are %d %semails%s in your inbox:\n\n%s", count, unread, from, strings.Join(lines, "\n"))
}

// trashSpam moves all spam to the trash with one call.
func (t *turn) trashSpam() string {
	found := t.useOf("google_gmail", "gmail_search", map[string]any{"query": "in:spam", "max_results": 100})
	if lines, ok := listed(found); !ok {
		return rewordForUser(found)
	} else if len(lines) == 0 {
		return "There is no spam."
	}
	done := t.use("gmail_batch_modify", map[string]any{"message_ids": allIn(mailID, found), "add_labels": []string{"TRASH"}, "remove_labels": []string{"SPAM"}})
	if refusal := rewordForUser(done); refusal != done {
		return refusal
	}
	return "The spam is in the trash: one call for all of it."
}

// listEvents lists the next events, or those of the day that the message names.
func (t *turn) listEvents() string {
	args, when := map[string]any{"calendar_id": "primary", "max_results": maxShown}, ""
	t.load("google_calendar", "calendar_list_events")
	if namedDay(t.said) != "" {
		if day, ok := dayIn(t.said, t.now()); ok {
			args["time_min"], args["time_max"] = day.Format(time.RFC3339), day.AddDate(0, 0, 1).Format(time.RFC3339)
			when = " on " + day.Format("Monday 2 January")
		}
	}
	text := t.use("calendar_list_events", args)
	switch lines, ok := listed(text); {
	case !ok:
		return shorten(rewordForUser(text), 1500)
	case len(lines) == 0:
		return "Nothing is in your calendar" + when + "."
	default:
		return "In your calendar" + when + ":\n\n" + strings.Join(lines, "\n")
	}
}

// readSheet shows the spreadsheet of the emulated account.
func (t *turn) readSheet() string {
	text := t.useOf("google_sheets", "sheets_read_values", map[string]any{"spreadsheet_id": "sheet-budget", "range": "Budget!A1:D10"})
	var found struct {
		Values [][]any `json:"values"`
	}
	if json.Unmarshal([]byte(text), &found) != nil || len(found.Values) == 0 {
		return shorten(rewordForUser(text), 1500)
	}
	var tb table
	for _, row := range found.Values {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = fmt.Sprint(cell)
		}
		tb = append(tb, cells)
	}
	return "The sheet *Budget* says:\n\n" + tb.markdown()
}

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
	mailID     = regexp.MustCompile(`"id":\s*"([^"]+)"`)
	duration   = regexp.MustCompile(`(?i),?\s*\b(?:for\s+)?(half an hour|(?:` + numberWord + `)\s+(?:hours?|minutes?))\b`)
)

// googleRules returns the rules for requests about the user's Google account.
func (t *turn) googleRules() []rule {
	return []rule{
		{deleteSpam.MatchString(t.said), t.trashSpam},
		{sendMail.MatchString(t.said) && t.hasGroup("google_gmail", "gmail_send"), t.sendEmail},
		{aboutMail.MatchString(t.said) && looks.MatchString(t.said), t.listEmails},
		{addEvent.MatchString(t.said) && t.hasGroup("google_calendar", "calendar_create_event"), t.createEvent},
		{aboutDays.MatchString(t.said) && looks.MatchString(t.said), t.listEvents},
		{aboutSheet.MatchString(t.said) && looks.MatchString(t.said), t.readSheet},
	}
}

// useGroupTool loads the group of a tool if necessary and uses the tool.
func (t *turn) useGroupTool(group, tool string, args map[string]any, answer func(string) string) Reply {
	if reply, wait := t.ensureTool(group, tool); wait {
		return reply
	}
	return t.useTool(tool, args, answer)
}

// maxShown bounds a list in an answer.
const maxShown = 8

// sendEmail sends an email whose address and words the message gives.
func (t *turn) sendEmail() Reply {
	to, body := mailTo.FindString(t.said), mailBody.FindStringSubmatch(t.said)
	if to == "" || body == nil {
		return Reply{Text: "I sent no email. Without a real model I need the address and the words: send an email to anna@example.org saying “See you at nine”."}
	}
	subject := shorten(firstLine(body[1]), 60)
	return t.useGroupTool("google_gmail", "gmail_send", map[string]any{"to": to, "subject": subject, "body": body[1]}, func(text string) string {
		if refusal := rewordForUser(text); refusal != strings.TrimSpace(text) || !strings.Contains(text, `"id"`) {
			return refusal
		}
		return "The email to " + to + " is sent."
	})
}

// createEvent adds an event to the calendar, of an hour unless the message says how long.
func (t *turn) createEvent() Reply {
	return t.withClock(func(now time.Time) Reply {
		long, length := time.Hour, duration.FindStringSubmatch(t.said)
		said := duration.ReplaceAllString(t.said, "")
		if length != nil {
			long = 30 * time.Minute
			if parts := strings.Fields(length[1]); len(parts) == 2 {
				long = time.Duration(readNumber(parts[0])) * unitOf(parts[1])
			}
		}
		args, when, ok := parseSchedule(said, now)
		if !ok || args["date"] == nil {
			return Reply{Text: "When is it? " + understood + "tomorrow at 9:00” and “on Friday at 2 pm”."}
		}
		day, err := time.ParseInLocation(time.DateOnly, fmt.Sprint(args["date"]), now.Location())
		if err != nil {
			return t.decline()
		}
		start := day.Add(time.Duration(args["hour"].(int))*time.Hour + time.Duration(args["minute"].(int))*time.Minute)
		what := strings.Trim(strings.Join(strings.Fields(eventVerb.ReplaceAllString(reminderText(inCalendar.ReplaceAllString(said, "")), "")), " "), " ,.")
		for _, small := range []string{" for", " on", " at"} {
			what = strings.TrimSuffix(what, small)
		}
		tool, event := "calendar_create_event", map[string]any{
			"calendar_id": "primary", "summary": what, "start": start.Format(time.RFC3339), "end": start.Add(long).Format(time.RFC3339),
		}
		if t.corrects && t.last.event != "" {
			tool, event["event_id"] = "calendar_update_event", t.last.event
		}
		return t.useGroupTool("google_calendar", tool, event, func(text string) string {
			if !strings.Contains(text, `"id"`) {
				return rewordForUser(text)
			}
			return fmt.Sprintf("In your calendar: **%s**, %s, for %v minutes.", what, when, long.Minutes())
		})
	})
}

func (t *turn) listEmails() Reply {
	query, unread, from := "in:inbox", "", ""
	if t.hasWord("unread", "new") {
		query, unread = query+" is:unread", "unread "
	}
	if m := mailFrom.FindStringSubmatch(t.said); m != nil {
		query, from = query+" from:"+strings.ToLower(m[1]), " from "+m[1]
	}
	return t.useGroupTool("google_gmail", "gmail_search", map[string]any{"query": query}, func(text string) string {
		lines, ok := listed(text)
		switch {
		case !ok:
			return rewordForUser(text)
		case len(lines) == 0 && query == "in:inbox":
			return "Your inbox is empty."
		case len(lines) == 0:
			return "There is no " + unread + "email" + from + " in your inbox."
		}
		count := len(lines)
		if count > maxShown {
			lines = append(lines[:maxShown:maxShown], fmt.Sprintf("- … and %d more", count-maxShown))
		}
		return fmt.Sprintf("There are %d %semails%s in your inbox:\n\n%s", count, unread, from, strings.Join(lines, "\n"))
	})
}

// trashSpam moves all spam to the trash with one call.
func (t *turn) trashSpam() Reply {
	if done, ok := t.toolResult("gmail_batch_modify"); ok {
		if refusal := rewordForUser(done); refusal != strings.TrimSpace(done) {
			return Reply{Text: refusal}
		}
		return Reply{Text: "The spam is in the trash: one call for all of it."}
	}
	found, ok := t.toolResult("gmail_search")
	if !ok {
		return t.useGroupTool("google_gmail", "gmail_search", map[string]any{"query": "in:spam", "max_results": 100}, nil)
	}
	if lines, ok := listed(found); !ok {
		return Reply{Text: rewordForUser(found)}
	} else if len(lines) == 0 {
		return Reply{Text: "There is no spam."}
	}
	var ids []string
	for _, id := range mailID.FindAllStringSubmatch(found, -1) {
		ids = append(ids, id[1])
	}
	return t.useTool("gmail_batch_modify", map[string]any{
		"message_ids": ids, "add_labels": []string{"TRASH"}, "remove_labels": []string{"SPAM"},
	}, nil)
}

// listEvents lists the next events, or those of the day that the message names.
func (t *turn) listEvents() Reply {
	args, when := map[string]any{"calendar_id": "primary", "max_results": maxShown}, ""
	if _, wait := t.ensureTool("google_calendar", "calendar_list_events"); !wait && namedDay(t.said) != "" {
		clock := t.withClock(func(now time.Time) Reply {
			if day, ok := dayIn(t.said, now); ok {
				args["time_min"], args["time_max"] = day.Format(time.RFC3339), day.AddDate(0, 0, 1).Format(time.RFC3339)
				when = " on " + day.Format("Monday 2 January")
			}
			return Reply{}
		})
		if len(clock.Calls) > 0 || clock.Text != "" {
			return clock
		}
	}
	return t.useGroupTool("google_calendar", "calendar_list_events", args, func(text string) string {
		lines, ok := listed(text)
		switch {
		case !ok:
			return shorten(rewordForUser(text), 1500)
		case len(lines) == 0:
			return "Nothing is in your calendar" + when + "."
		}
		return "In your calendar" + when + ":\n\n" + strings.Join(lines, "\n")
	})
}

// readSheet shows the spreadsheet of the emulated account.
func (t *turn) readSheet() Reply {
	return t.useGroupTool("google_sheets", "sheets_read_values", map[string]any{"spreadsheet_id": "sheet-budget", "range": "Budget!A1:D10"}, func(text string) string {
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
	})
}

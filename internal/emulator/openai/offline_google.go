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
	aboutSheet = regexp.MustCompile(`(?i)\b(budget|spreadsheet|sheet)\b`)
)

// googleRules returns the rules for requests about the user's Google account.
func (t *turn) googleRules() []rule {
	return []rule{
		{deleteSpam.MatchString(t.said), t.trashSpam},
		{aboutMail.MatchString(t.said), t.listEmails},
		{aboutDays.MatchString(t.said), t.listEvents},
		{aboutSheet.MatchString(t.said), t.readSheet},
	}
}

// useGroupTool loads the group of a tool if necessary and uses the tool.
func (t *turn) useGroupTool(group, tool string, args map[string]any, answer func(string) string) Reply {
	if reply, wait := t.ensureTool(group, tool); wait {
		for _, d := range t.results {
			if d.call.Name == "load_tool_group" && strings.HasPrefix(d.text, "Loaded ") {
				return Reply{Text: fmt.Sprintf("The tool group `%s` is loaded, but I do not know how to use it: "+setKey, group)}
			}
		}
		return reply
	}
	return t.useTool(tool, args, answer)
}

// email is an email in the result of gmail_search.
type email struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	From    string `json:"from"`
}

func parseEmails(text string) ([]email, bool) {
	var found struct {
		Messages []email `json:"messages"`
	}
	err := json.Unmarshal([]byte(text), &found)
	return found.Messages, err == nil
}

// maxShown bounds a list in an answer.
const maxShown = 8

func (t *turn) listEmails() Reply {
	return t.useGroupTool("google_gmail", "gmail_search", map[string]any{"query": "in:inbox"}, func(text string) string {
		all, ok := parseEmails(text)
		if !ok {
			return rewordForUser(text)
		}
		if len(all) == 0 {
			return "Your inbox is empty."
		}
		var b strings.Builder
		fmt.Fprintf(&b, "There are %d emails in your inbox:\n", len(all))
		for i, l := range all {
			if i == maxShown {
				fmt.Fprintf(&b, "\n- … and %d more", len(all)-maxShown)
				break
			}
			from, _, _ := strings.Cut(l.From, " <")
			fmt.Fprintf(&b, "\n- **%s**, from %s", l.Subject, from)
		}
		return b.String() + "\n\nI can delete the spam ones, if you like."
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
	all, ok := parseEmails(found)
	switch {
	case !ok:
		return Reply{Text: rewordForUser(found)}
	case len(all) == 0:
		return Reply{Text: "There is no spam."}
	}
	var ids []string
	for _, l := range all {
		ids = append(ids, l.ID)
	}
	return t.useTool("gmail_batch_modify", map[string]any{
		"message_ids": ids, "add_labels": []string{"TRASH"}, "remove_labels": []string{"SPAM"},
	}, nil)
}

func (t *turn) listEvents() Reply {
	return t.useGroupTool("google_calendar", "calendar_list_events", map[string]any{"calendar_id": "primary", "max_results": maxShown}, func(text string) string {
		var found struct {
			Events []struct {
				Summary string `json:"summary"`
				Start   struct {
					DateTime string `json:"dateTime"`
					Date     string `json:"date"`
				} `json:"start"`
			} `json:"events"`
		}
		if json.Unmarshal([]byte(text), &found) != nil || len(found.Events) == 0 {
			return shorten(rewordForUser(text), 1500)
		}
		var b strings.Builder
		b.WriteString("In your calendar:\n")
		for _, e := range found.Events {
			when := e.Start.Date
			if at, err := time.Parse(time.RFC3339, e.Start.DateTime); err == nil {
				when = at.Format("Monday 2 January at 15:04")
			}
			fmt.Fprintf(&b, "\n- **%s**, %s", e.Summary, when)
		}
		return b.String()
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
		var b strings.Builder
		b.WriteString("The sheet *Budget* says:\n\n")
		for i, row := range found.Values {
			b.WriteString("|")
			for _, cell := range row {
				fmt.Fprintf(&b, " %v |", cell)
			}
			b.WriteString("\n")
			if i == 0 {
				b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
			}
		}
		return b.String()
	})
}

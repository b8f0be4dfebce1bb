package why

import (
	"fmt"
	"strings"
	"time"

	"oneclaw/internal/wording"
)

// joinedText says which other messages were joined to this one.
func (s story) joinedText() string {
	var text []string
	if s.job.PieceCount > 1 {
		text = append(text, fmt.Sprintf("It came in %d pieces, which I treated as one message.", s.job.PieceCount))
	}
	n := 0
	for i := range s.turn {
		if s.turn[i].JoinedRef != "" {
			n++
		}
	}
	if n > 0 {
		text = append(text, "Added while I worked on it: "+wording.Plural(n, "message", "messages")+".")
	}
	return strings.Join(text, " ")
}

// triggerText says what started a task.
func (s story) triggerText() string {
	t := s.job.Task
	switch {
	case t == nil || t.Hook == "" && t.Note == "":
		return ""
	case t.Hook == "":
		return "Started by its schedule: " + wording.EscapeMarkdown(t.Note) + "."
	}
	return "Started by the webhook " + wording.EscapeMarkdown(t.Hook) + ", " + wording.EscapeMarkdown(t.Note) + "."
}

func (s story) receivedText() string {
	j := s.job
	text := "Received " + wording.ClockTime(j.Accepted.In(s.zone))
	if sent := j.Message.Time; !sent.IsZero() && j.Accepted.Sub(sent) >= 2*time.Second {
		text += fmt.Sprintf(", %s after it was sent", wording.ShortDuration(j.Accepted.Sub(sent)))
	}
	if begun := s.startedAt(); !begun.IsZero() && begun.Sub(j.Accepted) >= time.Second {
		text += fmt.Sprintf("; it waited %s for its turn", wording.ShortDuration(begun.Sub(j.Accepted)))
	}
	if j.Resumes > 0 {
		text += fmt.Sprintf("; taken up again after %d restarts", j.Resumes)
	}
	return text + "."
}

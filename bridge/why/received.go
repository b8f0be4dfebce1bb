package why

import (
	"fmt"
	"strings"
	"time"

	"oneclaw/internal/wording"
)

// joined returns what else is part of the message.
func (s story) joined() string {
	var text []string
	if s.job.PieceCount > 1 {
		text = append(text, fmt.Sprintf("It came in %d pieces, which I treated as one message.", s.job.PieceCount))
	}
	n := 0
	for i := range s.turn {
		if s.turn[i].Joined != "" {
			n++
		}
	}
	if n > 0 {
		text = append(text, "Added while I worked on it: "+wording.Count(n, "message", "messages")+".")
	}
	return strings.Join(text, " ")
}

// begunBy returns what started a task.
func (s story) begunBy() string {
	t := s.job.Task
	switch {
	case t == nil || t.Hook == "" && t.Note == "":
		return ""
	case t.Hook == "":
		return "Started by its schedule: " + wording.Escape(t.Note) + "."
	}
	return "Started by the webhook " + wording.Escape(t.Hook) + ", " + wording.Escape(t.Note) + "."
}

func (s story) received() string {
	j := s.job
	text := "Received " + wording.Clock(j.Accepted.In(s.zone))
	if sent := j.Message.Time; !sent.IsZero() && j.Accepted.Sub(sent) >= 2*time.Second {
		text += fmt.Sprintf(", %s after it was sent", wording.Short(j.Accepted.Sub(sent)))
	}
	if begun := s.begun(); !begun.IsZero() && begun.Sub(j.Accepted) >= time.Second {
		text += fmt.Sprintf("; it waited %s for its turn", wording.Short(begun.Sub(j.Accepted)))
	}
	if j.Resumes > 0 {
		text += fmt.Sprintf("; taken up again after %d restarts", j.Resumes)
	}
	return text + "."
}

package outbox

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/internal/wording"
)

const (
	// silence is how long a turn must be silent before its progress is shown.
	silence = 20 * time.Second
	// maxNote bounds a note, in characters.
	maxNote = 80
	// noteThinking is shown while the model has not answered yet.
	noteThinking = "💭 Thinking"
)

// progress is the current activity of a turn.
type progress struct {
	running  []agent.ToolEvent // calls, in the order of their start
	thinking bool              // waiting for the model's first text
	tools    bool              // a call has run
}

// note handles an event.
func (p *progress) note(e agent.Event) {
	same := func(of *agent.ToolEvent) int {
		return slices.IndexFunc(p.running, func(r agent.ToolEvent) bool { return r.Call == of.Call && r.Tool == of.Tool })
	}
	switch {
	case e.Request != nil:
		p.running, p.thinking = nil, true
	case e.Delta != nil:
		p.thinking = p.thinking && e.Delta.Text == ""
	case e.Reply != nil:
		p.thinking = false
	case e.Began != nil:
		p.running, p.tools = append(p.running, *e.Began), true
	case e.Step != nil && e.Step.Step != "":
		if i := same(e.Step); i >= 0 {
			p.running[i].Step = e.Step.Step
		}
	case e.Ended != nil:
		if i := same(e.Ended); i >= 0 {
			p.running = slices.Delete(p.running, i, i+1)
		}
	}
}

// says returns the line about what a turn is doing after this time; empty if there is none.
func (p *progress) says(age time.Duration, mask func(string) string) string {
	var line string
	switch {
	case len(p.running) > 0:
		first := p.running[0]
		if line = "⏳ " + first.Doing; first.Step != "" {
			line += ", " + first.Step
		}
		if more := len(p.running) - 1; more > 0 {
			line += fmt.Sprintf(", and %d more", more)
		}
	case p.thinking && (p.tools || age >= silence):
		line = noteThinking
	default:
		return ""
	}
	since := lasting(age)
	return wording.OneLine(harmless(mask(line)), maxNote-len(since)) + since
}

// harmless removes characters from a line with which platforms format text or mention users.
func harmless(line string) string {
	return strings.NewReplacer("*", "∗", "`", "'", "~", "∼", "@", "＠").Replace(line)
}

// lasting returns how long a turn has taken, in steps.
func lasting(age time.Duration) string {
	switch {
	case age < silence:
		return ""
	case age < time.Minute:
		return fmt.Sprintf(" (%d s)", age.Truncate(silence)/time.Second)
	}
	return fmt.Sprintf(" (%d min)", age/time.Minute)
}

// changes returns the time after which [lasting] returns another text.
func changes(age time.Duration) time.Duration {
	if age < time.Minute {
		return silence - age%silence
	}
	return time.Minute - age%time.Minute
}

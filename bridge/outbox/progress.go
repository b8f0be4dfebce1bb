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
	// silence is how long a turn has nothing to show before that is shown.
	silence = 20 * time.Second
	// maxNote is how long a note may be, in characters.
	maxNote = 80
	// noteThinking stands there while the model is asked and has said nothing yet.
	noteThinking = "💭 Thinking"
)

// progress is what a turn does at the moment.
type progress struct {
	running  []agent.ToolEvent // the calls, in the order in which they began
	thinking bool              // the model is asked and has said nothing yet
	tools    bool              // there was a call
}

// note takes what happens.
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

// says is the line for what a turn does after so long a time; empty where there is nothing
// to say.
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

// harmless takes the signs out of a line by which platforms set type or call people.
func harmless(line string) string {
	return strings.NewReplacer("*", "∗", "`", "'", "~", "∼", "@", "＠").Replace(line)
}

// lasting says from time to time how long a turn takes already.
func lasting(age time.Duration) string {
	switch {
	case age < silence:
		return ""
	case age < time.Minute:
		return fmt.Sprintf(" (%d s)", age.Truncate(silence)/time.Second)
	}
	return fmt.Sprintf(" (%d min)", age/time.Minute)
}

// changes returns after what time [lasting] says something else.
func changes(age time.Duration) time.Duration {
	if age < time.Minute {
		return silence - age%silence
	}
	return time.Minute - age%time.Minute
}

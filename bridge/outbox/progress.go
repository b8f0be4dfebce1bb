package outbox

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/internal/rescue"
	"oneclaw/internal/wording"
)

const (
	// silence is how long a turn runs before its progress line tells how long it has run, and, if no
	// tool has run, that the model thinks. A running tool is shown at once.
	silence = 20 * time.Second
	// maxNote bounds a line about the progress, in characters.
	maxNote = 80
	// noteThinking is shown while the model has not answered yet.
	noteThinking = "💭 Thinking"
)

// progress is the current activity of a turn.
type progress struct {
	running    []agent.ToolEvent // calls, in the order of their start
	thinking   bool              // waiting for the model's first text
	hasRunTool bool              // a call has run
}

// update updates the activity after an event of the turn.
func (p *progress) update(e agent.Event) {
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
	case e.ToolBegan != nil:
		p.running, p.hasRunTool = append(p.running, *e.ToolBegan), true
	case e.ToolProgress != nil && e.ToolProgress.Progress != "":
		if i := same(e.ToolProgress); i >= 0 {
			p.running[i].Progress = e.ToolProgress.Progress
		}
	case e.ToolEnded != nil:
		if i := same(e.ToolEnded); i >= 0 {
			p.running = slices.Delete(p.running, i, i+1)
		}
	}
}

// line returns the line about the activity of a turn that has run for age; empty if there is none.
func (p *progress) line(age time.Duration, mask func(string) string) string {
	var line string
	switch {
	case len(p.running) > 0:
		first := p.running[0]
		if line = "⏳ " + first.Doing; first.Progress != "" {
			line += ", " + first.Progress
		}
		if more := len(p.running) - 1; more > 0 {
			line += fmt.Sprintf(", and %d more", more)
		}
	case p.thinking && (p.hasRunTool || age >= silence):
		line = noteThinking
	default:
		return ""
	}
	since := durationText(age)
	return wording.OneLine(stripFormatting(mask(line)), maxNote-len(since)) + since
}

// stripFormatting replaces the characters with which platforms format text or mention users.
func stripFormatting(line string) string {
	return strings.NewReplacer("*", "∗", "`", "'", "~", "∼", "@", "＠").Replace(line)
}

// durationText returns the duration of a turn, rounded down; empty for a short one.
func durationText(age time.Duration) string {
	switch {
	case age < silence:
		return ""
	case age < time.Minute:
		return fmt.Sprintf(" (%d s)", age.Truncate(silence)/time.Second)
	}
	return fmt.Sprintf(" (%d min)", age/time.Minute)
}

// untilNextText returns the time after which [durationText] returns another text.
func untilNextText(age time.Duration) time.Duration {
	if age < time.Minute {
		return silence - age%silence
	}
	return time.Minute - age%time.Minute
}

// progressPause is the time between two lines of [WatchProgress].
const progressPause = 5 * time.Second

// WatchProgress calls show with a line about the activity of a turn when the line has changed, at most
// once in progressPause, until end is called. end waits for the last call.
func WatchProgress(now func() time.Time, mask func(string) string, log *slog.Logger, show func(line string)) (observe func(agent.Event), end func()) {
	var mu sync.Mutex
	var activity progress
	begun, changed, stop, done := now(), make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		rescue.Go(log, "the progress of a task", func() {
			for last := ""; ; {
				select {
				case <-stop:
					return
				case <-changed:
				}
				mu.Lock()
				line := activity.line(max(0, now().Sub(begun)), mask)
				mu.Unlock()
				if line == "" || line == last {
					continue
				}
				last = line
				show(line)
				pause := time.NewTimer(progressPause)
				select {
				case <-pause.C:
				case <-stop:
					pause.Stop()
					return
				}
			}
		})
	}()
	observe = func(e agent.Event) {
		mu.Lock()
		activity.update(e)
		mu.Unlock()
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	return observe, sync.OnceFunc(func() { close(stop); <-done })
}

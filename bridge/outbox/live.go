package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/internal/markdown"
	"oneclaw/internal/wording"
	"oneclaw/storage"
)

// maxRendered is more than one message holds, so that only the shown part of a long answer is rendered.
const maxRendered = 16 << 10

// livePreview shows one turn.
type livePreview struct {
	previews *Previews
	platform chats.Previewer
	job      *queue.Run // a copy that identifies it; the turn owns the job
	to       chats.Address
	begun    time.Time
	quiet    func() // clears the typing indicator; nil if there is none

	mu    sync.Mutex // guards the fields below
	model string
	text  []byte // of the current reply
	again bool   // the next text begins another reply
	doing progress
	// begins says that something is shown or about to be, withheld that nothing may be shown.
	begins, withheld bool

	// Owned by the goroutine; End reads them when it is done.
	kept  *Preview
	rev   storage.Revision
	shown string // the text that is shown

	changed    chan struct{} // holds a token after a new event
	stop, done chan struct{}
}

// observe handles an event of the turn. It never waits for the platform.
func (w *livePreview) observe(e agent.Event) {
	w.mu.Lock()
	w.doing.note(e)
	switch {
	case e.Request != nil:
		w.model, w.again = e.Request.Model, true
	case e.Delta != nil:
		if w.again || e.Delta.Restart {
			w.text, w.again = w.text[:0], false
		}
		w.text = append(w.text, e.Delta.Text...)
	case e.Reply != nil && e.Reply.Err == nil && e.Reply.Text:
		w.previews.learn(w.model, e.Reply.Aloud)
	}
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// run shows changes while the turn runs and the platform allows it.
func (w *livePreview) run() {
	ctx := w.previews.cfg.Queue.Context()
	for {
		show, err := w.look()
		if err != nil {
			w.previews.cfg.Log.Error("a preview cannot be rendered", "job", w.job.Key(), "err", err)
			return
		}
		wait := time.Duration(-1)
		if show != nil {
			if wait = w.room(); wait == 0 {
				wait = w.show(ctx, *show)
			}
			if wait == forever {
				return
			}
		}
		if !w.wait(wait) {
			return
		}
	}
}

// age returns for how long the turn has run; never negative, even if the clock is set back.
func (w *livePreview) age() time.Duration { return max(0, w.previews.cfg.Now().Sub(w.begun)) }

// forever is the wait of a preview that shows nothing more.
const forever = time.Duration(1<<63 - 1)

// wait waits for a time, or, if it is negative, for a change: that the turn takes long also counts as
// one. It returns false at the end of the turn.
func (w *livePreview) wait(d time.Duration) bool {
	select {
	case <-w.stop:
		return false
	default:
	}
	changed := w.changed
	if d < 0 {
		d = changes(w.age())
	} else {
		changed = nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-changed:
		return true
	case <-w.stop:
		return false
	}
}

// room returns how long the platform makes the preview wait.
func (w *livePreview) room() time.Duration {
	if !w.previews.cfg.Sender.IsUp(w.to.Chat.Platform) {
		return pause
	}
	id := ""
	if w.kept != nil {
		id = w.kept.ID
	}
	return w.platform.Room(w.to, id)
}

// look returns what to show now; nil if nothing is new.
func (w *livePreview) look() (show *chats.Preview, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	w.mu.Lock()
	text, model, note := string(w.text), w.model, w.doing.says(w.age(), w.previews.cfg.Redact)
	w.mu.Unlock()
	growing := speaking(text, w.previews.thinks(model), w.previews.cfg.Growing)
	show = &chats.Preview{Text: markdown.Unfinished(growing), Growing: growing}
	if wording.Visible(show.Text) {
		parts := w.previews.cfg.Platforms[w.to.Chat.Platform].Render(show.Text)
		if len(parts) > 0 {
			show.Part = parts[0]
		}
		if len(parts) > 1 {
			show.Part.Note = chats.NoteMore
		}
	}
	if note != "" {
		show.Part.Note = note
	}
	if now := show.Part.Text + show.Part.Plain + show.Part.Note; now == "" || now == w.shown {
		return nil, nil
	}
	return show, nil
}

// Shown returns the part of a growing reply that is shown, as Markdown. aloud is as in
// [agent.Speaking]; growing masks secrets.
func Shown(reply string, aloud bool, growing func(string) string) string {
	return markdown.Unfinished(speaking(reply, aloud, growing))
}

func speaking(reply string, aloud bool, growing func(string) string) string {
	text := agent.Speaking(reply, aloud)
	if len(text) > maxRendered {
		text = strings.ToValidUTF8(text[:maxRendered], "")
	}
	return growing(text)
}

// show sends or edits the preview, and returns how long to wait before the next: until a change, for a
// time, or forever.
func (w *livePreview) show(ctx context.Context, show chats.Preview) time.Duration {
	if w.kept == nil && (!w.begin() || !w.keep(ctx, &Preview{Token: newToken(), ChatID: w.to.Chat.ID})) {
		return forever
	}
	if safe := w.previews.cfg.Safe; safe != nil && !safe(w.job) {
		return pause // another process may own the chat
	}
	show.Part.Buttons = w.kept.StopButtons()
	next := *w.kept
	call, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var err error
	if next.ID == "" {
		next.ID, err = w.platform.Begin(call, w.to, show)
	} else {
		err = w.platform.Update(call, w.to, next.ID, show)
	}
	if err != nil {
		return w.failed(ctx, err)
	}
	w.shown = show.Part.Text + show.Part.Plain + show.Part.Note
	next.Shown = show.Text
	if w.keep(ctx, &next); w.quiet != nil {
		w.quiet()
		w.quiet = nil
	}
	return -1
}

// begin reports whether a preview may be shown, which can no longer be withheld then.
func (w *livePreview) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begins = !w.withheld
	return w.begins
}

// withhold prevents the preview, and reports whether nothing was shown. It does not block.
func (w *livePreview) withhold() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.withheld = !w.begins
	return w.withheld
}

// failed returns how long a preview waits after an error. A preview that did not arrive is forgotten;
// one that may have arrived is already recorded.
func (w *livePreview) failed(ctx context.Context, err error) time.Duration {
	w.previews.cfg.Log.Debug("a preview is not shown", "job", w.job.Key(), "err", err)
	failure, is := errors.AsType[*chats.SendError](err)
	begins := w.kept.ID == ""
	switch {
	case !is || failure.Outcome == chats.Unknown:
		if begins {
			return forever
		}
		return pause
	case begins && !w.keep(ctx, nil), failure.Outcome == chats.Refused, failure.MovedTo != "":
		return forever
	}
	return max(failure.RetryAfter, pause)
}

// keep stores the state of the preview. If that fails, a preview that has not begun shows nothing.
func (w *livePreview) keep(ctx context.Context, p *Preview) bool {
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
	defer cancel()
	rev, err := setPreview(writing, w.previews.cfg.Jobs, w.job.Key(), w.job.LeaseToken, p)
	if err != nil {
		w.previews.cfg.Log.Warn("a preview cannot be kept", "job", w.job.Key(), "err", err)
	} else {
		w.rev = rev
	}
	if err == nil || p == nil || p.ID != "" {
		w.kept = p
	}
	return err == nil
}

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
)

// maxRendered bounds the rendered text, in bytes. One message holds less, and the rest is not shown.
const maxRendered = 16 << 10

// livePreview shows one turn while it runs, in a goroutine.
type livePreview struct {
	previews    *PreviewTracker
	platform    chats.Previewer
	job         *queue.Run // a copy that identifies the job, which the turn owns
	to          chats.Address
	begun       time.Time
	clearTyping func() // clears the typing indicator; nil if there is none

	mu        sync.Mutex // guards the fields below
	model     string
	text      []byte // of the current reply
	nextIsNew bool   // the next text begins another reply
	activity  progress
	// hasBegun says that a message is shown or about to be, isWithheld that none may be shown.
	hasBegun, isWithheld bool

	// Owned by the goroutine. End reads them after the goroutine has ended.
	stored *Preview
	record *queue.Run // the job's record as of the last write; nil before that
	shown  string     // the text that is shown

	changed    chan struct{} // holds a token after a new event
	stop, done chan struct{}
}

// observe handles an event of the turn. It does not wait for the platform.
func (w *livePreview) observe(e agent.Event) {
	w.mu.Lock()
	w.activity.update(e)
	switch {
	case e.Request != nil:
		w.model, w.nextIsNew = e.Request.Model, true
	case e.Delta != nil:
		if w.nextIsNew || e.Delta.Restart {
			w.text, w.nextIsNew = w.text[:0], false
		}
		w.text = append(w.text, e.Delta.Text...)
	case e.Reply != nil && e.Reply.Err == nil && e.Reply.HasText:
		w.previews.recordThinksAloud(w.model, e.Reply.BeganInThought)
	}
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// run updates the preview until the turn ends, as often as the platform allows.
func (w *livePreview) run() {
	ctx := w.previews.cfg.Queue.Context()
	for {
		show, err := w.render()
		if err != nil {
			w.previews.cfg.Log.Error("a preview cannot be rendered", "job", w.job.Key(), "err", err)
			return
		}
		wait := time.Duration(-1)
		if show != nil {
			if wait = w.platformWait(); wait == 0 {
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

// age returns how long the turn has run. It is never negative, even if the clock is set back.
func (w *livePreview) age() time.Duration { return max(0, w.previews.cfg.Now().Sub(w.begun)) }

// forever is the wait of a preview that is not updated any more.
const forever = time.Duration(1<<63 - 1)

// wait waits for the duration d. If d is negative, it waits for an event, or until the shown duration of
// the turn changes. It returns false at the end of the turn.
func (w *livePreview) wait(d time.Duration) bool {
	select {
	case <-w.stop:
		return false
	default:
	}
	changed := w.changed
	if d < 0 {
		d = untilNextText(w.age())
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

// platformWait returns how long the preview has to wait before the platform accepts an update.
func (w *livePreview) platformWait() time.Duration {
	if !w.previews.cfg.Sender.isUp(w.to.Chat.Platform) {
		return previewPause
	}
	id := ""
	if w.stored != nil {
		id = w.stored.ID
	}
	return w.platform.Room(w.to, id)
}

// render returns the preview to show now; nil if there is nothing to show, or nothing new.
func (w *livePreview) render() (show *chats.Preview, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	w.mu.Lock()
	text, model, note := string(w.text), w.model, w.activity.line(w.age(), w.previews.cfg.Redact)
	w.mu.Unlock()
	growing := spokenText(text, w.previews.thinksAloud(model), w.previews.cfg.RedactPartial)
	show = &chats.Preview{Text: markdown.CloseUnfinished(growing), UnclosedText: growing}
	if wording.HasVisible(show.Text) {
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

// ShownText returns the part of an unfinished reply that a preview shows, as Markdown. aloud is as in
// [agent.VisiblePrefix]; growing masks secrets.
func ShownText(reply string, aloud bool, growing func(string) string) string {
	return markdown.CloseUnfinished(spokenText(reply, aloud, growing))
}

func spokenText(reply string, aloud bool, growing func(string) string) string {
	text := agent.VisiblePrefix(reply, aloud)
	if len(text) > maxRendered {
		text = strings.ToValidUTF8(text[:maxRendered], "")
	}
	return growing(text)
}

// show sends or edits the preview. It returns how long to wait before the next update: forever, a
// duration, or, if negative, until a change.
func (w *livePreview) show(ctx context.Context, show chats.Preview) time.Duration {
	if w.stored == nil && (!w.tryBegin() || !w.store(ctx, &Preview{Token: newToken(), ChatID: w.to.Chat.ID})) {
		return forever
	}
	if err := w.checkOwnership(); err != nil {
		return w.handleError(ctx, &chats.SendError{Outcome: chats.Later, Err: err})
	}
	show.Part.Buttons = w.stored.stopButtons()
	next := *w.stored
	call, cancel := context.WithTimeout(chats.WithPrecondition(ctx, w.checkOwnership), previewTimeout)
	defer cancel()
	var err error
	if next.ID == "" {
		next.ID, err = w.platform.Begin(call, w.to, show)
	} else {
		err = w.platform.Update(call, w.to, next.ID, show)
	}
	if err != nil {
		return w.handleError(ctx, err)
	}
	w.shown = show.Part.Text + show.Part.Plain + show.Part.Note
	next.Shown = show.Text
	if w.store(ctx, &next); w.clearTyping != nil {
		w.clearTyping()
		w.clearTyping = nil
	}
	return -1
}

// checkOwnership returns an error if another process may own the chat.
func (w *livePreview) checkOwnership() error {
	if safe := w.previews.cfg.OwnsSafely; safe != nil && !safe(w.job) {
		return errMaybeLost
	}
	return nil
}

// tryBegin reports whether a preview may be shown. If so, it can no longer be withheld.
func (w *livePreview) tryBegin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hasBegun = !w.isWithheld
	return w.hasBegun
}

// withhold prevents the preview unless it has begun, and reports whether it did. It does not block.
func (w *livePreview) withhold() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isWithheld = !w.hasBegun
	return w.isWithheld
}

// handleError returns how long a preview waits after an error. If the preview certainly did not arrive,
// its record is removed.
func (w *livePreview) handleError(ctx context.Context, err error) time.Duration {
	w.previews.cfg.Log.Debug("a preview cannot be sent", "job", w.job.Key(), "err", err)
	failure, is := errors.AsType[*chats.SendError](err)
	begins := w.stored.ID == ""
	switch {
	case !is || failure.Outcome == chats.Unknown:
		if begins {
			return forever
		}
		return previewPause
	case begins && !w.store(ctx, nil), failure.Outcome == chats.Refused, failure.MovedTo != "":
		return forever
	}
	return max(failure.RetryAfter, previewPause)
}

// store stores the state of the preview, and reports whether it succeeded.
func (w *livePreview) store(ctx context.Context, p *Preview) bool {
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
	defer cancel()
	record, err := setPreview(writing, w.previews.cfg.Jobs, w.job.Key(), w.job.LeaseToken, p)
	if err != nil {
		w.previews.cfg.Log.Warn("the state of a preview cannot be stored", "job", w.job.Key(), "err", err)
	} else {
		w.record = record
	}
	if err == nil || p == nil || p.ID != "" {
		w.stored = p
	}
	return err == nil
}

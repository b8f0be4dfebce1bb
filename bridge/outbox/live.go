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

// maxSaid is more than one message holds, so that of a long answer only what is shown has to
// be rendered.
const maxSaid = 16 << 10

// livePreview shows one turn.
type livePreview struct {
	previews *Previews
	platform chats.Previewer
	job      *queue.Run // who it is; the turn has the one that counts
	to       chats.Address
	begun    time.Time
	quiet    func() // takes the sign of work down; nil where there is none

	mu    sync.Mutex // guards what is observed
	model string
	text  []byte // of the present reply
	again bool   // the next text begins another reply
	doing progress
	// begins says that something is shown or about to be, withheld that nothing may be.
	begins, withheld bool

	// What the goroutine knows; end reads it when that is done.
	kept  *Preview
	rev   storage.Revision
	shown string // what stands there

	changed    chan struct{} // holds a token where something new was observed
	stop, done chan struct{}
}

// observe takes what happens in the turn. It never waits for the platform.
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

// run shows what is new for as long as the turn runs and the platform lets it.
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

// age is for how long the turn runs. A clock that is put back does not count.
func (w *livePreview) age() time.Duration { return max(0, w.previews.cfg.Now().Sub(w.begun)) }

// forever is how long a preview waits of which nothing more is shown.
const forever = time.Duration(1<<63 - 1)

// wait waits for a time, or for something new where that is negative: also that the turn
// takes long is new. It reports false at the end of the turn.
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

// room returns how long the platform wants the preview to wait.
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

// look returns what is to be shown now; nil where nothing is new.
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

// Shown is what of a reply is shown while it comes, in Markdown. Aloud is that of
// [agent.Speaking]; growing masks secrets.
func Shown(reply string, aloud bool, growing func(string) string) string {
	return markdown.Unfinished(speaking(reply, aloud, growing))
}

func speaking(reply string, aloud bool, growing func(string) string) string {
	text := agent.Speaking(reply, aloud)
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "")
	}
	return growing(text)
}

// show brings a preview into the chat, and returns how long the next waits: until there is
// something new, for a time, or forever.
func (w *livePreview) show(ctx context.Context, show chats.Preview) time.Duration {
	if w.kept == nil && (!w.begin() || !w.keep(ctx, &Preview{Token: newToken(), ChatID: w.to.Chat.ID})) {
		return forever
	}
	if safe := w.previews.cfg.Safe; safe != nil && !safe(w.job) {
		return pause // another process may be answering
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

// begin reports whether a preview may be shown, which cannot be withheld from then on.
func (w *livePreview) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begins = !w.withheld
	return w.begins
}

// withhold has nothing be shown, and reports whether nothing was. It waits for nothing.
func (w *livePreview) withhold() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.withheld = !w.begins
	return w.withheld
}

// failed says how long a preview waits after an error. One that has not arrived is forgotten;
// of one that may have, the record says so already.
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

// keep puts on record what is known of the preview. Where that fails, nothing more is shown
// of one that has not begun.
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

package cards

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/toolgroups"
)

// Replies to presses without effect.
const (
	toastUnknown  = "These buttons are out of date."
	toastStranger = "Sorry, I only take this from people I have been introduced to."
	toastDecided  = "This was decided already."
	toastExpired  = "Too late: this has expired."
	toastChanged  = "This has just changed. Please look again."
	toastTrouble  = "That did not work. Please try again in a moment."
	// ToastBusy is for what is not taken because too much waits.
	ToastBusy = "There is too much going on here. Please try again in a moment."
)

const (
	// maxToasts bounds the presses that are answered at the same time without a job.
	maxToasts = 16
	// pressTries bounds how often a press or the end of a card is tried that fails: with
	// the growing pauses about ten seconds, after which nobody waits for it any more.
	pressTries = 5
	// pressTimeout bounds what is done with one press.
	pressTimeout = 30 * time.Second
)

// errUnseen is why a press is tried again: it overtook the record of its message.
var errUnseen = errors.New("cards: the card is still being sent")

// Takes reports whether a press is to be handled, where busy says that too many wait. It
// tells who pressed where not.
func (d *Desk) Takes(m chats.Message, busy bool) bool {
	toast := toastStranger
	if d.cfg.Role(m) != toolgroups.RoleStranger {
		if !busy {
			return true
		}
		toast = ToastBusy
	}
	select {
	case d.toasts <- struct{}{}:
		d.cfg.Jobs.Go(func(ctx context.Context) {
			d.answer(ctx, m, toast)
			<-d.toasts
		})
	default: // too many are being told already
	}
	return false
}

// answer tells somebody what came of their press, as well as it can: a press that is not
// answered ends by itself.
func (d *Desk) answer(ctx context.Context, m chats.Message, toast string) {
	editor, ok := d.cfg.Platforms[m.Chat.Platform].(chats.Editor)
	if !ok {
		return
	}
	limited, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	if err := editor.AnswerPress(limited, m, d.cfg.Redact(toast)); err != nil && ctx.Err() == nil {
		d.cfg.Log.Warn("a press could not be answered", "chat", m.Chat.String(), "err", err)
	}
}

// Press handles a press and tells who pressed. An error means that the job has to go on
// later.
func (d *Desk) Press(ctx context.Context, j *jobs.Job) error {
	toast, err := d.handlePress(ctx, j)
	if err == nil {
		d.answer(ctx, j.Message, toast)
	}
	return err
}

// handlePress decides what a press does and returns what is told to who pressed. It tries
// again a few times what goes wrong, then says so.
func (d *Desk) handlePress(ctx context.Context, j *jobs.Job) (toast string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			j.Tries = pressTries
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		if j.Tries++; j.Tries >= pressTries {
			j.Incident = jobs.NewIncident()
			d.cfg.Log.Error("a press has no effect", "incident", j.Incident, "job", j.Key(), "err", err)
			toast, err = toastTrouble, nil
		}
	}()
	limited, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	return d.press(limited, j)
}

func (d *Desk) press(ctx context.Context, j *jobs.Job) (string, error) {
	m := j.Message
	token, version, index, ok := parsePress(m.Text)
	if !ok {
		return toastUnknown, nil
	}
	kept, err := d.Get(ctx, token)
	if err != nil {
		return "", err
	}
	switch {
	case kept == nil:
		return toastUnknown, nil
	case kept.Press == j.Key():
		return kept.Toast, d.settled(ctx, kept)
	case kept.Chat.Platform != m.Chat.Platform || kept.Chat.ID != m.Chat.ID:
		d.cfg.Log.Warn("a button was pressed in a chat that it was not sent to", "chat", m.Chat.String(), "user", m.User)
		return toastUnknown, nil
	case d.cfg.Role(m) == toolgroups.RoleStranger:
		return toastStranger, nil
	case !kept.Open():
		return kept.toast(), d.settled(ctx, kept)
	case !d.cfg.Now().Before(kept.Expires):
		return toastExpired, d.lapse(ctx, kept, Expired)
	case len(kept.IDs) == 0:
		return "", errUnseen
	case m.On != kept.IDs[len(kept.IDs)-1] && !kept.Twice:
		return toastUnknown, nil
	case version != kept.Version:
		return toastChanged, d.settled(ctx, kept)
	}
	choices := slices.Concat(kept.Choices...)
	if index >= len(choices) {
		return toastUnknown, nil
	}
	return d.choose(ctx, j, kept, choices[index].Value)
}

// toast is the reply to the press of a card that is over.
func (c *Kept) toast() string {
	switch c.How {
	case Expired:
		return toastExpired
	case Unseen, Void:
		return toastUnknown
	}
	return toastDecided
}

// choose has the handler decide, and keeps what it decided. Where somebody else changed the
// card meanwhile, that is an error, and the press is handled again.
func (d *Desk) choose(ctx context.Context, j *jobs.Job, kept *Kept, choice string) (string, error) {
	scope, err := d.cfg.Scope(ctx, j)
	if err != nil {
		return "", err
	}
	result, err := d.cfg.Handlers[kept.Kind](ctx, Press{
		Scope: scope, UserName: j.Message.UserName, Place: j.Message.Chat, Choice: choice, Card: kept.Card, Token: kept.Token,
	})
	if err != nil {
		return "", fmt.Errorf("handle a press of %s: %w", kept.Kind, err)
	}
	if err := checkChoices(result.Choices); err != nil {
		return "", err
	}
	kept.Press, kept.Toast = j.Key(), result.Toast
	show := unseen
	if kept.take(result) || result.Close {
		show = edited
	}
	if result.Close {
		kept.end(d.cfg.Now(), Closed)
	}
	return result.Toast, d.save(ctx, kept, show)
}

// Refresh edits the messages of a card. Where its text has got more or fewer parts than
// there are messages, the last message shows the last part and the others stay.
func (d *Desk) Refresh(ctx context.Context, j *jobs.Job) error {
	kept, err := d.Get(ctx, j.Card)
	if err != nil || kept == nil || len(kept.IDs) == 0 {
		return err // not shown yet: what is shown then is the present version
	}
	parts, lead := d.render(j, kept)
	parts = parts[lead:]
	ids := kept.IDs
	if len(parts) != len(ids) {
		parts, ids = parts[max(0, len(parts)-1):], ids[len(ids)-1:]
	}
	return d.cfg.Sender.Edit(ctx, j, kept.Chat, ids, parts)
}

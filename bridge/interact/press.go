package interact

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Replies to presses without effect.
const (
	toastUnknown  = "These buttons are out of date."
	toastStranger = "Sorry, I only accept this from people I have been introduced to."
	toastDecided  = "This has already been decided."
	toastExpired  = "Too late: this has expired."
	toastChanged  = "This has just changed. Please look again."
	toastTrouble  = "That did not work. Please try again in a moment."
	// ToastBusy answers a press that is not handled because too much waits.
	ToastBusy = "Too much is going on here. Please try again in a moment."
)

const (
	// maxToasts bounds the presses that are being answered without a job.
	maxToasts = 16
	// pressTries bounds the attempts at a press: with the growing pauses about ten seconds, after which
	// no user waits for it any more.
	pressTries = 5
	// pressTimeout bounds one attempt.
	pressTimeout = 30 * time.Second
)

// overToasts answer presses of closed cards.
var overToasts = map[End]string{Closed: toastDecided, Expired: toastExpired, Unseen: toastUnknown, Void: toastUnknown}

// lapsed is shown below a card that closed without a decision, if its handler adds nothing.
var lapsed = map[End]string{Expired: "_Expired._", Unseen: "_Could not be shown completely._"}

var (
	// errUnseen makes a press retry: it arrived before the record of its message.
	errUnseen = errors.New("interact: the card is still being sent")
	// errPanic prevents a retry.
	errPanic = errors.New("interact: the handler panicked")
)

// AcceptsPress reports whether to handle a press; busy says that too many wait. If not, it tells the
// user.
func (d *Cards) AcceptsPress(m chats.Message, busy bool) bool {
	toast := toastStranger
	if d.cfg.Host.RoleOf(m) != toolgroups.RoleStranger {
		if !busy {
			return true
		}
		toast = ToastBusy
	}
	select {
	case d.toasts <- struct{}{}:
		d.cfg.Jobs.Go(func(ctx context.Context) {
			defer func() { <-d.toasts }()
			d.answer(ctx, m, toast)
		})
	default: // too many answers at once
	}
	return false
}

// Toast shows a text to the user who pressed; best effort.
func (d *Cards) Toast(ctx context.Context, m chats.Message, text string) { d.answer(ctx, m, text) }

// PressFailed tells the user that a press did not work.
func (d *Cards) PressFailed(ctx context.Context, j *queue.Run) error {
	d.answer(ctx, j.Message, toastTrouble)
	return nil
}

// PagePressPrefix begins the ids of presses that no platform knows, made on the administrators' pages: they
// are not answered in a chat.
const PagePressPrefix = "elsewhere-"

// answer tells a user the outcome of their press, best effort: an unanswered press ends by itself.
func (d *Cards) answer(ctx context.Context, m chats.Message, toast string) {
	editor, ok := d.cfg.Platforms[m.Chat.Platform].(chats.Editor)
	if !ok || strings.HasPrefix(m.ID, PagePressPrefix) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	if err := editor.AnswerPress(limited, m, d.cfg.Redact(toast)); err != nil && ctx.Err() == nil {
		d.cfg.Log.Warn("a press could not be answered", "chat", m.Chat.String(), "err", err)
	}
}

// PressWork is the work of a press. It is not stored.
type PressWork struct{ attempts int }

// pressing returns the work of a press's job.
func pressing(j *queue.Run) *PressWork {
	w, ok := j.Work.(*PressWork)
	if !ok {
		w = new(PressWork)
		j.Work = w
	}
	return w
}

// Press handles a press and tells the user the outcome. After an error it has to be retried; after the
// last attempt it tells the user that it did not work.
func (d *Cards) Press(ctx context.Context, j *queue.Run) error {
	limited, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	toast, err := d.press(limited, j)
	if err != nil {
		failed := pressing(j)
		if failed.attempts++; ctx.Err() != nil || failed.attempts < pressTries && !errors.Is(err, errPanic) {
			return err
		}
		j.Incident, toast = queue.NewIncident(), toastTrouble
		d.cfg.Log.Error("a press has no effect", "incident", j.Incident, "job", j.Key(), "err", err)
	}
	d.answer(ctx, j.Message, toast)
	return nil
}

func (d *Cards) press(ctx context.Context, j *queue.Run) (string, error) {
	m := j.Message
	token, ok := tokenOf(m.Text)
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
	case d.cfg.Host.RoleOf(m) == toolgroups.RoleStranger:
		return toastStranger, nil
	case !kept.Open():
		return overToasts[kept.How], d.settled(ctx, kept)
	case !d.cfg.Now().Before(kept.Expires):
		return toastExpired, d.closeUndecided(ctx, kept, Expired)
	case len(kept.IDs) == 0:
		return "", errUnseen
	case m.On != kept.IDs[len(kept.IDs)-1] && !kept.Twice:
		return toastUnknown, nil
	}
	for n, choice := range slices.Concat(kept.Choices...) {
		if kept.data(n) == m.Text {
			return d.handleChoice(ctx, j, kept, Press{Choice: choice.Value})
		}
	}
	return toastChanged, d.settled(ctx, kept)
}

// replyLate answers a message that answers a closed card.
const replyLate = "That question is over, so I did not use your answer. Please send it again if it was meant for me."

// Reply handles a message that answers a card, and returns the text for its sender; empty if the card
// shows the outcome.
func (d *Cards) Reply(ctx context.Context, j *queue.Run) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	kept, err := d.Get(ctx, outbox.Of(j).Replies)
	switch {
	case err != nil:
		return "", err
	case kept == nil:
		return replyLate, nil
	case kept.Press == j.Key():
		return kept.Toast, d.settled(ctx, kept)
	case !kept.Open():
		return replyLate, d.settled(ctx, kept)
	case !d.cfg.Now().Before(kept.Expires):
		return replyLate, d.closeUndecided(ctx, kept, Expired)
	}
	return d.handleChoice(ctx, j, kept, Press{Text: j.Message.Text})
}

// handleChoice calls the handler of a card with a press whose choice the caller has determined.
func (d *Cards) handleChoice(ctx context.Context, j *queue.Run, kept *StoredCard, press Press) (string, error) {
	scope, err := d.cfg.Host.ScopeOf(ctx, j)
	if err != nil {
		return "", err
	}
	author := j.Author(d.cfg.Store)
	if strings.HasPrefix(j.Message.ID, PagePressPrefix) {
		author.Chat = audit.Page
	}
	press.Scope, press.Author, press.UserName, press.Place = scope, author, j.Message.UserName, j.Message.Chat
	press.Card, press.Token = kept.Card, kept.Token
	result, err := d.handle(ctx, press)
	if err == nil {
		err = checkChoices(result.Choices)
	}
	if err != nil {
		return "", err
	}
	kept.Press, kept.Toast = j.Key(), result.Toast
	how := open
	if result.Close {
		how = Closed
	}
	return result.Toast, d.keepResult(ctx, kept, result, how)
}

// closeUndecided closes a card without a decision, whatever its handler returns.
func (d *Cards) closeUndecided(ctx context.Context, kept *StoredCard, how End) error {
	result, err := d.handle(ctx, Press{Scope: toolgroups.Scope{Chat: kept.Chat.String()}, Place: kept.Chat, Expired: true, Card: kept.Card})
	if err != nil {
		d.cfg.Log.Error("a card ends without its handler", "chat", kept.Chat.String(), "err", err)
		result = Result{}
	}
	if result.Text == "" {
		result.Text = kept.Text + "\n\n" + lapsed[how]
	}
	return d.keepResult(ctx, kept, result, how)
}

// handle calls the handler of a card. A panic becomes an error.
func (d *Cards) handle(ctx context.Context, press Press) (result Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanic, r, debug.Stack())
		}
		if err != nil {
			err = fmt.Errorf("handle a press of %s: %w", press.Card.Kind, err)
		}
	}()
	return d.cfg.Handlers[press.Card.Kind](ctx, press)
}

// keepResult stores the result of a press. If the card was decided or changed otherwise meanwhile, it
// returns an error, and the caller reads the card again; being shown or moved, or a change of the text
// alone, does not count.
func (d *Cards) keepResult(ctx context.Context, kept *StoredCard, result Result, how End) error {
	for {
		version := kept.Version
		show := unseen
		if kept.take(result) || how != open {
			show = edited
		}
		if how != open {
			kept.end(d.cfg.Now(), how)
		}
		conflict := d.save(ctx, kept, show)
		if !errors.Is(conflict, storage.ErrConflict) {
			return conflict
		}
		now, err := d.Get(ctx, kept.Token)
		if err != nil {
			return err
		}
		said := how == open && result.Text == "" && result.Choices == nil && result.Data == nil
		if now == nil || !now.Open() || now.Version != version && !said {
			return conflict
		}
		now.Press, now.Toast = kept.Press, kept.Toast
		kept = now
	}
}

// Refresh edits the messages of a card. If its text now has more or fewer parts than messages, the last
// message shows the last part and the others stay.
func (d *Cards) Refresh(ctx context.Context, j *queue.Run) error {
	kept, err := d.Get(ctx, outbox.Of(j).Card)
	if err != nil || kept == nil || len(kept.IDs) == 0 {
		return err // not shown yet: it will show the present version
	}
	parts, lead := d.render(j, kept)
	parts = parts[lead:]
	ids := kept.IDs
	if len(parts) != len(ids) {
		n := min(1, len(parts))
		parts, ids = parts[len(parts)-n:], ids[len(ids)-n:]
	}
	return d.cfg.Sender.Edit(ctx, j, kept.Chat, ids, parts)
}

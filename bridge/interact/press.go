package interact

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
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
	// ToastBusy answers a press that is not handled because too many messages wait.
	ToastBusy = "Too much is going on here. Please try again in a moment."
)

const (
	// maxToasts bounds the presses that are being answered without a job.
	maxToasts = 16
	// maxShown bounds the cards whose shown version is known.
	maxShown = 1024
	// pressTries bounds the attempts to handle a press. With increasing pauses they take about ten
	// seconds, after which no user still waits.
	pressTries = 5
	// pressTimeout bounds one attempt.
	pressTimeout = 30 * time.Second
)

// closedToasts answer presses of closed cards.
var closedToasts = map[CloseReason]string{closed: toastDecided, expired: toastExpired, notShown: toastUnknown, obsolete: toastUnknown}

// undecidedNotes are shown below a card that closed without a decision, if its handler returns no text.
var undecidedNotes = map[CloseReason]string{expired: "_Expired._", notShown: "_Could not be shown completely._"}

var (
	// errStillSending is returned for a press that arrived before its message was recorded. The press is
	// retried.
	errStillSending = errors.New("interact: the card is still being sent")
	// errPanic prevents a retry.
	errPanic = errors.New("interact: the handler panicked")
)

// AcceptsPress reports whether to handle a press. If busy is true, too many messages wait and it returns
// false. A user whose press is rejected is shown why.
func (d *Cards) AcceptsPress(m chats.Message, busy bool) bool {
	toast := toastStranger
	if d.cfg.Host.RoleOf(m) != toolgroups.RoleStranger {
		if !busy {
			return true
		}
		toast = ToastBusy
	}
	select {
	case d.toastSlots <- struct{}{}:
		d.cfg.Jobs.Go(func(ctx context.Context) {
			defer func() { <-d.toastSlots }()
			d.answerPress(ctx, m, toast)
		})
	default: // too many answers at once
	}
	return false
}

// ShowToast shows a text to the user who pressed; best effort.
func (d *Cards) ShowToast(ctx context.Context, m chats.Message, text string) {
	d.answerPress(ctx, m, text)
}

// HandlePressFailure tells the user that a press did not work.
func (d *Cards) HandlePressFailure(ctx context.Context, j *queue.Run) error {
	d.answerPress(ctx, j.Message, toastTrouble)
	return nil
}

// PagePressPrefix begins the ids of presses made on the administrators' pages. No platform knows them,
// so they are not answered in a chat.
const PagePressPrefix = "elsewhere-"

// answerPress shows a user the outcome of their press; best effort, because an unanswered press times
// out by itself.
func (d *Cards) answerPress(ctx context.Context, m chats.Message, toast string) {
	editor, ok := d.cfg.Platforms[m.Chat.Platform].(chats.Editor)
	if !ok || strings.HasPrefix(m.ID, PagePressPrefix) || isReactionPress(m) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	if err := editor.AnswerPress(limited, m, d.cfg.Redact(toast)); err != nil && ctx.Err() == nil {
		d.cfg.Log.Warn("a press could not be answered", "chat", m.Chat.String(), "err", err)
	}
}

// PressWork is the work of a press's job. It is not stored.
type PressWork struct{ attempts int }

// pressWorkOf returns the work of a press's job.
func pressWorkOf(j *queue.Run) *PressWork {
	w, ok := j.Work.(*PressWork)
	if !ok {
		w = new(PressWork)
		j.Work = w
	}
	return w
}

// HandlePress handles a press and shows the user the outcome. After an error it has to be retried; the
// last attempt tells the user that the press did not work.
func (d *Cards) HandlePress(ctx context.Context, j *queue.Run) error {
	limited, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	toast, err := d.resolvePress(limited, j)
	if err != nil {
		failed := pressWorkOf(j)
		if failed.attempts++; ctx.Err() != nil || failed.attempts < pressTries && !errors.Is(err, errPanic) {
			return err
		}
		j.Incident, toast = queue.NewIncident(), toastTrouble
		d.cfg.Log.Error("a press has no effect", "incident", j.Incident, "job", j.Key(), "err", err)
	}
	d.answerPress(ctx, j.Message, toast)
	return nil
}

func (d *Cards) resolvePress(ctx context.Context, j *queue.Run) (string, error) {
	m := j.Message
	token, ok := parseToken(m.Text)
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
	case kept.LastPress == j.Key():
		return kept.LastToast, d.finishChange(ctx, kept)
	case kept.Chat.Platform != m.Chat.Platform || kept.Chat.ID != m.Chat.ID:
		d.cfg.Log.Warn("a button was pressed in a chat that it was not sent to", "chat", m.Chat.String(), "user", m.User)
		return toastUnknown, nil
	case d.cfg.Host.RoleOf(m) == toolgroups.RoleStranger:
		return toastStranger, nil
	case !kept.IsOpen():
		return closedToasts[kept.Reason], d.finishChange(ctx, kept)
	case !d.cfg.Now().Before(kept.Expires):
		return toastExpired, d.closeUndecided(ctx, kept, expired)
	case len(kept.IDs) == 0:
		return "", errStillSending
	case m.TargetID != kept.IDs[len(kept.IDs)-1] && (!kept.PossiblyDuplicated || isReactionPress(m)):
		return toastUnknown, nil
	}
	for n, choice := range slices.Concat(kept.Choices...) {
		if isReactionPress(m) && (choice.Reaction == "" || !kept.takesReactions()) {
			continue
		}
		if kept.buttonDataAt(n) == m.Text {
			return d.handleChoice(ctx, j, kept, Press{Choice: choice.Value})
		}
	}
	return toastChanged, d.finishChange(ctx, kept)
}

// replyLate is the reply to a message that answers a closed card.
const replyLate = "That question is over, so I did not use your answer. Please send it again if it was meant for me."

// handleReply handles a message that answers a card, and returns the text for its sender; empty if the
// card shows the outcome.
func (d *Cards) handleReply(ctx context.Context, j *queue.Run) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	kept, err := d.Get(ctx, outbox.DeliveryOf(j).RepliesTo)
	switch {
	case err != nil:
		return "", err
	case kept == nil:
		return replyLate, nil
	case kept.LastPress == j.Key():
		return kept.LastToast, d.finishChange(ctx, kept)
	case !kept.IsOpen():
		return replyLate, d.finishChange(ctx, kept)
	case !d.cfg.Now().Before(kept.Expires):
		return replyLate, d.closeUndecided(ctx, kept, expired)
	}
	isReply := slices.ContainsFunc(j.Message.Quoted, func(q chats.Quoted) bool { return q.Kind == chats.RefReply && slices.Contains(kept.IDs, q.ID) })
	return d.handleChoice(ctx, j, kept, Press{Text: j.Message.Text, IsReply: isReply, Foreign: j.Message.Foreign})
}

// handleChoice calls the handler of a card with a press whose choice the caller has determined.
func (d *Cards) handleChoice(ctx context.Context, j *queue.Run, kept *StoredCard, press Press) (string, error) {
	scope, err := d.cfg.Host.ScopeOf(ctx, j)
	if err != nil {
		return "", err
	}
	author := j.Author(d.cfg.Store)
	if strings.HasPrefix(j.Message.ID, PagePressPrefix) {
		author.Chat = audit.PageChat
	}
	press.Scope, press.Author, press.UserName, press.Place = scope, author, j.Message.UserName, j.Message.Chat
	press.Card, press.Token = kept.Card, kept.Token
	press.ForChat = d.pressesForChat(ctx, kept, j.Message)
	result, err := d.callHandler(ctx, press)
	if err == nil {
		err = checkChoices(result.Choices)
	}
	if err != nil {
		return "", err
	}
	if result.saysOnly() {
		return result.Toast, nil // the press may do so again; it must not replace one that must not
	}
	kept.LastPress, kept.LastToast = j.Key(), result.Toast
	how := open
	if result.Close {
		how = closed
	}
	return result.Toast, d.saveResult(ctx, kept, result, how)
}

// IsChat reports whether a user, platform:id, is a chat in whose name somebody wrote.
func (d *Cards) IsChat(user string) bool {
	platform, id, _ := strings.Cut(user, ":")
	sender, can := d.cfg.Platforms[platform].(chats.ChatSender)
	return can && sender.IsChat(id)
}

// pressesForChat reports whether a user presses for the chat in whose name the card's message was written: Telegram
// delivers presses of anonymous administrators as those of their accounts.
func (d *Cards) pressesForChat(ctx context.Context, kept *StoredCard, m chats.Message) bool {
	admins, can := d.cfg.Platforms[m.Chat.Platform].(chats.AdminChecker)
	if !can || !d.IsChat(kept.QuotedUser) || strings.HasPrefix(m.ID, PagePressPrefix) {
		return false
	}
	is, err := admins.IsAdmin(ctx, kept.Chat, m.User)
	if err != nil {
		d.cfg.Log.Warn("administrators of a chat cannot be determined", "chat", kept.Chat.String(), "err", err)
	}
	return is && err == nil
}

// closeUndecided closes a card without a decision, whatever its handler returns.
func (d *Cards) closeUndecided(ctx context.Context, kept *StoredCard, how CloseReason) error {
	result, err := d.callHandler(ctx, Press{Scope: toolgroups.Scope{Chat: kept.Chat.String()}, Place: kept.Chat, Expired: true, Card: kept.Card})
	if err != nil {
		d.cfg.Log.Error("a card was closed although its handler failed", "chat", kept.Chat.String(), "err", err)
		result = Result{}
	}
	if result.Text == "" {
		result.Text = kept.Text + "\n\n" + undecidedNotes[how]
	}
	return d.saveResult(ctx, kept, result, how)
}

// callHandler calls the handler of a card. A panic becomes an error.
func (d *Cards) callHandler(ctx context.Context, press Press) (result Result, err error) {
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

// saveResult stores the result of a press. If the card was decided or changed in the meantime, it
// returns an error and the caller reads the card again. A delivery in the meantime does not count.
func (d *Cards) saveResult(ctx context.Context, kept *StoredCard, result Result, how CloseReason) error {
	for {
		version := kept.Version
		show := showNone
		if kept.applyResult(result) || how != open {
			show = showEdited
		}
		if how != open {
			kept.markClosed(d.cfg.Now(), how)
		}
		conflict := d.save(ctx, kept, show, result.Ops...)
		if !errors.Is(conflict, storage.ErrConflict) {
			return conflict
		}
		now, err := d.Get(ctx, kept.Token)
		if err != nil {
			return err
		}
		if now == nil || !now.IsOpen() || now.Version != version {
			return conflict
		}
		now.LastPress, now.LastToast = kept.LastPress, kept.LastToast
		kept = now
	}
}

// Refresh edits the messages of a card. If its text now has more or fewer parts than messages, the last
// message shows the last part and the others stay as they are. One edit shows all changes that came
// while the job waited.
func (d *Cards) Refresh(ctx context.Context, j *queue.Run) error {
	token, number, _ := strings.Cut(j.Message.ID, "-")
	version, err := strconv.Atoi(number)
	d.mu.Lock()
	shown := d.shown[token]
	d.mu.Unlock()
	if err == nil && version <= shown {
		return nil
	}
	kept, err := d.Get(ctx, outbox.DeliveryOf(j).CardToken)
	if err != nil || kept == nil || len(kept.IDs) == 0 {
		return err // not shown yet: it will show the current version
	}
	parts, lead := d.render(j, kept)
	parts = parts[lead:]
	ids := kept.IDs
	if len(parts) != len(ids) {
		n := min(1, len(parts))
		parts, ids = parts[len(parts)-n:], ids[len(ids)-n:]
	}
	if err := d.cfg.Sender.Edit(ctx, j, kept.Chat, ids, parts); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.shown) >= maxShown {
		clear(d.shown)
	}
	d.shown[kept.Token] = kept.Version
	return nil
}

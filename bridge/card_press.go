package bridge

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/sessions"
	"oneclaw/toolgroups"
)

// What presses are told that do nothing.
const (
	toastUnknown  = "These buttons are out of date."
	toastStranger = "Sorry, I only take this from people I have been introduced to."
	toastDecided  = "This was decided already."
	toastExpired  = "Too late: this has expired."
	toastChanged  = "This has just changed. Please look again."
	toastBusy     = "There is too much going on here. Please try again in a moment."
	toastTrouble  = "That did not work. Please try again in a moment."
)

// maxToasts bounds the presses that are answered at the same time without a job.
const maxToasts = 16

// pressTries bounds how often a press is tried whose handling ends with an error: with
// the growing pauses about ten seconds, after which nobody waits for it any more.
const pressTries = 5

// pressTimeout bounds what is done with one press.
const pressTimeout = 30 * time.Second

// acceptPress reports whether a press is to be handled; who pressed is told where not.
func (b *Bridge) acceptPress(j *jobs.Job) bool {
	l := b.laneOf(j)
	defer b.lanes.Leave(l)
	m := j.Message
	switch {
	case b.role(m) == toolgroups.RoleStranger:
		b.toastSoon(m, toastStranger)
	case l.Deciding() >= b.cfg.MaxWaiting:
		b.toastSoon(m, toastBusy)
	default:
		return true
	}
	return false
}

// toastSoon tells who pressed a button that nothing comes of it, unless too many are
// being told already.
func (b *Bridge) toastSoon(m chats.Message, toast string) {
	select {
	case b.toasts <- struct{}{}:
	default:
		return
	}
	b.lanes.Go(func() {
		b.answerPress(m, toast)
		<-b.toasts
	})
}

// answerPress is best effort: a press that is not answered ends by itself.
func (b *Bridge) answerPress(m chats.Message, toast string) {
	editor, ok := b.platforms[m.Chat.Platform].(chats.Editor)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(b.lanes.Work(), pressTimeout)
	defer cancel()
	if err := editor.AnswerPress(ctx, m, b.cfg.Redact(toast)); err != nil && b.lanes.Work().Err() == nil {
		b.log.Warn("a press could not be answered", "chat", m.Chat.String(), "err", err)
	}
}

// cardStep makes the run of a job that has no answer to deliver.
func (b *Bridge) cardStep(step func(context.Context, *jobs.Job) error) func(context.Context, *jobs.Job) error {
	return func(ctx context.Context, j *jobs.Job) error {
		if err := step(ctx, j); err != nil {
			return err
		}
		b.closeLater(j, jobs.StateDone)
		return nil
	}
}

// pressed handles a press and tells who pressed.
func (b *Bridge) pressed(ctx context.Context, j *jobs.Job) error {
	toast, err := b.handlePress(ctx, j)
	if err == nil {
		b.answerPress(j.Message, toast)
	}
	return err
}

// handlePress decides what a press does and returns what is told to who pressed. What
// goes wrong is tried again a few times, then told.
func (b *Bridge) handlePress(ctx context.Context, j *jobs.Job) (toast string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			j.Tries = pressTries
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		if j.Tries++; j.Tries >= pressTries {
			b.failed(j, err)
			toast, err = toastTrouble, nil
		}
	}()
	limited, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	return b.press(limited, j)
}

// errUnseen is why a press is tried again: it overtook the record of its message.
var errUnseen = errors.New("bridge: the card is still being sent")

func (b *Bridge) press(ctx context.Context, j *jobs.Job) (string, error) {
	m := j.Message
	token, version, index, ok := cards.ParsePress(m.Text)
	if !ok {
		return toastUnknown, nil
	}
	kept, err := b.cards.Load(ctx, token)
	if err != nil {
		return "", err
	}
	switch {
	case kept == nil:
		return toastUnknown, nil
	case kept.Press == j.Key():
		return kept.Toast, b.settled(ctx, kept)
	case kept.Chat.Platform != m.Chat.Platform || kept.Chat.ID != m.Chat.ID:
		b.log.Warn("a button was pressed in a chat that it was not sent to", "chat", m.Chat.String(), "user", m.User)
		return toastUnknown, nil
	case b.role(m) == toolgroups.RoleStranger:
		return toastStranger, nil
	case !kept.Open():
		return toastOf(kept), b.settled(ctx, kept)
	case !b.cfg.Now().Before(kept.Expires):
		return toastExpired, b.lapse(ctx, kept, cards.Expired)
	case len(kept.IDs) == 0:
		return "", errUnseen
	case m.On != kept.IDs[len(kept.IDs)-1] && !kept.Twice:
		return toastUnknown, nil
	case version != kept.Version:
		return toastChanged, b.refreshLater(ctx, kept, "")
	}
	choices := slices.Concat(kept.Choices...)
	if index >= len(choices) {
		return toastUnknown, nil
	}
	return b.choose(ctx, j, kept, choices[index].Value)
}

func toastOf(kept *cards.Kept) string {
	switch kept.How {
	case cards.Expired:
		return toastExpired
	case cards.Unseen, cards.Void:
		return toastUnknown
	}
	return toastDecided
}

// choose has the handler decide, and keeps what it decided.
func (b *Bridge) choose(ctx context.Context, j *jobs.Job, kept *cards.Kept, choice string) (string, error) {
	session, err := sessions.Current(ctx, b.store, j.Message.Chat)
	if err != nil {
		return "", err
	}
	scope, err := b.scope(j, session)
	if err != nil {
		return "", err
	}
	result, err := b.handlers[kept.Kind](ctx, cards.Press{
		Scope: scope, UserName: j.Message.UserName, Place: j.Message.Chat, Choice: choice, Card: kept.Card, Token: kept.Token,
	})
	if err != nil {
		return "", fmt.Errorf("handle a press of %s: %w", kept.Kind, err)
	}
	if err := cards.CheckChoices(result.Choices); err != nil {
		return "", err
	}
	kept.Press, kept.Toast = j.Key(), result.Toast
	changed := kept.Take(result)
	if result.Close {
		kept.End(b.cfg.Now(), cards.Closed)
	} else if changed {
		kept.Version++
	}
	return result.Toast, b.keepResult(ctx, kept)
}

// keepResult writes what became of a card. Where somebody else changed it meanwhile,
// what was decided is decided again, about what it is now.
func (b *Bridge) keepResult(ctx context.Context, kept *cards.Kept) error {
	if err := b.cards.Put(ctx, kept); err != nil {
		return err
	}
	return b.settled(ctx, kept)
}

// settled does what follows from a change that is on disk. It bears repeating.
func (b *Bridge) settled(ctx context.Context, kept *cards.Kept) error {
	if !kept.Open() {
		b.expiry.done(kept.Token)
		b.release(kept)
	}
	return b.refreshLater(ctx, kept, "")
}

// void closes a card whose question is over, with a line that says why.
func (b *Bridge) void(ctx context.Context, token, note string) error {
	kept, err := b.cards.Update(ctx, token, func(kept *cards.Kept) {
		if kept.Open() {
			if kept.Kind == kindApproval {
				kept.Text = overText(kept.Text, note)
			} else {
				kept.Text += "\n\n" + note
			}
			kept.End(b.cfg.Now(), cards.Void)
		}
	})
	if kept == nil || err != nil {
		return err
	}
	return b.settled(ctx, kept)
}

// refreshLater has the message of a card show what the card is now. When it returns nil,
// that is on disk.
func (b *Bridge) refreshLater(ctx context.Context, kept *cards.Kept, why string) error {
	if kept.Version == 1 {
		return nil
	}
	j := b.cardJob(jobs.KindRefresh, kept, kept.Token+"-"+strconv.Itoa(kept.Version)+why)
	added, err := b.jobs.Add(ctx, j)
	if err == nil && added {
		b.lanes.Queue(j)
	}
	return err
}

func (b *Bridge) cardJob(kind chats.Kind, kept *cards.Kept, id string) *jobs.Job {
	return &jobs.Job{
		Message: chats.Message{Chat: kept.Chat, ID: id, Kind: kind, User: "bot", Time: b.cfg.Now()},
		Card:    kept.Token, Seq: b.nextSeq(), State: jobs.StateOpen, Accepted: b.cfg.Now(),
	}
}

// refresh edits the messages of a card. Where its text has got more or fewer parts than
// there are messages, the last message shows the last part and the others stay.
func (b *Bridge) refresh(ctx context.Context, j *jobs.Job) error {
	kept, err := b.cards.Load(ctx, j.Card)
	if err != nil {
		return err
	}
	if kept == nil || len(kept.IDs) == 0 {
		return nil // not shown yet: what is shown then is the present version
	}
	parts, lead := b.renderCard(j, kept)
	parts = parts[lead:]
	ids := kept.IDs
	if len(parts) != len(ids) {
		parts, ids = parts[max(0, len(parts)-1):], ids[len(ids)-1:]
	}
	return b.sender.Edit(ctx, j, kept.Chat, ids, parts)
}

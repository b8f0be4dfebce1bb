package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/privacy"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
	"oneclaw/internal/cache"
	"oneclaw/internal/rescue"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// acceptWrites bounds the concurrent job writes of one Accept. The storage engine groups them into a few
// disk writes.
const acceptWrites = 128

// intake accepts messages from platforms, decides how each is handled, and stores it.
type intake struct {
	workers      *workerRegistry
	jobs         queue.Store
	queue        *queue.Queue
	inserter     *inserter
	claimer      *claimer
	suspender    *suspender
	limiter      *limiter
	delayTracker *delayTracker
	editHandler  *editHandler
	feedback     *feedbackRecorder
	people       *access.Registry
	observer     *privacy.Observer
	elicitation  *interact.Elicitation
	cards        *interact.Cards
	deadLetters  queue.DeadLetterStore
	measure      queue.Counter
	retryFor     time.Duration
	onErased     func(context.Context) error                          // see [Hooks]
	commandFor   func(context.Context, chats.Message) (string, error) // see [Hooks]
	now          func() time.Time
	log          *slog.Logger

	// failed holds the failed attempts to accept a message, by job key.
	failed *cache.Cache[string, attempts]
	// cutTexts holds the last text that may have been split, by its chat and sender.
	cutTexts *cache.Cache[string, cutText]
}

// Accept implements [chats.Inbox]. It accepts the messages of a chat in order, and different chats
// concurrently. It waits until Run has loaded the jobs of an earlier run.
func (b *Bridge) Accept(ctx context.Context, messages ...chats.Message) error {
	if err := b.AwaitReady(ctx); err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	in := b.intake
	messages, err := in.cards.ReadReactions(ctx, messages)
	if err == nil {
		messages, err = in.feedback.readReactions(ctx, messages)
	}
	if err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	var places []chats.Chat
	byChat := make(map[chats.Chat][]chats.Message)
	for _, m := range messages {
		if err := in.inserter.validateMessage(m); err != nil {
			// Another delivery would not help, and the message must not block those behind it.
			in.log.Error("message dropped", "err", err)
			continue
		}
		if byChat[m.Chat] == nil {
			places = append(places, m.Chat)
		}
		byChat[m.Chat] = append(byChat[m.Chat], m)
	}
	var group errgroup.Group
	group.SetLimit(acceptWrites)
	for _, chat := range places {
		group.Go(func() error {
			return rescue.Do(func() error {
				token, release, err := in.claimer.lockChat(ctx, chat)
				if err != nil {
					return fmt.Errorf("accept messages in %s: %w", chat, err)
				}
				defer release()
				b.reach.onMessage(ctx, chat)
				for _, m := range byChat[chat] {
					if err := in.accept(ctx, in.inserter.newJob(m, token)); err != nil {
						return fmt.Errorf("accept message %s in %s: %w", m.ID, chat, err)
					}
				}
				return nil
			})
		})
	}
	return group.Wait()
}

// probeKey is the key that is written to find out whether the store accepts writes.
const probeKey = "probe"

// accept admits a message. A message that keeps failing although the store accepts writes becomes a dead
// letter, and its chat gets a notice, so that later messages do not wait behind it.
func (in *intake) accept(ctx context.Context, j *queue.Run) error {
	key := j.Key()
	failure := rescue.Do(func() error { return in.admit(ctx, j) })
	if failure == nil {
		in.failed.Forget(key)
		return nil
	}
	in.queue.Unreserve(j)
	t, _ := in.failed.Get(key)
	own := t.countFailure(in.now(), in.retryFor, failure)
	if own && !t.storeWorked {
		// The store may have failed until now, so there is one more attempt once it accepts a write.
		_, err := in.jobs.Store.Put(ctx, probeKey, nil, storage.Any)
		if own, t.storeWorked = false, err == nil; err != nil {
			t = attempts{}
		}
	}
	in.failed.Put(key, t, cache.Forever)
	if !own {
		return failure
	}
	letter := queue.DeadLetter{Key: queue.UnacceptedPrefix + key, Chat: j.Message.Chat.String(), Reason: "it could not be accepted", Incident: queue.NewIncident()}
	data, err := json.Marshal(j.Message)
	if letter.Data = data; err == nil {
		err = rescue.Do(func() error { return in.deadLetters.Add(ctx, letter) })
	}
	if err != nil {
		in.failed.Forget(key) // the store is down
		return err
	}
	told := error(nil)
	if in.workers.Placement(j).FromUser {
		text := turn.WithIncident("Something went wrong inside me, and I could not take your message. Please send it again.", letter.Incident)
		told = rescue.Do(func() error {
			_, err := in.cards.Post(ctx, "untaken/"+key, j.Message.Chat, interact.Card{ReplyTo: j.Message.ID, Text: text})
			return err
		})
	}
	in.log.Error("a message could not be accepted and is now a dead letter", "incident", letter.Incident, "job", key, "notice_err", told, "err", failure)
	return in.jobs.Discard(ctx, j)
}

// admit decides how a message is handled, by its kind and sender, and stores it unless it is refused.
func (in *intake) admit(ctx context.Context, j *queue.Run) error {
	m := j.Message
	switch {
	case m.Kind == chats.KindAmbient:
		return in.observer.Add(ctx, m)
	case m.Kind == chats.KindFeedback:
		return in.feedback.record(ctx, m)
	case j.Unclaimed:
		return in.insertUnclaimed(ctx, j)
	case m.Kind == chats.KindEdit:
		return in.editHandler.handleEdit(ctx, j)
	case m.Kind == chats.KindDelete:
		return in.editHandler.handleDelete(ctx, j)
	}
	if err := in.interpret(ctx, j); err != nil {
		return err
	}
	in.workers.setKind(j)
	if m.Alone && m.Kind == chats.KindText && in.workers.isForAll(j) && in.people.Role(m.SenderID()) != toolgroups.RoleStranger {
		// A turn would show the others its answer and keep the message for them, so none begins; and what a command
		// changes for them they would not learn.
		dropContent(j, seenByOne)
		in.workers.setKind(j)
	}
	room := in.limiter.reserve(j)
	switch {
	case m.Kind == chats.KindPress:
		if !in.cards.AcceptsPress(m, room.chatFull) {
			return in.jobs.Discard(ctx, j)
		}
	case in.people.Role(m.SenderID()) == toolgroups.RoleStranger:
		return in.handleStranger(ctx, j)
	case room.chatFull || room.senderFull:
		switch refused, err := in.limiter.refuse(ctx, j, room); {
		case errors.Is(err, storage.ErrConflict):
			return in.claimer.claimRedelivered(ctx, j)
		case refused || err != nil:
			return err
		}
	}
	outbox.DeliveryOf(j).Delay = in.delayTracker.delayToReport(j)
	return in.enqueue(ctx, j)
}

// interpret notes what a message stands for at this moment, although it does not look like that: the answer to a card, or
// else a command. What others wrote is no command of the sender, and a reaction answers what it is to.
func (in *intake) interpret(ctx context.Context, j *queue.Run) (err error) {
	m, d, command := j.Message, outbox.DeliveryOf(j), ""
	if m.Emoji != "" {
		return nil
	}
	if j.Message.Continues = m.Continues || in.continuesText(m); j.Message.Continues {
		return nil // others may have written what the sender pasted
	}
	// A lone word that stops answers no question, unless it is a reply.
	stops := m.Kind == chats.KindText && !m.Foreign && isStopWord(m) && in.queue.Serves(in.queue.CurrentChat(m.Chat), m.SenderID())
	isReply := slices.ContainsFunc(m.Quoted, func(q chats.Quoted) bool { return q.Kind == chats.RefReply })
	if d.RepliesTo == "" && !m.Alone && (!stops || isReply) {
		d.RepliesTo, err = in.elicitation.AnsweredCard(ctx, m)
	}
	switch {
	case err != nil, d.RepliesTo != "", m.Kind != chats.KindText, m.Foreign:
	case stops:
		command = "/" + stopName
	case in.commandFor != nil:
		command, err = in.commandFor(ctx, m)
	}
	j.Message.Text = cmp.Or(command, m.Text)
	return err
}

// cutText is a text that its sender's client may have split at its end.
type cutText struct {
	id string
	at time.Time
}

// continuesText reports whether a message may be the rest of the text before it of the same sender.
func (in *intake) continuesText(m chats.Message) bool {
	key := m.Chat.String() + "/" + m.User
	before, ok := in.cutTexts.Get(key)
	if m.Kind == chats.KindText && m.Cut != chats.CutNowhere {
		in.cutTexts.Put(key, cutText{m.ID, m.Time}, turn.PieceGap*10)
	}
	return ok && m.Kind == chats.KindText && before.id != m.ID && m.Time.Sub(before.at).Abs() <= turn.PieceGap
}

// staleAfter is the age of a message, by its platform's clock, above which the answer mentions the
// delay.
const staleAfter = time.Hour

// delayTracker finds delayed messages, and remembers which chats were notified of a delay.
type delayTracker struct {
	workers    *workerRegistry
	now        func() time.Time
	lastNotice *cache.Cache[chats.Chat, time.Time] // when a chat was last notified of a delay
}

// delayToReport returns the delay of a message if its answer has to mention it, otherwise 0. The answer
// mentions the delay if it exceeds staleAfter and the chat got no such notice within that time. Delayed
// messages and commands keep the order in which they were sent, so a /stop or /clear ends only the
// messages before it.
func (d *delayTracker) delayToReport(j *queue.Run) time.Duration {
	m := j.Message
	if m.Time.IsZero() || !d.workers.Placement(j).FromUser {
		return 0
	}
	now := d.now()
	late := now.Sub(m.Time)
	if late <= staleAfter {
		return 0
	}
	if told, _ := d.lastNotice.Get(m.Chat); now.Sub(told).Abs() < staleAfter {
		return 0
	}
	return late
}

// recordNotice records that a chat is notified of a delay now.
func (d *delayTracker) recordNotice(chat chats.Chat) { d.lastNotice.Put(chat, d.now(), cache.Forever) }

// insertUnclaimed stores a message for the process that owns its chat.
func (in *intake) insertUnclaimed(ctx context.Context, j *queue.Run) error {
	switch {
	case j.Message.Kind == chats.KindEdit, j.Message.Kind == chats.KindDelete:
		return in.editHandler.insertUnclaimed(ctx, j)
	case in.workers.Placement(j).FromUser && in.people.Role(j.Message.SenderID()) == toolgroups.RoleStranger:
		return in.handleStranger(ctx, j)
	}
	return in.enqueue(ctx, j)
}

func (in *intake) handleStranger(ctx context.Context, j *queue.Run) error {
	in.queue.Unreserve(j)
	if known, err := in.people.IsAdmitted(ctx, j.Message.SenderID()); known || err != nil {
		if err != nil {
			return err
		}
		return in.admit(ctx, j)
	}
	forgotten, err := in.forgetStranger(ctx, j)
	if err != nil {
		return err
	}
	heard, err := in.people.HandleStranger(ctx, j)
	if err != nil {
		return err
	}
	if forgotten {
		turn.WorkOf(j).AskOwner = false
	}
	if !heard {
		return in.jobs.Discard(ctx, j)
	}
	if err = in.enqueue(ctx, j); err != nil {
		in.people.ForgetNotice(ctx, j.Message)
	}
	return err
}

// forgetStranger handles /forget from a stranger in a direct chat: it deletes the stranger's ambient
// messages in groups. It reports whether the message is that command, and sets the job's notice.
func (in *intake) forgetStranger(ctx context.Context, j *queue.Run) (bool, error) {
	m := j.Message
	if m.Kind != chats.KindText || !m.Direct || strings.TrimSpace(m.Text) != "/"+privacy.ForgetCommand {
		return false, nil
	}
	if err := in.observer.Forget(ctx, m.SenderID()); err != nil {
		return false, err
	}
	if in.onErased != nil {
		if err := in.onErased(ctx); err != nil {
			return false, err
		}
	}
	outbox.DeliveryOf(j).Notice = strangerForgotten
	return true, nil
}

// strangerForgotten answers /forget of a stranger, who may be somebody who was removed.
const strangerForgotten = "I have forgotten what I heard you say in groups. Your messages to me here are deleted within a week. " +
	"If I could talk to you before, what you asked me then is still here, with what belongs to it: ask an administrator to let you in once more, then /forget deletes all of it."

// enqueue stores a job, unless its event is stored already, and puts it into the queue.
func (in *intake) enqueue(ctx context.Context, j *queue.Run) error {
	first := j.Rev == storage.Absent
	added, err := in.inserter.add(ctx, j)
	if errors.Is(err, storage.ErrInvalid) {
		added, err = in.storeWithoutContent(ctx, j, err)
	}
	if !added || j.Unclaimed {
		in.queue.Unreserve(j)
	}
	switch {
	case errors.Is(err, storage.ErrInvalid):
		in.log.Error("message dropped", "err", err)
		return in.jobs.Discard(ctx, j)
	case err != nil:
		return err
	case !added:
		return in.claimer.claimRedelivered(ctx, j)
	}
	if first {
		in.measure(j.Message.Chat.Platform, queue.MeasuredAccepted)
	}
	if outbox.DeliveryOf(j).Delay > 0 {
		in.delayTracker.recordNotice(j.Message.Chat)
	}
	if j.Unclaimed {
		return nil
	}
	j.WaitingSince = in.now()
	in.inserter.stopOlder(j)
	if held := in.inserter.enqueue(j); held != nil {
		in.suspender.notifyWaiting(ctx, held, j)
	}
	return nil
}

// storeWithoutContent stores a job whose message is too large, without its content, because another
// delivery would not help. The sender gets a notice.
func (in *intake) storeWithoutContent(ctx context.Context, j *queue.Run, err error) (bool, error) {
	in.log.Error("message is too large", "job", j.Key(), "err", err)
	dropContent(j, "This message is too long for me. Please send it in smaller pieces, or as a file.")
	return in.inserter.add(ctx, j)
}

// dropContent empties the message of a job, which is answered with a notice.
func dropContent(j *queue.Run, notice string) {
	j.Message.Text, j.Message.Files, j.Message.Skipped, j.Message.Quoted = "", nil, nil, nil
	outbox.DeliveryOf(j).Notice = notice
}

// seenByOne answers what one person wrote in a group so that the others do not see it.
const seenByOne = "Only you and I see this message, but what I answer here is for everybody. Please write it for all, or to me in a direct chat."

package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
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

// acceptWrites bounds the concurrent job writes of one Accept; the storage engine joins them into few
// disk writes.
const acceptWrites = 128

// intake takes messages from platforms, decides how each is handled, and stores it.
type intake struct {
	workers     *workers
	jobs        queue.Store
	queue       *queue.Queue
	inserter    *inserter
	claimer     *claimer
	suspender   *suspender
	limiter     *limiter
	delays      *delays
	edits       *edits
	feedback    *feedback
	people      *access.Registry
	observer    *privacy.Observer
	elicitation *interact.Elicitation
	cards       *interact.Cards
	deadLetters queue.DeadLetters
	measure     queue.Counter
	retryFor    time.Duration
	now         func() time.Time
	log         *slog.Logger

	mu sync.Mutex
	// failed holds the attempts of messages that could not be stored, by key.
	failed *cache.Cache[string, attempts]
}

// Accept implements [chats.Inbox]: it takes the messages of a chat in order, those of different chats
// concurrently. It waits until Run has loaded the jobs of a former run.
func (b *Bridge) Accept(ctx context.Context, messages ...chats.Message) error {
	if err := b.ready(ctx); err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	in := b.intake
	var places []chats.Chat
	byChat := make(map[chats.Chat][]chats.Message)
	for _, m := range messages {
		if err := in.inserter.check(m); err != nil {
			// Delivering it again would not help, and it must not block those behind it.
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
				token, release, err := in.claimer.enter(ctx, chat)
				if err != nil {
					return fmt.Errorf("accept messages in %s: %w", chat, err)
				}
				defer release()
				for _, m := range byChat[chat] {
					if err := in.take(ctx, in.inserter.withToken(m, token)); err != nil {
						return fmt.Errorf("accept message %s in %s: %w", m.ID, chat, err)
					}
				}
				return nil
			})
		})
	}
	return group.Wait()
}

// take admits a message. If it has failed as often as a job may, for a reason of its own, it becomes a
// dead letter and its chat is told, so that later messages do not wait for it.
func (in *intake) take(ctx context.Context, j *queue.Run) error {
	key := j.Key()
	failure := rescue.Do(func() error { return in.admit(ctx, j) })
	if failure == nil {
		in.failed.Forget(key)
		return nil
	}
	in.queue.Release(j)
	in.mu.Lock()
	t, _ := in.failed.Get(key)
	own := t.count(in.now(), in.retryFor, failure)
	in.failed.Put(key, t, cache.Forever)
	in.mu.Unlock()
	if !own {
		return failure
	}
	letter := queue.DeadLetter{Key: "message/" + key, Chat: j.Message.Chat.String(), Reason: "it could not be accepted", Incident: queue.NewIncident()}
	data, err := json.Marshal(j.Message)
	if letter.Data = data; err == nil {
		err = rescue.Do(func() error { return in.deadLetters.Add(ctx, letter) })
	}
	if err != nil {
		return err // the store is down
	}
	told := error(nil)
	if in.workers.Placement(j).FromUser {
		text := turn.WithIncident("Something went wrong inside me, and I could not take your message. Please send it again.", letter.Incident)
		told = rescue.Do(func() error {
			_, err := in.cards.Post(ctx, "untaken/"+key, j.Message.Chat, interact.Card{ReplyTo: j.Message.ID, Text: text})
			return err
		})
	}
	in.log.Error("a message could not be taken and is set aside", "incident", letter.Incident, "job", key, "untold", told, "err", failure)
	return in.jobs.Discard(ctx, j)
}

// admit admits a message. Each special kind leaves this path here.
func (in *intake) admit(ctx context.Context, j *queue.Run) error {
	m := j.Message
	switch {
	case m.Kind == chats.KindAmbient:
		return in.observer.Add(ctx, m)
	case m.Kind == chats.KindFeedback:
		return in.feedback.keep(ctx, m)
	case j.Unclaimed:
		return in.insertUnclaimed(ctx, j)
	case m.Kind == chats.KindEdit:
		return in.edits.amend(ctx, j)
	}
	if outbox.Of(j).Replies == "" {
		answers, err := in.elicitation.Answers(ctx, m)
		if err != nil {
			return err
		}
		outbox.Of(j).Replies = answers
	}
	in.workers.decide(j)
	room := in.limiter.reserve(j)
	switch {
	case m.Kind == chats.KindPress:
		if !in.cards.AcceptsPress(m, room.chatFull) {
			return in.jobs.Discard(ctx, j)
		}
	case in.people.Role(m.By()) == toolgroups.RoleStranger:
		return in.hear(ctx, j)
	case room.chatFull || room.senderFull:
		if refused, err := in.limiter.refuse(ctx, j, room); refused || err != nil {
			return err
		}
	}
	if !m.Time.IsZero() && j.Accepted.Sub(m.Time) > staleAfter {
		outbox.Of(j).Delay = in.delays.of(j)
	}
	return in.enqueue(ctx, j)
}

// staleAfter is the age, by its platform's time, from which on the answer to a message says that it was
// delayed.
const staleAfter = time.Hour

// delays tells which messages were delayed.
type delays struct {
	workers *workers
	now     func() time.Time
	told    *cache.Cache[chats.Chat, time.Time] // when a chat was last told of a delay
}

// of returns how long a message was delayed, if its answer has to say so: longer than staleAfter, and
// its chat was not told within that time. Such a message is otherwise like any other: messages and
// commands are handled in the order in which they were sent, so a /stop or /clear ends only what came
// before it.
func (d *delays) of(j *queue.Run) time.Duration {
	m := j.Message
	if m.Time.IsZero() || !d.workers.Placement(j).FromUser {
		return 0
	}
	now := d.now()
	late := now.Sub(m.Time)
	if late <= staleAfter {
		return 0
	}
	if told, _ := d.told.Get(m.Chat); now.Sub(told).Abs() < staleAfter {
		return 0
	}
	return late
}

// tell records that a chat is told of a delay.
func (d *delays) tell(chat chats.Chat) { d.told.Put(chat, d.now(), cache.Forever) }

// insertUnclaimed stores a message for the process that owns its chat.
func (in *intake) insertUnclaimed(ctx context.Context, j *queue.Run) error {
	switch {
	case j.Message.Kind == chats.KindEdit:
		return in.edits.insertUnclaimed(ctx, j)
	case in.workers.Placement(j).FromUser && in.people.Role(j.Message.By()) == toolgroups.RoleStranger:
		return in.hear(ctx, j)
	}
	return in.enqueue(ctx, j)
}

func (in *intake) hear(ctx context.Context, j *queue.Run) error {
	in.queue.Release(j)
	if known, err := in.people.IsAdmitted(ctx, j.Message.By()); known || err != nil {
		if err != nil {
			return err
		}
		return in.admit(ctx, j)
	}
	forgotten, err := in.forgetHeard(ctx, j)
	if err != nil {
		return err
	}
	heard, err := in.people.Hear(ctx, j)
	if err != nil {
		return err
	}
	if forgotten {
		turn.Of(j).AskOwner = false
	}
	if !heard {
		return in.jobs.Discard(ctx, j)
	}
	if err = in.enqueue(ctx, j); err != nil {
		in.people.Forget(ctx, j.Message)
	}
	return err
}

// forgetHeard deletes what was heard in groups of a stranger who sends /forget in a direct chat. It reports
// whether the message is such a command; the answer becomes the job's notice.
func (in *intake) forgetHeard(ctx context.Context, j *queue.Run) (bool, error) {
	m := j.Message
	if m.Kind != chats.KindText || !m.Direct || strings.TrimSpace(m.Text) != "/"+privacy.ForgetCommand {
		return false, nil
	}
	if err := in.observer.Forget(ctx, m.By()); err != nil {
		return false, err
	}
	outbox.Of(j).Notice = "I have forgotten what I heard you say in groups. Your messages to me here are deleted within a week."
	return true, nil
}

// enqueue stores a job, unless its event is known, and puts it into the queue.
func (in *intake) enqueue(ctx context.Context, j *queue.Run) error {
	first := j.Rev == storage.Absent
	added, err := in.inserter.add(ctx, j)
	if errors.Is(err, storage.ErrInvalid) {
		added, err = in.shorten(ctx, j, err)
	}
	if !added || j.Unclaimed {
		in.queue.Release(j)
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
	if outbox.Of(j).Delay > 0 {
		in.delays.tell(j.Message.Chat)
	}
	if j.Unclaimed {
		return nil
	}
	j.Since = in.now()
	in.inserter.stopOlder(j)
	if held := in.inserter.enqueue(j); held != nil {
		in.suspender.hint(ctx, held, j)
	}
	return nil
}

// shorten stores a job whose message is too large, without its content: delivering it again would not
// help. It is answered without the text.
func (in *intake) shorten(ctx context.Context, j *queue.Run, err error) (bool, error) {
	in.log.Error("message is too large", "job", j.Key(), "err", err)
	j.Message.Text, j.Message.Files, j.Message.Skipped, j.Message.Quoted = "", nil, nil, nil
	outbox.Of(j).Notice = "This message is too long for me. Please send it in smaller pieces, or as a file."
	return in.inserter.add(ctx, j)
}

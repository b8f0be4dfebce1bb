package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/privacy"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
	"oneclaw/internal/cache"
	"oneclaw/internal/named"
	"oneclaw/internal/rescue"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// staleAfter is how old a message may be when it arrives, by the time of its platform,
// before its answer says so.
const staleAfter = time.Hour

// acceptWrites bounds the jobs of one Accept that are written at the same time; the
// engine joins them into few disk writes.
const acceptWrites = 128

// intake takes what platforms deliver: it decides what becomes of each message, and puts
// it on disk.
type intake struct {
	*services
	// accepting is held, by chat, while messages are written and queued.
	accepting *named.Semaphores
	mu        sync.Mutex
	again     context.CancelFunc // see lookAgain
	// taking are the chats in which something of other processes is taken, and whether there
	// is more; places bounds how many at a time. See see.
	taking map[chats.Chat]bool
	places chan struct{}
	// late are the chats that were told that their messages waited, and when; full the
	// bursts of which a sender was told that too much waits.
	late *cache.Cache[chats.Chat, time.Time]
	// vain are the messages that could not be taken, by their keys.
	vain *cache.Cache[string, attempts]
	full *cache.Cache[string, time.Time]
}

// Accept implements [chats.Inbox]: it takes the messages of a chat in order, those of
// different chats side by side. It waits until Run has found what a former run left open.
func (b *Bridge) Accept(ctx context.Context, messages ...chats.Message) error {
	if err := b.ready(ctx); err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	in := b.intake
	var places []chats.Chat
	byChat := make(map[chats.Chat][]chats.Message)
	for _, m := range messages {
		if err := in.inserter.check(m); err != nil {
			// Giving it again would not help, and it must not block the ones behind it.
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
				release, err := in.accepting.Acquire(ctx, chat.String())
				// Who answers is asked once: a message must not overtake what was offered to
				// others, or what they have accepted, before it.
				mark := in.owners.SafeToken(chat)
				if err == nil && mark != "" && in.cfg.Sharing.On {
					release, err = in.overtaken(ctx, chat, release)
				}
				if err != nil {
					return fmt.Errorf("accept messages in %s: %w", chat, err)
				}
				defer release()
				for _, m := range byChat[chat] {
					if err := in.take(ctx, in.inserter.withToken(m, mark)); err != nil {
						return fmt.Errorf("accept message %s in %s: %w", m.ID, chat, err)
					}
				}
				return nil
			})
		})
	}
	return group.Wait()
}

// take has a message admitted. One that fails of its own as often as a job may is set aside, and
// its chat told: the messages behind it are not to wait for it.
func (in *intake) take(ctx context.Context, j *queue.Run) error {
	key := j.Key()
	failure := rescue.Do(func() error { return in.admit(ctx, j) })
	if failure == nil {
		in.vain.Forget(key)
		return nil
	}
	in.lanes.Release(j)
	in.mu.Lock()
	t, _ := in.vain.Get(key)
	own := t.count(in.cfg.Now(), in.cfg.Limits.RetryFor, failure)
	in.vain.Put(key, t, cache.Forever)
	in.mu.Unlock()
	if !own {
		return failure
	}
	aside := queue.DeadLetter{Key: "message/" + key, Chat: j.Message.Chat.String(), Reason: "it could not be accepted", Incident: queue.NewIncident()}
	data, err := json.Marshal(j.Message)
	if aside.Data = data; err == nil {
		err = rescue.Do(func() error { return in.asides.Add(ctx, aside) })
	}
	if err != nil {
		return err // the store takes nothing
	}
	told := error(nil)
	if in.workers.Place(j).Said {
		text := fmt.Sprintf("Something went wrong inside me, and I could not take your message. Please send it again.\n\n_Incident %s_", aside.Incident)
		told = rescue.Do(func() error {
			_, err := in.cards.Post(ctx, "untaken/"+key, j.Message.Chat, interact.Card{ReplyTo: j.Message.ID, Text: text})
			return err
		})
	}
	in.log.Error("a message could not be taken and is set aside", "incident", aside.Incident, "job", key, "untold", told, "err", failure)
	return in.jobs.Discard(ctx, j)
}

// admit takes a message. Whatever is special about it leaves the path here.
func (in *intake) admit(ctx context.Context, j *queue.Run) error {
	m := j.Message
	switch {
	case m.Kind == chats.KindAmbient:
		return in.observer.Add(ctx, m)
	case m.Kind == chats.KindFeedback:
		return in.judged(ctx, m)
	case j.Unclaimed:
		return in.offer(ctx, j)
	case m.Kind == chats.KindEdit:
		return in.amend(ctx, j)
	}
	if outbox.Of(j).Replies == "" {
		answers, err := in.asking.Answers(ctx, m)
		if err != nil {
			return err
		}
		outbox.Of(j).Replies = answers
	}
	in.workers.decide(j)
	lane, sender := in.lanes.Reserve(j, in.cfg.Limits.MaxWaitingMember)
	busy := lane.Waiting >= in.cfg.Limits.MaxWaiting
	switch {
	case m.Kind == chats.KindPress:
		if !in.cards.AcceptsPress(m, busy) {
			return in.jobs.Discard(ctx, j)
		}
	case in.people.Role(m.By()) == toolgroups.RoleStranger:
		return in.hear(ctx, j)
	case busy || sender.Waiting >= in.cfg.Limits.MaxWaitingMember:
		if refused, err := in.refuse(ctx, j, lane, sender); refused || err != nil {
			return err
		}
	}
	if !m.Time.IsZero() && j.Accepted.Sub(m.Time) > staleAfter {
		outbox.Of(j).Delay = in.waited(j)
	}
	return in.enqueue(ctx, j)
}

// waited returns how long a message was on its way, if its answer has to say so: longer
// than staleAfter, and its chat was not told within that time. Nothing else is
// different for such a message. Messages and commands that waited are carried out in the
// order in which they were sent, so a /stop or /clear ends what came before it and
// nothing else.
func (in *intake) waited(j *queue.Run) time.Duration {
	m := j.Message
	if m.Time.IsZero() || !in.workers.Place(j).Said {
		return 0
	}
	now := in.cfg.Now()
	late := now.Sub(m.Time)
	if late <= staleAfter {
		return 0
	}
	if told, _ := in.late.Get(m.Chat); now.Sub(told).Abs() < staleAfter {
		return 0
	}
	return late
}

func (in *intake) hear(ctx context.Context, j *queue.Run) error {
	in.lanes.Release(j)
	if known, err := in.people.Knows(ctx, j.Message.By()); known || err != nil {
		if err != nil {
			return err
		}
		return in.admit(ctx, j)
	}
	forgotten, err := in.unhear(ctx, j)
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

// unhear forgets what was heard in groups of a stranger who sends /forget in a direct chat. It
// reports whether this is so; the answer is the notice of the job.
func (in *intake) unhear(ctx context.Context, j *queue.Run) (bool, error) {
	m := j.Message
	if m.Kind != chats.KindText || !m.Direct || strings.TrimSpace(m.Text) != "/"+privacy.ForgetCommand {
		return false, nil
	}
	if err := in.observer.Forget(ctx, m.By()); err != nil {
		return false, err
	}
	outbox.Of(j).Notice = "I have forgotten what I heard you say in groups. What you write to me here goes within a week."
	return true, nil
}

// enqueue writes a job, unless its event is known, and has somebody work on it.
func (in *intake) enqueue(ctx context.Context, j *queue.Run) error {
	first := j.Rev == storage.Absent
	added, err := in.inserter.add(ctx, j)
	if errors.Is(err, storage.ErrInvalid) {
		added, err = in.shorten(ctx, j, err)
	}
	if !added || j.Unclaimed {
		in.lanes.Release(j)
	}
	switch {
	case errors.Is(err, storage.ErrInvalid):
		in.log.Error("message dropped", "err", err)
		return in.jobs.Discard(ctx, j)
	case err != nil:
		return err
	case !added:
		return in.known(ctx, j)
	}
	if first {
		in.cfg.Hooks.Measure(j.Message.Chat.Platform, queue.MeasuredAccepted)
	}
	if outbox.Of(j).Delay > 0 {
		in.late.Put(j.Message.Chat, in.cfg.Now(), cache.Forever)
	}
	if j.Unclaimed {
		return nil
	}
	j.Since = in.cfg.Now()
	in.inserter.stopOlder(j)
	if held := in.inserter.enqueue(j); held != nil {
		in.suspender.hint(ctx, held, j)
	}
	return nil
}

// shorten writes a job whose message is too large: giving it again would not help, so it is
// answered without what it says.
func (in *intake) shorten(ctx context.Context, j *queue.Run, err error) (bool, error) {
	in.log.Error("message is too large", "job", j.Key(), "err", err)
	j.Message.Text, j.Message.Files, j.Message.Skipped, j.Message.Quoted = "", nil, nil, nil
	outbox.Of(j).Notice = "This message is too long for me. Please send it in smaller pieces, or as a file."
	return in.inserter.add(ctx, j)
}

// known looks after a message that the platform has given again. Where this process answers,
// one that another has written meanwhile is taken at once, before what comes next in its chat
// and behind what was written before it.
func (in *intake) known(ctx context.Context, j *queue.Run) error {
	if in.lanes.Has(j.Key()) {
		return nil
	}
	known, err := in.jobs.Load(ctx, j.Key())
	switch {
	case known == nil || j.Unclaimed:
	case in.cfg.Sharing.On && in.owners.Owns(known.Message.Chat):
		_, err = in.overtaken(ctx, known.Origin(), func() {})
	case known.LeaseToken == in.jobs.LeaseToken(known.Message.Chat):
		in.inserter.begin(known)
	}
	if d, is := errors.AsType[*queue.DamagedError](err); is {
		if _, err := in.keeper.mend(ctx, d, chats.Chat{}, ""); err != nil {
			return err
		}
		return in.enqueue(ctx, j)
	}
	return err
}

// amend gives a message that still waits its new text; see reconsider for the others. A job
// that waits is read without a lock, so it is replaced, never changed; the lane goes on while
// the disk is written.
func (in *intake) amend(ctx context.Context, amendment *queue.Run) error {
	edit := amendment.Message
	j, edited := in.lanes.Waiting(edit.Chat, func(j *queue.Run) bool {
		// What has begun and waits for its turn again (after an approval) is on record as
		// it was.
		return in.workers.Place(j).Said && j.From == "" && j.Message.ID == edit.ID && j.Message.User == edit.User && j.Unstarted && len(turn.Of(j).Approvals) == 0
	})
	waits, began, err := false, false, error(nil)
	if j != nil {
		waits, began, err = in.replace(ctx, j, edited, edit)
	}
	if !waits && err == nil {
		err = in.reconsider(ctx, amendment, began)
	}
	if err != nil {
		return err
	}
	return in.jobs.Discard(ctx, amendment)
}

// replace puts an edited copy of a message that waits in its place. It reports whether the
// message waited still; began says that its turn has begun meanwhile, with the former text,
// although the new one is on disk.
func (in *intake) replace(ctx context.Context, j, edited *queue.Run, edit chats.Message) (waits, began bool, err error) {
	text := edit.Text
	edited.Message.Text = text
	if len(edit.Quoted) > 0 {
		edited.Message.Quoted = edit.Quoted // it links to something else now
	}
	in.workers.decide(edited)
	err = in.jobs.Put(ctx, edited)
	if errors.Is(err, storage.ErrConflict) {
		// Its turn has begun, or an earlier try to write this reported an error.
		known, err := in.jobs.Load(ctx, edited.Key())
		if queue.IsDamaged(err) {
			return true, false, nil // its own turn meets that
		}
		switch {
		case known == nil || err != nil:
			return false, false, err
		case known.LeaseToken != edited.LeaseToken:
			return false, false, queue.ErrLost // the platform gives it to who has it
		case known.Message.Text != text:
			return false, false, nil
		}
		edited.Rev = known.Rev
	} else if errors.Is(err, storage.ErrInvalid) {
		in.log.Error("edit dropped", "job", edited.Key(), "err", err)
		return true, false, nil
	} else if err != nil {
		return false, false, err
	}
	waits = in.lanes.Replace(j.Message.Chat, j, edited)
	// What is put together from pieces is read again in the write that does so.
	return waits, !waits && !in.workers.Place(edited).Partial && in.lanes.IsAnswering(j.Message.Chat, edited.Key()), nil
}

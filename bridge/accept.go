package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/people"
	"oneclaw/internal/cache"
	"oneclaw/internal/named"
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
	*rooms
	// accepting is held, by chat, while messages are written and queued.
	accepting *named.Semaphores
	mu        sync.Mutex
	again     context.CancelFunc // see lookAgain
	// taking are the chats in which something of other processes is taken, and whether there
	// is more; places bounds how many at a time. See see.
	taking map[chats.Chat]bool
	places chan struct{}
	// late are the chats that were told that their messages waited, and when; full the
	// bursts of which somebody was told that too much waits.
	late *cache.Cache[chats.Chat, time.Time]
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
		if err := in.check(m); err != nil {
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
			release, err := in.accepting.Acquire(ctx, chat.String())
			// Who answers is asked once: a message must not overtake what was offered to
			// others, or what they have accepted, before it.
			mark := in.owners.Sure(chat)
			if err == nil && mark != "" && in.cfg.Sharing.On {
				release, err = in.overtaken(ctx, chat, release)
			}
			if err != nil {
				return fmt.Errorf("accept messages in %s: %w", chat, err)
			}
			defer release()
			for _, m := range byChat[chat] {
				if err := in.admit(ctx, in.jobOf(m, mark)); err != nil {
					return fmt.Errorf("accept message %s in %s: %w", m.ID, chat, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// check refuses what no platform should hand over.
func (in *intake) check(m chats.Message) error {
	if in.platforms[m.Chat.Platform] == nil {
		return fmt.Errorf("%w: no platform is named %q", jobs.ErrInvalid, m.Chat.Platform)
	}
	for _, id := range []string{m.Chat.ID, m.ID, m.User} {
		if id == "" || strings.ContainsAny(id, "/: \n") {
			return fmt.Errorf("%w: %s message %q of user %q in chat %q: bad id", jobs.ErrInvalid, m.Chat.Platform, m.ID, m.User, m.Chat.ID)
		}
	}
	return nil
}

// admit takes a message. Whatever is special about it leaves the path here.
func (in *intake) admit(ctx context.Context, j *jobs.Job) error {
	m := j.Message
	switch {
	case m.Kind == chats.KindHeard:
		return in.observer.Keep(ctx, m)
	case m.Kind == chats.KindOpinion:
		return in.judged(ctx, m)
	case j.Offer:
		return in.offer(ctx, j)
	case m.Kind == chats.KindEdit:
		return in.amend(ctx, j)
	}
	lane, sender := in.lanes.TakeRoom(j, in.cfg.Limits.MaxWaitingMember)
	busy := lane.Waiting >= in.cfg.Limits.MaxWaiting
	switch {
	case m.Kind == chats.KindPress:
		if !in.desk.Takes(m, busy) {
			return in.jobs.Withdraw(ctx, j)
		}
	case in.people.Role(m.By()) == toolgroups.RoleStranger:
		return in.hear(ctx, j)
	case busy || sender.Waiting >= in.cfg.Limits.MaxWaitingMember:
		if refused, err := in.refuse(ctx, j, lane, sender); refused || err != nil {
			return err
		}
	}
	if !m.Time.IsZero() && j.Accepted.Sub(m.Time) > staleAfter {
		j.Waited = in.waited(m)
	}
	return in.enqueue(ctx, j)
}

// waited returns how long a message was on its way, if its answer has to say so: longer
// than staleAfter, and nobody in its chat was told within that time. Nothing else is
// different for such a message. Messages and commands that waited are carried out in the
// order in which they were sent, so a /stop or /clear ends what came before it and
// nothing else.
func (in *intake) waited(m chats.Message) time.Duration {
	if m.Time.IsZero() || m.Kind != chats.KindText {
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

func (in *intake) hear(ctx context.Context, j *jobs.Job) error {
	in.lanes.GiveRoom(j)
	heard, err := in.people.Hear(ctx, j)
	if err != nil {
		return err
	}
	if !heard {
		return in.jobs.Withdraw(ctx, j)
	}
	if err = in.enqueue(ctx, j); err != nil {
		in.people.Forget(ctx, j.Message)
	}
	return err
}

// enqueue writes a job, unless its event is known, and has somebody work on it.
func (in *intake) enqueue(ctx context.Context, j *jobs.Job) error {
	first := j.Rev == storage.Absent
	added, err := in.jobs.Add(ctx, j)
	if errors.Is(err, storage.ErrInvalid) {
		added, err = in.shorten(ctx, j, err)
	}
	if !added || j.Offer {
		in.lanes.GiveRoom(j)
	}
	switch {
	case errors.Is(err, storage.ErrInvalid):
		in.log.Error("message dropped", "err", err)
		return in.jobs.Withdraw(ctx, j)
	case err != nil:
		return err
	case !added:
		return in.known(ctx, j)
	}
	if first {
		in.cfg.Hooks.Measure(j.Message.Chat.Platform, jobs.MeasuredAccepted)
	}
	if j.Waited > 0 {
		in.late.Put(j.Message.Chat, in.cfg.Now(), cache.Forever)
	}
	if j.Offer {
		return nil
	}
	if in.cfg.Hooks.Trace != nil {
		j.Since = in.cfg.Now()
	}
	if in.kinds.of(j).stops {
		in.stops.now(j)
	}
	if held := in.lanes.Queue(j); held != nil {
		in.carrier.hint(ctx, held, j)
	}
	return nil
}

// shorten writes a job whose message is too large: giving it again would not help, so it is
// answered without what it says.
func (in *intake) shorten(ctx context.Context, j *jobs.Job, err error) (bool, error) {
	in.log.Error("message is too large", "job", j.Key(), "err", err)
	j.Message.Text, j.Message.Files, j.Message.Skipped, j.Message.Quoted = "", nil, nil, nil
	j.Notice = "This message is too long for me. Please send it in smaller pieces, or as a file."
	return in.jobs.Add(ctx, j)
}

// known looks after a message that the platform has given again. Where this process answers,
// one that another has written meanwhile is taken at once, before what comes next in its chat
// and behind what was written before it.
func (in *intake) known(ctx context.Context, j *jobs.Job) error {
	if in.lanes.Has(j.Key()) {
		return nil
	}
	known, err := in.jobs.Load(ctx, j.Key())
	switch {
	case known == nil || j.Offer:
	case in.cfg.Sharing.On && in.owners.Owns(known.Message.Chat):
		_, err = in.overtaken(ctx, known.Origin(), func() {})
	case known.Holder == in.jobs.Mark(known.Message.Chat):
		in.begin(known)
	}
	if d, is := errors.AsType[*jobs.DamagedError](err); is {
		if _, err := in.keeper.mend(ctx, d, chats.Chat{}, ""); err != nil {
			return err
		}
		return in.enqueue(ctx, j)
	}
	return err
}

// put has a job worked on that nobody sees come: a new one, which is on disk then, or the
// known one under its key.
func (in *intake) put(ctx context.Context, j *jobs.Job) error {
	added, err := in.jobs.Add(ctx, j)
	if err == nil && !added {
		return in.adopt(ctx, j.Key())
	}
	if added && !j.Offer {
		if in.cfg.Hooks.Trace != nil {
			j.Since = in.cfg.Now()
		}
		in.lanes.Queue(j)
	}
	return err
}

// adopt queues a known job that nobody works on: its first write reported an error and
// had happened all the same.
func (in *intake) adopt(ctx context.Context, key string) error {
	if in.lanes.Has(key) {
		return nil
	}
	j, err := in.jobs.Load(ctx, key)
	if j != nil && j.Holder == in.jobs.Mark(j.Message.Chat) {
		in.begin(j)
	}
	return err
}

// begin queues a job of this process that nobody works on, unless another one answers now.
func (in *intake) begin(j *jobs.Job) {
	if j.Offer {
		return
	}
	if in.kinds.of(j).stops {
		in.stops.now(j)
	}
	in.sender.Resume(j)
	in.lanes.Queue(j)
}

// job makes the job of a message: this process's, or an offer where another one answers.
func (in *intake) job(m chats.Message) *jobs.Job { return in.jobOf(m, in.owners.Sure(m.Chat)) }

func (in *intake) jobOf(m chats.Message, mark string) *jobs.Job {
	if people.ClaimPattern.MatchString(strings.TrimSpace(m.Text)) {
		m = people.AsClaim(m) // a code is nothing for the model
	}
	if len(m.Quoted) > 0 {
		m.Quoted = slices.Clone(m.Quoted)
		for i := range m.Quoted {
			if q := &m.Quoted[i]; q.Own { // it may be an answer with a [jobs.Veil]
				q.Text = in.cfg.Redact(q.Text)
			}
		}
	}
	j := &jobs.Job{Message: m, State: jobs.StateOpen, Accepted: in.cfg.Now(), Holder: mark, Offer: mark == "", Fresh: true}
	if in.cfg.Hooks.Trace != nil {
		in.cfg.Hooks.Trace.Begin(j)
	}
	return j
}

// amend gives a message that still waits its new text; see reconsider for the others. A job
// that waits is read without a lock, so it is replaced, never changed; the lane goes on while
// the disk is written.
func (in *intake) amend(ctx context.Context, amendment *jobs.Job) error {
	edit := amendment.Message
	j, edited := in.lanes.Waiting(edit.Chat, func(j *jobs.Job) bool {
		// What has begun and waits for its turn again (after an approval) is on record as
		// it was.
		return j.Message.Kind == chats.KindText && j.From == "" && j.Message.ID == edit.ID && j.Message.User == edit.User && j.Fresh && len(j.Approvals) == 0
	})
	waits, err := j != nil, error(nil)
	if waits {
		waits, err = in.replace(ctx, j, &edited, edit)
	}
	if !waits && err == nil {
		err = in.reconsider(ctx, amendment)
	}
	if err != nil {
		return err
	}
	return in.jobs.Withdraw(ctx, amendment)
}

// replace puts an edited copy of a message that waits in its place. It reports whether the
// message waited still.
func (in *intake) replace(ctx context.Context, j, edited *jobs.Job, edit chats.Message) (bool, error) {
	text := edit.Text
	edited.Message.Text = text
	if len(edit.Quoted) > 0 {
		edited.Message.Quoted = edit.Quoted // it links to something else now
	}
	err := in.jobs.Put(ctx, edited)
	if errors.Is(err, storage.ErrConflict) {
		// Its turn has begun, or an earlier try to write this reported an error.
		known, err := in.jobs.Load(ctx, edited.Key())
		if jobs.IsDamaged(err) {
			return true, nil // its own turn meets that
		}
		switch {
		case known == nil || err != nil:
			return false, err
		case known.Holder != edited.Holder:
			return false, jobs.ErrLost // the platform gives it to who has it
		case known.Message.Text != text:
			return false, nil
		}
		edited.Rev = known.Rev
	} else if errors.Is(err, storage.ErrInvalid) {
		in.log.Error("edit dropped", "job", edited.Key(), "err", err)
		return true, nil
	} else if err != nil {
		return false, err
	}
	in.lanes.Replace(j.Message.Chat, j, edited)
	return true, nil
}

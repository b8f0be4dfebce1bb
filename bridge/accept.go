package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/lanes"
	"oneclaw/bridge/people"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// acceptWrites bounds the jobs of one Accept that are written at the same time; the
// engine joins them into few disk writes.
const acceptWrites = 128

// Accept implements [Inbox]. It waits until Run has found what a former run left open.
func (b *Bridge) Accept(ctx context.Context, messages ...chats.Message) error {
	select {
	case <-b.resumed:
	case <-ctx.Done():
		return fmt.Errorf("accept: %w", context.Cause(ctx))
	}
	var places []chats.Chat
	byChat := make(map[chats.Chat][]chats.Message)
	for _, m := range messages {
		if err := b.check(m); err != nil {
			// Giving it again would not help, and it must not block the ones behind it.
			b.log.Error("message dropped", "err", err)
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
		group.Go(func() error { return b.acceptChat(ctx, chat, byChat[chat]) })
	}
	return group.Wait()
}

// check refuses what no platform should hand over.
func (b *Bridge) check(m chats.Message) error {
	if b.platforms[m.Chat.Platform] == nil {
		return fmt.Errorf("%w: no platform is named %q", jobs.ErrInvalid, m.Chat.Platform)
	}
	for _, id := range []string{m.Chat.ID, m.ID, m.User} {
		if id == "" || strings.ContainsAny(id, "/: \n") {
			return fmt.Errorf("%w: %s message %q of user %q in chat %q: bad id", jobs.ErrInvalid, m.Chat.Platform, m.ID, m.User, m.Chat.ID)
		}
	}
	return nil
}

// acceptChat takes messages of one chat, in order.
func (b *Bridge) acceptChat(ctx context.Context, chat chats.Chat, messages []chats.Message) error {
	l := b.lanes.Of(chat)
	defer b.lanes.Leave(l)
	l.Accepting.Lock()
	defer l.Accepting.Unlock()
	for _, m := range messages {
		if err := b.acceptOne(ctx, l, m); err != nil {
			return fmt.Errorf("accept message %s in %s: %w", m.ID, chat, err)
		}
	}
	return nil
}

func (b *Bridge) acceptOne(ctx context.Context, l *lanes.Lane, m chats.Message) error {
	if m.Kind == chats.KindEdit {
		return b.amend(ctx, l, m)
	}
	m = people.AsClaim(m) // a code is nothing for the model
	j := &jobs.Job{Message: m, Seq: b.nextSeq(), State: jobs.StateOpen, Accepted: b.cfg.Now()}
	if b.kind(j).press {
		beside := b.laneOf(j)
		defer b.lanes.Leave(beside)
		if !b.desk.Takes(m, beside.Deciding() >= b.cfg.Limits.MaxWaiting) {
			return nil
		}
		return b.enqueue(ctx, j)
	}
	if b.role(m) == toolgroups.RoleStranger {
		heard, err := b.people.Hear(ctx, j)
		if !heard || err != nil {
			return err
		}
		if err = b.enqueue(ctx, j); err != nil {
			b.people.Forget(m)
		}
		return err
	}
	if refused, err := b.refuses(ctx, l, j); refused || err != nil {
		return err
	}
	j.Waited = b.waited(m)
	err := b.enqueue(ctx, j)
	if err == nil {
		b.hint(ctx, l, j)
	}
	return err
}

// enqueue writes a job, unless its event is known, and has somebody work on it.
func (b *Bridge) enqueue(ctx context.Context, j *jobs.Job) error {
	added, err := b.jobs.Add(ctx, j)
	if errors.Is(err, storage.ErrInvalid) {
		// Giving it again would not help: it is answered without what it says.
		b.log.Error("message is too large", "job", j.Key(), "err", err)
		j.Message.Text, j.Message.Files, j.Message.Skipped = "", nil, nil
		j.Notice = "This message is too long for me. Please send it in smaller pieces, or as a file."
		added, err = b.jobs.Add(ctx, j)
	}
	if !added {
		b.lanes.GiveRoom(j)
	}
	if errors.Is(err, storage.ErrInvalid) {
		b.log.Error("message dropped", "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	if !added {
		err := b.adopt(ctx, j.Key())
		if d, is := errors.AsType[*jobs.DamagedError](err); is {
			// The platform has given the message again.
			if _, err := b.mend(ctx, d, chats.Chat{}, ""); err != nil {
				return err
			}
			return b.enqueue(ctx, j)
		}
		return err
	}
	b.cfg.Measure.Count(j.Message.Chat.Platform, jobs.MeasuredAccepted)
	if j.Waited > 0 {
		b.tell(j.Message.Chat)
	}
	b.stopNow(j)
	b.lanes.Queue(j)
	return nil
}

// adopt queues a known job that nobody works on: its first write reported an error and
// had happened all the same.
func (b *Bridge) adopt(ctx context.Context, key string) error {
	if b.lanes.Has(key) {
		return nil
	}
	j, err := b.jobs.Load(ctx, key)
	if j != nil {
		b.stopNow(j)
		b.lanes.Queue(j)
	}
	return err
}

// nextSeq grows across restarts, because it follows the clock where it can.
func (b *Bridge) nextSeq() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lastSeq = max(b.lastSeq+1, b.cfg.Now().UnixNano())
	return b.lastSeq
}

// amend gives a message that still waits its new text. An edit of one that is being
// answered or was answered changes nothing. A job that waits is read without a lock, so
// it is replaced, never changed; the lane goes on while the disk is written.
func (b *Bridge) amend(ctx context.Context, l *lanes.Lane, edit chats.Message) error {
	j, edited := l.Waiting(func(j *jobs.Job) bool {
		// What has begun and waits for its turn again (after an approval) is on record as
		// it was.
		return j.Message.Kind == chats.KindText && j.From == "" && j.Message.ID == edit.ID && j.Message.User == edit.User && !j.Begun && len(j.Approvals) == 0
	})
	if j == nil {
		return nil
	}
	edited.Message.Text = edit.Text
	err := b.jobs.Put(ctx, &edited, edited.Rev)
	if errors.Is(err, storage.ErrConflict) {
		// Its turn has begun, or an earlier try to write this reported an error.
		known, err := b.jobs.Load(ctx, edited.Key())
		if jobs.IsDamaged(err) {
			return nil // its own turn meets that
		}
		if known == nil || err != nil || known.Message.Text != edit.Text {
			return err
		}
		edited.Rev = known.Rev
	} else if errors.Is(err, storage.ErrInvalid) {
		b.log.Error("edit dropped", "job", edited.Key(), "err", err)
		return nil
	} else if err != nil {
		return err
	}
	l.Replace(j, &edited)
	return nil
}

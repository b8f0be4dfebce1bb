package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/sessions"
	"oneclaw/storage"
)

// movedPrefix is where the store keeps under which id a chat goes on.
const movedPrefix = "moved/"

// Moved implements [Inbox]: the session of a chat goes on under its new id. The move is on
// disk when it returns, and is carried out when no turn runs there.
func (b *Bridge) Moved(ctx context.Context, from, to chats.Chat) error {
	if from.Platform != to.Platform || from.ID == to.ID {
		return errors.New("bridge: moved: want two chats of one platform")
	}
	select {
	case <-b.resumed:
	case <-ctx.Done():
		return fmt.Errorf("moved: %w", context.Cause(ctx))
	}
	j := &jobs.Job{
		Message: chats.Message{Chat: to.Whole(), ID: jobs.Hash("moved", from.ID), Kind: jobs.KindMove, User: "bot", Text: from.ID, Time: b.cfg.Now()},
		Seq:     b.nextSeq(), State: jobs.StateOpen, Accepted: b.cfg.Now(),
	}
	added, err := b.jobs.Add(ctx, j)
	if err != nil {
		return fmt.Errorf("move %s to %s: %w", from, to, err)
	}
	if added {
		b.lanes.Bar(endsOf(j))
		b.lanes.Queue(j)
		return nil
	}
	if b.lanes.Has(j.Key()) {
		return nil
	}
	known, err := b.jobs.Load(ctx, j.Key())
	if known == nil || err != nil {
		return err
	}
	b.lanes.Bar(endsOf(known))
	b.lanes.Queue(known)
	return nil
}

// ends are the chats that a move leads from and to.
func endsOf(j *jobs.Job) (from, to chats.Chat) {
	to = j.Message.Chat
	return chats.Chat{Platform: to.Platform, ID: j.Message.Text}, to
}

// attemptMove carries a move out. Each step bears repeating.
func (b *Bridge) attemptMove(ctx context.Context, j *jobs.Job) error {
	from, to := endsOf(j)
	if err := b.lanes.Quiet(ctx, from, to); err != nil {
		return err
	}
	if err := b.move(ctx, from, to); err != nil {
		return err
	}
	if err := b.desk.Move(ctx, from, to); err != nil {
		return err
	}
	data, err := json.Marshal(to)
	if err != nil {
		return fmt.Errorf("encode chat: %w", err)
	}
	// From here on a start finds the jobs of the old chat in the new one.
	if _, err := b.store.Put(ctx, movedPrefix+from.String(), data, storage.Any); err != nil {
		return fmt.Errorf("record that %s is %s now: %w", from, to, err)
	}
	b.lanes.MoveOn(from, to)
	if err := b.settle(j, jobs.StateDone); err != nil {
		return err
	}
	b.lanes.Unbar(from, to)
	b.log.Info("chat moved", "from", from.String(), "to", to.String())
	return nil
}

// redirect sends what is being delivered to another chat from now on, if its own moves.
func (b *Bridge) redirect(j *jobs.Job, to *chats.Address) {
	chat := j.Message.Chat.Whole()
	if home := b.lanes.Forward(chat); home != chat && j.MovedTo != home.ID {
		j.MovedTo = home.ID
		*to = j.Address()
	}
}

// loadMoves reads which chats have moved.
func (b *Bridge) loadMoves(ctx context.Context) error {
	over := make(map[chats.Chat]chats.Chat)
	for entry, err := range b.store.List(ctx, storage.Range{Prefix: movedPrefix}) {
		if err != nil {
			return fmt.Errorf("list moved chats: %w", err)
		}
		from, err := chats.ParseChat(strings.TrimPrefix(entry.Key, movedPrefix))
		var to chats.Chat
		if err == nil {
			err = jobs.Decode(entry, &to)
		}
		if err != nil {
			b.log.Error("the move of a chat can not be read and is left alone", "key", entry.Key, "err", err)
			continue
		}
		over[from] = to
	}
	b.lanes.Restore(over)
	return nil
}

// move lets the conversation of a chat that got a new id go on there: the new chat's
// session points to the old log. The receipts stay where they are.
func (b *Bridge) move(ctx context.Context, from, to chats.Chat) error {
	if b.cfg.Hooks.Moved != nil {
		if err := b.cfg.Hooks.Moved(ctx, from, to); err != nil {
			return err
		}
	}
	// The former conversations are searched under the new id.
	former, err := sessions.Conversations(ctx, b.store, chats.Message{Chat: from}.Owner())
	if err != nil {
		return err
	}
	for _, c := range former {
		c.Owner = chats.Message{Chat: to}.Owner()
		if err := c.Enter(ctx, b.store); err != nil {
			return err
		}
	}
	old, err := sessions.Current(ctx, b.store, from)
	if err != nil {
		return err
	}
	session, err := sessions.Current(ctx, b.store, to)
	if err != nil {
		return err
	}
	before := session
	// Where somebody has written already, that conversation goes on.
	if session.Of.ID == "" && session.Generation == 1 && !b.begunLog(ctx, session.Log()) && b.begunLog(ctx, old.Log()) {
		session.Of, session.Generation = old.Of, old.Generation
		if session.Of.ID == "" {
			session.Of = from
		}
	}
	session.ClearedAt, session.StoppedAt = max(session.ClearedAt, old.ClearedAt), max(session.StoppedAt, old.StoppedAt)
	if session == before {
		return nil
	}
	_, err = session.Save(ctx, b.store)
	return err
}

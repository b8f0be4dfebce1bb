package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/sessions"
	"oneclaw/storage"
)

// movedPrefix is where the store keeps under which id a chat goes on.
const movedPrefix = "moved/"

func unthreaded(chat chats.Chat) chats.Chat { return chats.Chat{Platform: chat.Platform, ID: chat.ID} }

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
		Message: chats.Message{Chat: unthreaded(to), ID: jobs.Hash("moved", from.ID), Kind: jobs.KindMove, User: "bot", Text: from.ID, Time: b.cfg.Now()},
		Seq:     b.nextSeq(), State: jobs.StateOpen, Accepted: b.cfg.Now(),
	}
	added, err := b.jobs.Add(ctx, j)
	if err != nil {
		return fmt.Errorf("move %s to %s: %w", from, to, err)
	}
	if added {
		b.bar(j)
		b.queue(j)
		return nil
	}
	if _, working := b.open.Load(j.Key()); working {
		return nil
	}
	known, err := b.jobs.Load(ctx, j.Key())
	if known == nil || err != nil {
		return err
	}
	b.bar(known)
	b.queue(known)
	return nil
}

// ends are the chats that a move leads from and to.
func endsOf(j *jobs.Job) (from, to chats.Chat) {
	to = j.Message.Chat
	return chats.Chat{Platform: to.Platform, ID: j.Message.Text}, to
}

// bar lets no message be answered at either end of a move.
func (b *Bridge) bar(j *jobs.Job) {
	from, to := endsOf(j)
	b.mu.Lock()
	b.moving[from], b.moving[to] = to, to
	b.mu.Unlock()
	for _, l := range append(b.lanesOf(from), b.lanesOf(to)...) {
		l.mu.Lock()
		l.moving = true
		l.mu.Unlock()
	}
}

// unbar lets messages be answered again.
func (b *Bridge) unbar(from, to chats.Chat) {
	b.mu.Lock()
	delete(b.moving, from)
	delete(b.moving, to)
	var lanes []*lane
	for chat, l := range b.byChat {
		if at := unthreaded(chat); at == to || at == from {
			l.users++
			lanes = append(lanes, l)
		}
	}
	b.mu.Unlock()
	for _, l := range lanes {
		l.mu.Lock()
		l.moving = false
		l.mu.Unlock()
		b.wake(l)
		b.leave(l)
	}
}

// lanesOf are the lanes of a chat, with those of its threads, tasks and cards.
func (b *Bridge) lanesOf(chat chats.Chat) []*lane {
	b.mu.Lock()
	defer b.mu.Unlock()
	var lanes []*lane
	for at, l := range b.byChat {
		if unthreaded(at) == chat {
			lanes = append(lanes, l)
		}
	}
	return lanes
}

// hush tells a move that waits that something ended in a lane.
func (b *Bridge) hush(l *lane) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, moving := b.moving[unthreaded(l.chat)]; moving {
		close(b.hushed)
		b.hushed = make(chan struct{})
	}
}

// quiet waits until no message is being answered in some chats.
func (b *Bridge) quiet(ctx context.Context, chats ...chats.Chat) error {
	for {
		b.mu.Lock()
		hushed := b.hushed
		b.mu.Unlock()
		busy := false
		for _, chat := range chats {
			for _, l := range b.lanesOf(chat) {
				l.mu.Lock()
				busy = busy || l.messages.running != nil
				l.mu.Unlock()
			}
		}
		if !busy {
			return nil
		}
		select {
		case <-hushed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// attemptMove carries a move out. Each step bears repeating.
func (b *Bridge) attemptMove(ctx context.Context, j *jobs.Job) error {
	from, to := endsOf(j)
	if err := b.quiet(ctx, from, to); err != nil {
		return err
	}
	if err := b.move(ctx, from, to); err != nil {
		return err
	}
	if err := b.moveCards(ctx, from, to); err != nil {
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
	b.mu.Lock()
	b.moves[from] = to
	b.mu.Unlock()
	b.takeAlong(from)
	if err := b.settle(j, jobs.StateDone); err != nil {
		return err
	}
	b.unbar(from, to)
	b.log.Info("chat moved", "from", from.String(), "to", to.String())
	return nil
}

// takeAlong puts what waits in a chat that has moved into the lanes of the new one. A job
// that waits for an approval looks for it there.
func (b *Bridge) takeAlong(from chats.Chat) {
	for _, l := range b.lanesOf(from) {
		l.mu.Lock()
		l.gone = true
		jobs := append(l.commands.waiting, l.messages.waiting...)
		l.commands.waiting, l.messages.waiting = nil, nil
		held := l.messages.held
		if held != nil {
			held.job.Suspended = false
			jobs = append(jobs, held.job)
			l.messages.held = nil
		}
		l.mu.Unlock()
		for _, j := range jobs {
			along := *j // others may look at it still
			b.line(&along)
		}
		if held != nil {
			b.leave(l)
		}
	}
}

// homeOf is the chat as which a chat goes on.
func (b *Bridge) homeOf(chat chats.Chat) chats.Chat {
	for range len(b.moves) {
		next, moved := b.moves[unthreaded(chat)]
		if !moved {
			break
		}
		chat.ID = next.ID
	}
	return chat
}

// relocate gives a job of a chat that has moved to the new one.
func (b *Bridge) relocate(j *jobs.Job) {
	b.mu.Lock()
	home := b.homeOf(j.Message.Chat)
	b.mu.Unlock()
	if home == j.Message.Chat || j.Message.Kind == jobs.KindMove {
		return
	}
	if j.From == "" {
		j.From = j.Message.Chat.ID
	}
	// Its place in the queue was another: what a command has ended is asked for again.
	j.Message.Chat, j.Found = home, true
}

// goesOn is the chat as which one goes on, where it moves also before that is over.
func (b *Bridge) goesOn(chat chats.Chat) chats.Chat {
	b.mu.Lock()
	defer b.mu.Unlock()
	home := b.homeOf(chat)
	if next, moving := b.moving[unthreaded(home)]; moving {
		home.ID = next.ID
	}
	return home
}

// loadMoves reads which chats have moved.
func (b *Bridge) loadMoves(ctx context.Context) error {
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
		b.moves[from] = to
	}
	return nil
}

// move lets the conversation of a chat that got a new id go on there: the new chat's
// session points to the old log. The receipts stay where they are.
func (b *Bridge) move(ctx context.Context, from, to chats.Chat) error {
	if b.cfg.Moved != nil {
		if err := b.cfg.Moved(ctx, from, to); err != nil {
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

// moveCards shows the open cards of a chat that moves in the new one. Those that were not
// sent yet are sent there anyway.
func (b *Bridge) moveCards(ctx context.Context, from, to chats.Chat) error {
	var there []*cards.Kept
	err := b.cards.Each(ctx, func(kept *cards.Kept) error {
		if kept.Open() && len(kept.IDs) > 0 && unthreaded(kept.Chat) == from {
			there = append(there, kept)
		}
		return nil
	}, func(error) error { return nil })
	if err != nil {
		return err
	}
	for _, kept := range there {
		chat := kept.Chat
		chat.ID = to.ID
		kept.Chat = chat
		j := b.cardJob(jobs.KindCard, kept, jobs.Hash("moved", kept.Token, to.ID))
		added, err := b.jobs.Add(ctx, j)
		if err != nil {
			return err
		}
		_, err = b.cards.Update(ctx, kept.Token, func(kept *cards.Kept) {
			if unthreaded(kept.Chat) == from {
				kept.Chat, kept.IDs = chat, nil
			}
		})
		if err != nil {
			return err
		}
		if added {
			b.queue(j)
		} else if err := b.adopt(ctx, j.Key()); err != nil {
			return err
		}
	}
	return nil
}

package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"oneclaw/storage"
)

// kindMove is the move of a chat to a new id. Its job waits until no turn runs at either
// end; no message is answered there before it is done, and what waits goes along.
const kindMove Kind = "move"

// movedPrefix is where the store keeps under which id a chat goes on.
const movedPrefix = "moved/"

func unthreaded(chat Chat) Chat { return Chat{Platform: chat.Platform, ID: chat.ID} }

// Moved implements [Inbox]: the session of a chat goes on under its new id. The move is on
// disk when it returns, and is carried out when no turn runs there.
func (b *Bridge) Moved(ctx context.Context, from, to Chat) error {
	if from.Platform != to.Platform || from.ID == to.ID {
		return errors.New("bridge: moved: want two chats of one platform")
	}
	select {
	case <-b.resumed:
	case <-ctx.Done():
		return fmt.Errorf("moved: %w", context.Cause(ctx))
	}
	j := &Job{
		Message: Message{Chat: unthreaded(to), ID: hashed("moved", from.ID), Kind: kindMove, User: "bot", Text: from.ID, Time: b.cfg.Now()},
		Seq:     b.nextSeq(), State: StateOpen, Accepted: b.cfg.Now(),
	}
	added, err := b.jobs.add(ctx, j)
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
	known, err := b.jobs.load(ctx, j.Key())
	if known == nil || err != nil {
		return err
	}
	b.bar(known)
	b.queue(known)
	return nil
}

// ends are the chats that a move leads from and to.
func (j *Job) ends() (from, to Chat) {
	to = j.Message.Chat
	return Chat{Platform: to.Platform, ID: j.Message.Text}, to
}

// bar lets no message be answered at either end of a move.
func (b *Bridge) bar(j *Job) {
	from, to := j.ends()
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
func (b *Bridge) unbar(from, to Chat) {
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
func (b *Bridge) lanesOf(chat Chat) []*lane {
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
func (b *Bridge) quiet(ctx context.Context, chats ...Chat) error {
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
func (b *Bridge) attemptMove(ctx context.Context, j *Job) error {
	from, to := j.ends()
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
	if err := b.settle(j, StateDone); err != nil {
		return err
	}
	b.unbar(from, to)
	b.log.Info("chat moved", "from", from.String(), "to", to.String())
	return nil
}

// takeAlong puts what waits in a chat that has moved into the lanes of the new one. A job
// that waits for an approval looks for it there.
func (b *Bridge) takeAlong(from Chat) {
	for _, l := range b.lanesOf(from) {
		l.mu.Lock()
		l.gone = true
		jobs := append(l.commands.waiting, l.messages.waiting...)
		l.commands.waiting, l.messages.waiting = nil, nil
		held := l.messages.held
		if held != nil {
			held.job.suspended = false
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
func (b *Bridge) homeOf(chat Chat) Chat {
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
func (b *Bridge) relocate(j *Job) {
	b.mu.Lock()
	home := b.homeOf(j.Message.Chat)
	b.mu.Unlock()
	if home == j.Message.Chat || j.Message.Kind == kindMove {
		return
	}
	if j.From == "" {
		j.From = j.Message.Chat.ID
	}
	// Its place in the queue was another: what a command has ended is asked for again.
	j.Message.Chat, j.found = home, true
}

// redirect sends what is being delivered to another chat from now on, if its own moves.
func (b *Bridge) redirect(j *Job, to *Address) {
	b.mu.Lock()
	defer b.mu.Unlock()
	chat := unthreaded(j.Message.Chat)
	home := b.homeOf(chat)
	if next, moving := b.moving[home]; moving {
		home = next
	}
	if home != chat && j.MovedTo != home.ID {
		j.MovedTo = home.ID
		*to = j.address()
	}
}

// loadMoves reads which chats have moved.
func (b *Bridge) loadMoves(ctx context.Context) error {
	for entry, err := range b.store.List(ctx, storage.Range{Prefix: movedPrefix}) {
		if err != nil {
			return fmt.Errorf("list moved chats: %w", err)
		}
		from, err := ParseChat(strings.TrimPrefix(entry.Key, movedPrefix))
		var to Chat
		if err == nil {
			err = decode(entry, &to)
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
func (b *Bridge) move(ctx context.Context, from, to Chat) error {
	if b.cfg.Moved != nil {
		if err := b.cfg.Moved(ctx, from, to); err != nil {
			return err
		}
	}
	// The former conversations are searched under the new id.
	former, err := Conversations(ctx, b.store, Message{Chat: from}.Owner())
	if err != nil {
		return err
	}
	for _, c := range former {
		c.Owner = Message{Chat: to}.Owner()
		if err := c.enter(ctx, b.store); err != nil {
			return err
		}
	}
	old, err := CurrentSession(ctx, b.store, from)
	if err != nil {
		return err
	}
	session, err := CurrentSession(ctx, b.store, to)
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
	_, err = session.save(ctx, b.store)
	return err
}

// moveCards shows the open cards of a chat that moves in the new one. Those that were not
// sent yet are sent there anyway.
func (b *Bridge) moveCards(ctx context.Context, from, to Chat) error {
	var there []*keptCard
	err := b.cards.each(ctx, func(kept *keptCard) error {
		if kept.open() && len(kept.IDs) > 0 && unthreaded(kept.Chat) == from {
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
		j := b.cardJob(kindCard, kept, hashed("moved", kept.Token, to.ID))
		added, err := b.jobs.add(ctx, j)
		if err != nil {
			return err
		}
		_, err = b.cards.update(ctx, kept.Token, func(kept *keptCard) {
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

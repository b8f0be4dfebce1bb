package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/privacy"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// mover carries out the moves of chats.
type mover struct {
	failures
	store     storage.Store
	jobs      queue.Store
	queue     *queue.Queue
	leases    *queue.Leases
	inserter  *inserter
	claimer   *claimer
	completer *completer
	observer  *privacy.Observer
	cards     *interact.Cards
	moved     func(ctx context.Context, from, to chats.Chat) error // see [Hooks]
	now       func() time.Time
	log       *slog.Logger
}

// accept lets the session of a chat go on under its new id. The move is on
// disk when it returns, and is carried out when no turn runs there.
func (m *mover) accept(ctx context.Context, from, to chats.Chat) error {
	if from.Platform != to.Platform || from.ID == to.ID {
		return errors.New("bridge: moved: want two chats of one platform")
	}
	j := m.inserter.New(chats.Message{Chat: to.Whole(), ID: queue.Hash("moved", from.ID), Kind: kindMove, User: "bot", Text: from.ID, Time: m.now()})
	m.queue.Block(endsOf(j))
	err := m.inserter.insert(ctx, j)
	if !m.queue.Has(j.Key()) { // it was carried out before, or is not on disk
		m.queue.Unblock(endsOf(j))
	}
	return err
}

// endsOf are the chats that a move leads from and to.
func endsOf(j *queue.Run) (from, to chats.Chat) {
	to = j.Message.Chat
	return chats.Chat{Platform: to.Platform, ID: j.Message.Text}, to
}

func (m *mover) block(j *queue.Run) { m.queue.Block(endsOf(j)) }

func (m *mover) unblock(j *queue.Run) { m.queue.Unblock(endsOf(j)) }

// perform carries a move out. Each step bears repeating.
func (m *mover) perform(ctx context.Context, j *queue.Run) error {
	from, to := endsOf(j)
	if err := m.queue.AwaitIdle(ctx, from, to); err != nil {
		return err
	}
	if err := m.move(ctx, from, to); err != nil {
		return err
	}
	// A start finds the jobs of the old chat in the new one from here on.
	m.queue.MoveChat(from, to)
	if m.leases.Shared() { // others may have jobs of the old chat, which come before those of the new one
		if err := m.claimer.takeAll(ctx, from); err != nil {
			return err
		}
	}
	if err := m.completer.complete(j, receipts.Done); err != nil {
		return err
	}
	m.log.Info("chat moved", "from", from.String(), "to", to.String())
	return nil
}

func (m *mover) load(ctx context.Context) error {
	for entry, err := range m.store.List(ctx, storage.Range{Prefix: conversation.MovedPrefix}) {
		if err != nil {
			return fmt.Errorf("list moved chats: %w", err)
		}
		m.learn(entry)
	}
	return nil
}

// learn notes the move that a record tells of.
func (m *mover) learn(entry storage.Entry) {
	from, err := chats.ParseChat(strings.TrimPrefix(entry.Key, conversation.MovedPrefix))
	var to chats.Chat
	if err == nil {
		err = queue.Decode(entry, &to)
	}
	if err != nil {
		m.log.Error("the move of a chat cannot be read and is left alone", "key", entry.Key, "err", err)
		return
	}
	m.queue.RestoreMove(from, to)
}

// watch learns of the moves that other processes carry out, until ctx ends, beginning with
// what was missed. What this one still has to do in a chat that is no longer its own is left
// to who has it now. An error means that it has to be called again.
func (m *mover) watch(ctx context.Context) error {
	changes := m.store.Watch(ctx, conversation.MovedPrefix)
	if err := m.load(ctx); err != nil {
		return err
	}
	m.learned()
	for e, err := range changes {
		if err != nil {
			return fmt.Errorf("watch moved chats: %w", err)
		}
		if !e.Deleted {
			m.learn(e.Entry)
			m.learned()
		}
	}
	return nil
}

// learned follows from moves that were carried out elsewhere: they decide whose chats are.
func (m *mover) learned() {
	m.queue.DropChats(func(chat chats.Chat) bool { return m.jobs.LeaseToken(chat) == "" })
	m.claimer.lookAgain()
}

// move lets what there is of a chat that got a new id go on there, once; its conversation comes
// last. The receipts stay where they are.
func (m *mover) move(ctx context.Context, from, to chats.Chat) error {
	if _, err := m.store.Get(ctx, conversation.MovedPrefix+from.String()); err == nil {
		return nil // a former try came so far
	} else if !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("read where %s is now: %w", from, err)
	}
	if m.moved != nil {
		if err := m.moved(ctx, from, to); err != nil {
			return err
		}
	}
	if err := m.observer.Move(ctx, from, to); err != nil {
		return err
	}
	// The former conversations are searched under the new id.
	former, err := conversation.Conversations(ctx, m.store, chats.Message{Chat: from}.Owner())
	if err != nil {
		return err
	}
	for _, c := range former {
		c.Owner = chats.Message{Chat: to}.Owner()
		if err := c.Enter(ctx, m.store); err != nil {
			return err
		}
	}
	if err := m.cards.Move(ctx, from, to); err != nil {
		return err
	}
	return conversation.Move(ctx, m.store, from, to)
}

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

// mover moves chats to new ids.
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

// accept enqueues the move of a chat to its new id. When it returns, the move is on disk; it takes
// effect when no turn runs there.
func (m *mover) accept(ctx context.Context, from, to chats.Chat) error {
	if from.Platform != to.Platform || from.ID == to.ID {
		return errors.New("bridge: moved: want two chats of one platform")
	}
	j := m.inserter.New(chats.Message{Chat: to.WithoutThread(), ID: queue.Hash("moved", from.ID), Kind: kindMove, User: "bot", Text: from.ID, Time: m.now()})
	m.queue.Block(endsOf(j))
	err := m.inserter.insert(ctx, j)
	if !m.queue.Has(j.Key()) { // it was done before, or is not on disk
		m.queue.Unblock(endsOf(j))
	}
	return err
}

// endsOf returns the chats that a move leads from and to.
func endsOf(j *queue.Run) (from, to chats.Chat) {
	to = j.Message.Chat
	return chats.Chat{Platform: to.Platform, ID: j.Message.Text}, to
}

func (m *mover) block(j *queue.Run) { m.queue.Block(endsOf(j)) }

func (m *mover) unblock(j *queue.Run) { m.queue.Unblock(endsOf(j)) }

// perform moves a chat. Each step is idempotent.
func (m *mover) perform(ctx context.Context, j *queue.Run) error {
	from, to := endsOf(j)
	if err := m.queue.AwaitIdle(ctx, from, to); err != nil {
		return err
	}
	if err := m.move(ctx, from, to); err != nil {
		return err
	}
	// From here on, a restart finds the jobs of the old chat in the new one.
	m.queue.MoveChat(from, to)
	if m.leases.Shared() { // others may have earlier jobs of the old chat
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

// learn applies the move in a record.
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

// watch follows the moves of other processes, until ctx ends, beginning with what was missed. Open jobs
// of this process in a chat that it no longer owns are left to the new owner. After an error it has to
// be called again.
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

// learned updates ownership after moves of other processes: they decide who owns a chat.
func (m *mover) learned() {
	m.queue.DropChats(func(chat chats.Chat) bool { return m.jobs.LeaseToken(chat) == "" })
	m.claimer.lookAgain()
}

// move moves the state of a chat to its new id, once; the conversation comes last. The receipts stay
// under the old id.
func (m *mover) move(ctx context.Context, from, to chats.Chat) error {
	if _, err := m.store.Get(ctx, conversation.MovedPrefix+from.String()); err == nil {
		return nil // done by a former attempt
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
	// Former conversations are searched under the new id.
	former, err := conversation.Conversations(ctx, m.store, chats.Message{Chat: from}.Owner())
	if err != nil {
		return err
	}
	for _, c := range former {
		c.Owner = chats.Message{Chat: to}.Owner()
		if err := c.AddToLists(ctx, m.store); err != nil {
			return err
		}
	}
	if err := m.cards.Move(ctx, from, to); err != nil {
		return err
	}
	return conversation.Move(ctx, m.store, from, to)
}

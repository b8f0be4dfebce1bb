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
	failureReporter
	store     storage.Store
	jobs      queue.Store
	queue     *queue.Queue
	leases    *queue.LeaseHolder
	inserter  *inserter
	claimer   *claimer
	completer *completer
	observer  *privacy.Observer
	cards     *interact.Cards
	onMoved   func(ctx context.Context, from, to chats.Chat) error // see [Hooks]
	now       func() time.Time
	log       *slog.Logger
}

// enqueueMove enqueues the move of a chat to its new id. When it returns nil, the job is on disk. The
// move begins when no turn runs under either id.
func (m *mover) enqueueMove(ctx context.Context, from, to chats.Chat) error {
	if from.Platform != to.Platform || from.ID == to.ID {
		return errors.New("bridge: moved: not two chats on one platform")
	}
	j := m.inserter.New(chats.Message{Chat: to.WithoutThread(), ID: queue.Hash("moved", from.ID), Kind: kindMove, User: "bot", Text: from.ID, Time: m.now()})
	m.queue.BeginMove(moveEnds(j))
	err := m.inserter.insert(ctx, j)
	if !m.queue.Has(j.Key()) { // the move was completed before, or is not on disk
		m.queue.EndMove(moveEnds(j))
	}
	return err
}

// moveEnds returns the old and the new chat of a move.
func moveEnds(j *queue.Run) (from, to chats.Chat) {
	to = j.Message.Chat
	return chats.Chat{Platform: to.Platform, ID: j.Message.Text}, to
}

func (m *mover) block(j *queue.Run) { m.queue.BeginMove(moveEnds(j)) }

func (m *mover) unblock(j *queue.Run) { m.queue.EndMove(moveEnds(j)) }

// perform moves a chat. Each step is idempotent.
func (m *mover) perform(ctx context.Context, j *queue.Run) error {
	from, to := moveEnds(j)
	resume, err := m.pauseBackground(ctx, from, to)
	defer resume()
	if err != nil {
		return err
	}
	if err := m.queue.AwaitIdle(ctx, from, to); err != nil {
		return err
	}
	if err := m.moveState(ctx, from, to); err != nil {
		return err
	}
	// From here on, a restart finds the jobs of the old chat in the new one.
	m.queue.MoveChat(from, to)
	if m.leases.Shared() { // other processes may have accepted jobs in the old chat
		if err := m.claimer.claimAll(ctx, from); err != nil {
			return err
		}
	}
	if err := m.completer.complete(j, receipts.Done); err != nil {
		return err
	}
	m.log.Info("chat moved", "from", from.String(), "to", to.String())
	return nil
}

// pauseBackground interrupts the background tasks of some chats, which a move does not wait for. resume
// lets them continue where their conversations end.
func (m *mover) pauseBackground(ctx context.Context, some ...chats.Chat) (resume func(), err error) {
	var paused []string
	resume = func() {
		ctx, cancel := m.queue.WriteContext()
		defer cancel()
		for _, key := range paused {
			if err := m.inserter.Adopt(ctx, key); err != nil {
				m.log.Error("a background task continues only after a restart", "job", key, "err", err)
			}
		}
	}
	for _, chat := range some {
		for _, j := range m.queue.JobsIn(chat, backgroundQueue, true) {
			release, err := m.queue.Evict(ctx, j.Key())
			if err != nil {
				return resume, err
			}
			release()
			paused = append(paused, j.Key())
		}
	}
	return resume, nil
}

func (m *mover) loadMoves(ctx context.Context) error {
	for entry, err := range m.store.List(ctx, storage.Range{Prefix: conversation.MovedPrefix}) {
		if err != nil {
			return fmt.Errorf("list moved chats: %w", err)
		}
		m.applyRecord(entry)
	}
	return nil
}

// applyRecord applies the move that a record describes.
func (m *mover) applyRecord(entry storage.Entry) {
	from, err := chats.ParseChat(strings.TrimPrefix(entry.Key, conversation.MovedPrefix))
	var to chats.Chat
	if err == nil {
		err = queue.Decode(entry, &to)
	}
	if err != nil {
		m.log.Error("the record of a moved chat cannot be decoded and is skipped", "key", entry.Key, "err", err)
		return
	}
	m.queue.RestoreMove(from, to)
}

// watch applies all recorded moves, then follows the moves by other processes until ctx ends. Open jobs
// in a chat that this process no longer owns are left to the new owner. After an error, watch has to be
// called again.
func (m *mover) watch(ctx context.Context) error {
	changes := m.store.Watch(ctx, conversation.MovedPrefix)
	if err := m.loadMoves(ctx); err != nil {
		return err
	}
	m.updateOwnership()
	for e, err := range changes {
		if err != nil {
			return fmt.Errorf("watch moved chats: %w", err)
		}
		if !e.Deleted {
			m.applyRecord(e.Entry)
			m.updateOwnership()
			if from, err := chats.ParseChat(strings.TrimPrefix(e.Key, conversation.MovedPrefix)); err == nil {
				m.claimer.followJobs(from)
			}
		}
	}
	return nil
}

// updateOwnership drops and claims jobs after a move, because the new id decides who owns the chat.
func (m *mover) updateOwnership() {
	m.queue.DropChats(func(chat chats.Chat) bool { return m.jobs.LeaseToken(chat) == "" })
	m.claimer.rescan()
}

// moveState moves the state of a chat to its new id, unless that was done before. The conversation is
// moved last; the receipts stay under the old id.
func (m *mover) moveState(ctx context.Context, from, to chats.Chat) error {
	if moved, err := storage.Find(ctx, m.store, conversation.MovedPrefix+from.String()); err != nil || moved.Revision != storage.Absent {
		return err // or done by an earlier attempt
	}
	if m.onMoved != nil {
		if err := m.onMoved(ctx, from, to); err != nil {
			return err
		}
	}
	if err := m.observer.Move(ctx, from, to); err != nil {
		return err
	}
	if err := setIntroduced(ctx, m.store, to); err != nil { // a chat that moves is not new to the bot
		return err
	}
	// Earlier conversations are searched under the new id.
	former, err := conversation.Conversations(ctx, m.store, chats.Message{Chat: from}.Owner())
	if err != nil {
		return err
	}
	for _, c := range former {
		c.Owner = chats.Message{Chat: to}.Owner()
		if err := c.AddToList(ctx, m.store); err != nil {
			return err
		}
	}
	if err := m.cards.Move(ctx, from, to); err != nil {
		return err
	}
	return conversation.Move(ctx, m.store, from, to)
}

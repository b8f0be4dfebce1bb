package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
)

const damagedNotice = "I can no longer read a part of what I stored for this chat. I will continue without it."

// mender makes damaged records dead letters.
type mender struct {
	platforms   map[string]chats.Platform
	store       *trackedStore
	deadLetters queue.DeadLetters
	cards       *interact.Cards
	now         func() time.Time

	mending sync.Mutex // held while a record becomes a dead letter
}

var _ turn.Keeper = (*mender)(nil)

// Mend implements [turn.Keeper].
func (r *mender) Mend(ctx context.Context, d *queue.DamagedError, chat chats.Chat) (bool, error) {
	return r.mend(ctx, d, chat, "")
}

// Failing implements [turn.Keeper].
func (r *mender) Failing() bool { return r.store.failing.Load() }

// mend makes a damaged record a dead letter and tells its chat, if that is known. Afterwards the record
// is deleted or replaced by a substitute; a record of a log stays, and is skipped. It reports whether
// it did so now and not before.
func (r *mender) mend(ctx context.Context, d *queue.DamagedError, chat chats.Chat, more string) (bool, error) {
	r.mending.Lock()
	defer r.mending.Unlock()
	rev, still, err := r.stillThere(ctx, d)
	if !still || err != nil {
		return false, err
	}
	a := queue.DeadLetter{Key: d.Name(), Reason: "the record does not decode", Incident: queue.NewIncident(), Data: d.Data}
	if chat.ID != "" {
		a.Chat = chat.String()
	}
	if err := r.deadLetters.Add(ctx, a); err != nil {
		return false, err
	}
	if r.platforms[chat.Platform] != nil && chat.ID != "" {
		_, err := r.cards.Post(ctx, "aside/"+d.Name(), chat, interact.Card{Text: turn.WithIncident(damagedNotice+more, a.Incident)})
		if err != nil && !errors.Is(err, queue.ErrInvalid) {
			return false, err
		}
	}
	if d.Pos > 0 {
		return true, nil
	}
	if err := r.replace(ctx, d.Key, rev); err != nil {
		return true, err
	}
	r.cards.RecordLost(d.Key)
	return true, nil
}

// stillThere reports whether a damaged record is not yet a dead letter, and its revision.
func (r *mender) stillThere(ctx context.Context, d *queue.DamagedError) (storage.Revision, bool, error) {
	key := d.Key
	if d.Pos > 0 { // log records stay
		key = queue.DeadLetterKey(d.Name())
	}
	entry, err := r.store.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return storage.Absent, d.Pos > 0, nil
	}
	if err != nil {
		return storage.Absent, false, fmt.Errorf("look for %s: %w", key, err)
	}
	return entry.Revision, d.Pos == 0 && bytes.Equal(entry.Value, d.Data), nil
}

// replace removes a damaged record. A receipt is replaced by an empty one, which still stops
// duplicates; a session by an empty conversation, since it is unknown what was cleared.
func (r *mender) replace(ctx context.Context, key string, rev storage.Revision) error {
	if m, ok := queue.MessageOf(key, receipts.Prefix); ok {
		return receipts.Put(ctx, r.store, &receipts.Receipt{Message: m, State: receipts.Failed, Closed: r.now()}, rev)
	}
	if name, ok := strings.CutPrefix(key, conversation.SessionPrefix); ok {
		if chat, err := chats.ParseChat(name); err == nil {
			s := conversation.Session{Chat: chat, Generation: 1}
			for begun := true; begun; {
				if begun, err = conversation.HasBegun(ctx, r.store, s.Log()); err != nil {
					return err
				}
				if begun {
					s.Generation++
				}
			}
			_, err = queue.Write(ctx, r.store, key, s, rev)
			return err
		}
	}
	if err := r.store.Delete(ctx, key, rev); err != nil {
		return fmt.Errorf("remove %s: %w", key, err)
	}
	return nil
}

// mendQuietly makes a damaged record that no caller waits for a dead letter.
func (r *mender) mendQuietly(ctx context.Context, d *queue.DamagedError) error {
	_, err := r.mend(ctx, d, chats.Chat{}, "")
	return err
}

// mendJob makes an open job that does not decode a dead letter. The user is told about their message.
func (r *mender) mendJob(ctx context.Context, d *queue.DamagedError) error {
	m, _ := queue.MessageOf(d.Key, queue.OpenPrefix)
	more := ""
	if m.Kind == chats.KindText {
		more = " It was a message of yours: please send it again."
	} else if m.Kind != receipts.KindTask {
		m.Chat = chats.Chat{} // no user knows a card's job
	}
	_, err := r.mend(ctx, d, m.Chat, more)
	return err
}

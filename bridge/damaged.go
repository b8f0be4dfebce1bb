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

// damageHandler turns damaged records into dead letters.
type damageHandler struct {
	platforms   map[string]chats.Platform
	store       *trackedStore
	deadLetters queue.DeadLetterStore
	cards       *interact.Cards
	background  *background
	now         func() time.Time

	mending sync.Mutex // held while a record becomes a dead letter
}

var _ turn.StoreMonitor = (*damageHandler)(nil)

// DeadLetterRecord implements [turn.StoreMonitor].
func (r *damageHandler) DeadLetterRecord(ctx context.Context, d *queue.DamagedError, chat chats.Chat) (bool, error) {
	return r.deadLetterRecord(ctx, d, chat, "")
}

// Failing implements [turn.StoreMonitor].
func (r *damageHandler) Failing() bool { return r.store.failing.Load() }

// deadLetterRecord turns a damaged record into a dead letter, and notifies its chat, if that is known.
// It then deletes or replaces the record; a record in a log stays, and readers skip it. It returns
// false if the record is a dead letter already.
func (r *damageHandler) deadLetterRecord(ctx context.Context, d *queue.DamagedError, chat chats.Chat, more string) (bool, error) {
	r.mending.Lock()
	defer r.mending.Unlock()
	rev, still, err := r.findDamaged(ctx, d)
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
	if err := r.replaceRecord(ctx, d.Key, rev); err != nil {
		return true, err
	}
	r.cards.HandleLostRecord(d.Key)
	return true, nil
}

// findDamaged returns the revision of a damaged record, and whether it is not yet a dead letter.
func (r *damageHandler) findDamaged(ctx context.Context, d *queue.DamagedError) (storage.Revision, bool, error) {
	key := d.Key
	if d.Pos > 0 { // log records stay
		key = queue.DeadLetterKey(d.Name())
	}
	entry, err := storage.Find(ctx, r.store, key)
	if err != nil || entry.Revision == storage.Absent {
		return storage.Absent, err == nil && d.Pos > 0, err
	}
	return entry.Revision, d.Pos == 0 && bytes.Equal(entry.Value, d.Data), nil
}

// replaceRecord removes a damaged record. A receipt is replaced by an empty one, which still stops
// duplicates. A session is replaced by one with an empty conversation, since its state is unknown.
func (r *damageHandler) replaceRecord(ctx context.Context, key string, rev storage.Revision) error {
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
			_, err = storage.Save(ctx, r.store, key, s, rev)
			return err
		}
	}
	if err := r.store.Delete(ctx, key, rev); err != nil {
		return fmt.Errorf("remove %s: %w", key, err)
	}
	return nil
}

// deadLetterQuietly turns a damaged record into a dead letter without a notice to a chat.
func (r *damageHandler) deadLetterQuietly(ctx context.Context, d *queue.DamagedError) error {
	_, err := r.deadLetterRecord(ctx, d, chats.Chat{}, "")
	return err
}

// deadLetterJob turns an open job that does not decode into a dead letter, and notifies its user.
func (r *damageHandler) deadLetterJob(ctx context.Context, d *queue.DamagedError) error {
	m, _ := queue.MessageOf(d.Key, queue.OpenPrefix)
	more := ""
	if m.Kind == chats.KindText {
		more = " It was a message of yours: please send it again."
	} else if !receipts.IsUserMessage(m) {
		m.Chat = chats.Chat{} // users do not know about the jobs of cards
	}
	_, err := r.deadLetterRecord(ctx, d, m.Chat, more)
	if err == nil && m.Kind == receipts.KindBackground {
		err = r.background.endDamaged(ctx, m)
	}
	return err
}

package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
)

const damagedNotice = "Something that I had stored for this chat cannot be read any more. I set it aside and go on without it.%s\n\n_Incident %s_"

// keeper keeps the store in order: it sets damaged records aside and removes old ones.
type keeper struct {
	*services
	mending sync.Mutex // held while a damaged record is set aside
}

var _ turn.Keeper = (*keeper)(nil)

// Mend implements [turn.Keeper].
func (k *keeper) Mend(ctx context.Context, d *queue.DamagedError, chat chats.Chat) (bool, error) {
	return k.mend(ctx, d, chat, "")
}

// Failing implements [turn.Keeper].
func (k *keeper) Failing() bool { return k.store.failing.Load() }

// mend sets a damaged record aside and tells the chat that it is about, if that is known.
// Afterwards it is gone, or replaced by what stands for it; a record of a log stays, and
// is skipped. It reports whether it was set aside now, not before.
func (k *keeper) mend(ctx context.Context, d *queue.DamagedError, chat chats.Chat, more string) (bool, error) {
	k.mending.Lock()
	defer k.mending.Unlock()
	rev, still, err := k.stillThere(ctx, d)
	if !still || err != nil {
		return false, err
	}
	a := queue.DeadLetter{Key: d.Name(), Reason: "the record does not decode", Incident: queue.NewIncident(), Data: d.Data}
	if chat.ID != "" {
		a.Chat = chat.String()
	}
	if err := k.asides.Add(ctx, a); err != nil {
		return false, err
	}
	if k.platforms[chat.Platform] != nil && chat.ID != "" {
		_, err := k.cards.Post(ctx, "aside/"+d.Name(), chat, interact.Card{Text: fmt.Sprintf(damagedNotice, more, a.Incident)})
		if err != nil && !errors.Is(err, queue.ErrInvalid) {
			return false, err
		}
	}
	if d.Pos > 0 {
		return true, nil
	}
	return true, k.replace(ctx, d.Key, rev)
}

// stillThere reports whether a damaged record was not set aside yet, and its revision.
func (k *keeper) stillThere(ctx context.Context, d *queue.DamagedError) (storage.Revision, bool, error) {
	key := d.Key
	if d.Pos > 0 { // it stays where it is
		key = queue.DeadLetterKey(d.Name())
	}
	entry, err := k.store.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return storage.Absent, d.Pos > 0, nil
	}
	if err != nil {
		return storage.Absent, false, fmt.Errorf("look for %s: %w", key, err)
	}
	return entry.Revision, d.Pos == 0 && bytes.Equal(entry.Value, d.Data), nil
}

// replace takes a damaged record away. A receipt is replaced by an empty one, which still
// stops duplicates; a session by one that nothing was said in, since it is unknown what was
// cleared.
func (k *keeper) replace(ctx context.Context, key string, rev storage.Revision) error {
	if m, ok := queue.MessageOf(key, receipts.Prefix); ok {
		return receipts.Put(ctx, k.store, &receipts.Receipt{Message: m, State: receipts.Failed, Closed: k.cfg.Now()}, rev)
	}
	if name, ok := strings.CutPrefix(key, conversation.SessionPrefix); ok {
		if chat, err := chats.ParseChat(name); err == nil {
			s := conversation.Session{Chat: chat, Generation: 1}
			for begun := true; begun; {
				if begun, err = conversation.HasBegun(ctx, k.store, s.Log()); err != nil {
					return err
				}
				if begun {
					s.Generation++
				}
			}
			_, err = queue.Write(ctx, k.store, key, s, rev)
			return err
		}
	}
	if err := k.store.Delete(ctx, key, rev); err != nil {
		return fmt.Errorf("remove %s: %w", key, err)
	}
	return nil
}

// mendQuietly sets a damaged record aside that no caller waits for.
func (k *keeper) mendQuietly(ctx context.Context, d *queue.DamagedError) error {
	_, err := k.mend(ctx, d, chats.Chat{}, "")
	return err
}

// mendJob sets an open job aside that does not decode. A person hears of their message.
func (k *keeper) mendJob(ctx context.Context, d *queue.DamagedError) error {
	m, _ := queue.MessageOf(d.Key, queue.OpenPrefix)
	more := ""
	if m.Kind == chats.KindText {
		more = " It was a message of yours: please send it again."
	} else if m.Kind != receipts.KindTask {
		m.Chat = chats.Chat{} // a card is nothing to people
	}
	_, err := k.mend(ctx, d, m.Chat, more)
	return err
}

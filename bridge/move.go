package bridge

import (
	"context"
	"errors"
	"fmt"

	"oneclaw/storage"
)

// move lets the conversation of a chat that got a new id go on there: the new chat's
// session points to a copy of the old log. The receipts stay where they are.
func (b *Bridge) move(ctx context.Context, from, to Chat) error {
	if b.cfg.Moved != nil {
		if err := b.cfg.Moved(ctx, from, to); err != nil {
			return err
		}
	}
	old, err := CurrentSession(ctx, b.store, from)
	if err != nil {
		return err
	}
	if err := b.moveHistory(ctx, from, to, old.Log()); err != nil {
		return err
	}
	session, err := CurrentSession(ctx, b.store, to)
	if err != nil {
		return err
	}
	// All in one write: a copy that broke off must not be taken for whole.
	var all []storage.Record
	for record, err := range b.store.Records(ctx, old.Log(), storage.Query{}) {
		if err != nil {
			return fmt.Errorf("read %s: %w", old.Log(), err)
		}
		all = append(all, record)
	}
	if len(all) == 0 {
		return nil
	}
	_, err = b.store.Append(ctx, session.Log(), 0, all...)
	if errors.Is(err, storage.ErrConflict) {
		return nil // somebody has written there already, or an earlier try did
	}
	if err != nil {
		return fmt.Errorf("copy to %s: %w", session.Log(), err)
	}
	owner := Message{Chat: to}.Owner()
	entry := Conversation{Owner: owner, Chat: to, Generation: session.Generation, Title: "moved from " + from.String(), Begun: b.cfg.Now()}
	return entry.enter(ctx, b.store)
}

// moveHistory lists the former conversations of a chat under its new id as well, where
// they are searched. The present one gets a copy there.
func (b *Bridge) moveHistory(ctx context.Context, from, to Chat, present string) error {
	former, err := Conversations(ctx, b.store, Message{Chat: from}.Owner())
	if err != nil {
		return err
	}
	for _, c := range former {
		if c.Log() == present {
			continue
		}
		c.Owner = Message{Chat: to}.Owner()
		if err := c.enter(ctx, b.store); err != nil {
			return err
		}
	}
	return nil
}

package bridge

import (
	"context"
	"errors"
	"fmt"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/internal/rescue"
	"oneclaw/storage"
)

// helloPrefix begins the keys of the records of shared chats in which the bot has introduced itself. They
// outlast the receipts, so that the bot does not do it again when it is removed and added.
const helloPrefix = "introduced/"

// helloText is the introduction: how to call the bot, what it can do, and who decides.
const helloText = "Hello! I answer here when you mention me or reply to me.\n\n" +
	"I can look things up on the web, work with files, and remind you of things; /help has examples.\n\n" +
	"My owner decides who may use me; before I do what others would notice or what cannot be undone, I ask with a button."

// Added implements [chats.AddedInbox]. The card has its own key, so a call that was interrupted before the
// record was written posts no second one.
func (b *Bridge) Added(ctx context.Context, chat chats.Chat) error {
	if err := b.AwaitReady(ctx); err != nil {
		return fmt.Errorf("added to a chat: %w", err)
	}
	return rescue.Do(func() error {
		chat = chat.WithoutThread()
		key := helloPrefix + chat.String()
		if known, err := storage.Find(ctx, b.cfg.Store, key); err != nil || known.Revision != storage.Absent {
			return err
		}
		card := interact.Card{Text: helloText, Once: true}
		if _, err := b.cards.Post(ctx, key, chat, card); err != nil {
			return fmt.Errorf("introduce the bot in %s: %w", chat, err)
		}
		return setIntroduced(ctx, b.cfg.Store, chat)
	})
}

// setIntroduced records that the bot has introduced itself in a chat.
func setIntroduced(ctx context.Context, store storage.KV, chat chats.Chat) error {
	_, err := storage.Save(ctx, store, helloPrefix+chat.String(), true, storage.Absent)
	if errors.Is(err, storage.ErrConflict) {
		return nil // another process has recorded it
	}
	return err
}

var _ chats.AddedInbox = (*Bridge)(nil)

package receipts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// By yields the receipts of a user's messages; by is platform:id. It reads those of the whole platform,
// and skips damaged ones.
func By(ctx context.Context, kv storage.KV, by string) iter.Seq2[*Receipt, error] {
	platform, _, _ := strings.Cut(by, ":")
	return func(yield func(*Receipt, error) bool) {
		for r := range of(ctx, kv, Prefix+platform+":", by) {
			if !yield(r.Receipt, r.err) {
				return
			}
		}
	}
}

// found is a receipt, or the error of reading one.
type found struct {
	*Receipt
	rev storage.Revision
	err error
}

func of(ctx context.Context, kv storage.KV, prefix, by string) iter.Seq[found] {
	return func(yield func(found) bool) {
		for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
			if err != nil {
				yield(found{err: fmt.Errorf("list receipts: %w", err)})
				return
			}
			r := new(Receipt)
			if json.Unmarshal(entry.Value, r) != nil || r.Message.User == "" || r.Message.By() != by {
				continue
			}
			if !yield(found{Receipt: r, rev: entry.Revision}) {
				return
			}
		}
	}
}

// Erase erases what a user, platform:id, has said in a chat, and the answers, from its receipts.
func Erase(ctx context.Context, store storage.Store, by string, chat chats.Chat) error {
	return eraseAll(ctx, store, Prefix+chat.WithoutThread().String()+"/", by)
}

// EraseEverywhere does the same in all chats.
func EraseEverywhere(ctx context.Context, store storage.Store, by string) error {
	platform, _, _ := strings.Cut(by, ":")
	return eraseAll(ctx, store, Prefix+platform+":", by)
}

func eraseAll(ctx context.Context, store storage.Store, prefix, by string) error {
	for changed := true; changed; {
		changed = false
		for r := range of(ctx, store, prefix, by) {
			err := r.err
			if err == nil {
				err = erase(ctx, store, r.Receipt, r.rev)
			}
			if errors.Is(err, storage.ErrConflict) { // read again by the caller
				changed, err = true, nil
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func erase(ctx context.Context, store storage.Store, r *Receipt, rev storage.Revision) error {
	ops, err := r.Bare().Ops(rev)
	if err != nil {
		return err
	}
	if _, err := store.Write(ctx, ops...); err != nil {
		return fmt.Errorf("erase what the receipt of %s says: %w", r.Key(), err)
	}
	return nil
}

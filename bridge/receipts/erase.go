package receipts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"oneclaw/storage"
)

// ByUser yields the receipts of messages from a user (platform:id). It reads all receipts of the
// platform, and skips damaged ones.
func ByUser(ctx context.Context, kv storage.KV, by string) iter.Seq2[*Receipt, error] {
	return func(yield func(*Receipt, error) bool) {
		for r := range listByUser(ctx, kv, by) {
			if !yield(r.Receipt, r.err) {
				return
			}
		}
	}
}

// readResult is a receipt, or the error from reading one.
type readResult struct {
	*Receipt
	rev storage.Revision
	err error
}

func listByUser(ctx context.Context, kv storage.KV, by string) iter.Seq[readResult] {
	platform, _, _ := strings.Cut(by, ":")
	return func(yield func(readResult) bool) {
		for entry, err := range kv.List(ctx, storage.Range{Prefix: Prefix + platform + ":"}) {
			if err != nil {
				yield(readResult{err: fmt.Errorf("list receipts: %w", err)})
				return
			}
			r := new(Receipt)
			if json.Unmarshal(entry.Value, r) != nil || r.Message.User == "" || r.Message.SenderID() != by {
				continue
			}
			if !yield(readResult{Receipt: r, rev: entry.Revision}) {
				return
			}
		}
	}
}

// EraseEverywhere erases the messages of a user (platform:id), and their answers, from all receipts.
func EraseEverywhere(ctx context.Context, store storage.Store, by string) error {
	for changed := true; changed; {
		changed = false
		for r := range listByUser(ctx, store, by) {
			err := r.err
			if err == nil {
				err = eraseReceipt(ctx, store, r.Receipt, r.rev)
			}
			if errors.Is(err, storage.ErrConflict) { // the receipt is read again
				changed, err = true, nil
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func eraseReceipt(ctx context.Context, store storage.Store, r *Receipt, rev storage.Revision) error {
	ops, err := r.WithoutContent().Ops(rev)
	if err != nil {
		return err
	}
	if _, err := store.Write(ctx, ops...); err != nil {
		return fmt.Errorf("erase the content of receipt %s: %w", r.Key(), err)
	}
	return nil
}

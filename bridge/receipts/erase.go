package receipts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"oneclaw/storage"
)

// ByUser yields the receipts of messages from a user (platform:id). It reads all receipts of the
// platform, and skips damaged ones.
func ByUser(ctx context.Context, kv storage.KV, by string) iter.Seq2[*Receipt, error] {
	return func(yield func(*Receipt, error) bool) {
		for r := range listOf(ctx, kv, by) {
			if r.err == nil && !r.isBy(by) {
				continue
			}
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

// listOf yields the receipts of the platform of a user (platform:id), except damaged ones.
func listOf(ctx context.Context, kv storage.KV, by string) iter.Seq[readResult] {
	platform, _, _ := strings.Cut(by, ":")
	return func(yield func(readResult) bool) {
		for entry, err := range kv.List(ctx, storage.Range{Prefix: Prefix + platform + ":"}) {
			if err != nil {
				yield(readResult{err: fmt.Errorf("list receipts: %w", err)})
				return
			}
			r := new(Receipt)
			if json.Unmarshal(entry.Value, r) == nil && !yield(readResult{Receipt: r, rev: entry.Revision}) {
				return
			}
		}
	}
}

func (r *Receipt) isBy(user string) bool { return r.Message.User != "" && r.Message.SenderID() == user }

// EraseBy erases a user (platform:id) from the receipts that which selects: the user's messages with their
// answers, and from the receipts of others the user's ratings, and who decided if it was the user.
func EraseBy(ctx context.Context, store storage.Store, by string, which func(*Receipt) bool) error {
	for changed := true; changed; {
		changed = false
		for r := range listOf(ctx, store, by) {
			err := r.err
			if err == nil && which(r.Receipt) {
				err = eraseReceipt(ctx, store, r.Receipt, r.rev, by)
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

// eraseReceipt erases a user from a receipt.
func eraseReceipt(ctx context.Context, store storage.Store, r *Receipt, rev storage.Revision, by string) error {
	if r.isBy(by) {
		r = r.WithoutContent()
	} else if !r.Turn.Forget(by) {
		return nil
	}
	ops, err := r.Ops(rev)
	if err != nil {
		return err
	}
	if _, err := store.Write(ctx, ops...); err != nil {
		return fmt.Errorf("erase the content of receipt %s: %w", r.Key(), err)
	}
	return nil
}

// Forget deletes a user's ratings, and the user from decisions. It reports whether there were any.
func (t *Turn) Forget(user string) (changed bool) {
	all := len(t.Feedback)
	t.Feedback = slices.DeleteFunc(t.Feedback, func(o Feedback) bool { return o.By == user })
	changed = len(t.Feedback) < all
	for _, a := range t.Approvals {
		if d := a.Decision; d != nil && d.By == user {
			d.By, d.Name, changed = "", "", true
		}
	}
	return changed
}

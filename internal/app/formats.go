package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path"
	"slices"

	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/workspace"
	"oneclaw/storage"
)

// Migrations returns the steps that lead from [database.LowestFormat] to the format of this program.
func Migrations(cfg config.Config) []database.Migration {
	return append([]database.Migration{upgradeTo5}, cfg.Runtime.Migrations...)
}

// dropped are the records of what is gone: all keys under a prefix.
var dropped = []struct{ prefix, what string }{
	{"account/held", "reservations of budgets, which are in memory now"},
	{"account/newest", "the day of the accounts, which is that of the clock now"},
	{"searches/", "searches that led to tools"},
	{"learning/", "who was told of exports of rated conversations, or said no to them"},
	{"blob/data/", "chunks of files that all folders shared; each has its own"},
	{"blob/name/", "the list of these chunks"},
	{"blob/sweep", "the last sweep of these chunks"},
	{"error/", "errors of the log"},
	{"errors-erased/", "whose errors of the log replicas had to drop"},
	{"tally/", "sums of messages by hour"},
	{"begun/", "an index of conversations by their start"},
}

// upgradeTo5 converts what is stored in another form, and deletes the records of what is gone.
func upgradeTo5(ctx context.Context, store storage.Store, log *slog.Logger) error {
	if err := replaceRouting(ctx, store, log); err != nil {
		return err
	}
	if err := workspace.CopySharedChunks(ctx, store); err != nil {
		return err
	}
	for _, d := range dropped {
		count, err := deleteUnder(ctx, store, d.prefix)
		if err != nil {
			return err
		}
		if count > 0 {
			log.Info("records of what is gone are deleted", "what", d.what, "records", count)
		}
	}
	return replaceErasures(ctx, store)
}

// replaceErasures replaces the open jobs that each erase a person in one chat by the person's record. The
// first sweep erases in all chats.
func replaceErasures(ctx context.Context, store storage.Store) error {
	base, rev, err := storage.Load[int64](ctx, store, "numbers")
	if err != nil && rev == storage.Absent {
		return err
	}
	for entry, err := range store.List(ctx, storage.Range{Prefix: queue.OpenPrefix}) {
		if err != nil {
			return fmt.Errorf("list open jobs: %w", err)
		}
		var j queue.Job
		if kind := path.Base(entry.Key); kind != "erase" && kind != "erase-tasks" || json.Unmarshal(entry.Value, &j) != nil {
			continue
		}
		number := cmp.Or(j.Seq, base+int64(entry.Revision)) //nolint:gosec // a store is never written 2^63 times
		data, err := json.Marshal(conversation.Forgotten{Seq: number, Done: true})
		if err == nil {
			_, err = store.Write(ctx, storage.Delete(entry.Key, entry.Revision), storage.Put(conversation.ForgottenPrefix+j.Message.SenderID(), data, storage.Any))
		}
		if err != nil {
			return fmt.Errorf("replace %s: %w", entry.Key, err)
		}
	}
	return nil
}

// deleteAtOnce bounds the keys that one write deletes.
const deleteAtOnce = 500

// deleteUnder deletes all keys under prefix and returns their count.
func deleteUnder(ctx context.Context, store storage.Store, prefix string) (int, error) {
	var ops []storage.Op
	for entry, err := range store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return 0, fmt.Errorf("list %s: %w", prefix, err)
		}
		ops = append(ops, storage.Delete(entry.Key, storage.Any))
	}
	for some := range slices.Chunk(ops, deleteAtOnce) { // each write waits for the disk
		if _, err := store.Write(ctx, some...); err != nil {
			return 0, fmt.Errorf("delete %s: %w", prefix, err)
		}
	}
	return len(ops), nil
}

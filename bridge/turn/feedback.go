package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// SetFeedback stores a user's rating of the answer that contains the message with the given id. The
// rating is stored in the receipt, or in the job if it is open, concurrently with its turn; see
// [queue.Store.Refresh]. It reports whether the rating changed. If no answer in the chat that passes
// accepts contains the message, it returns false.
func SetFeedback(ctx context.Context, jobs queue.Store, chat chats.Chat, id string, o receipts.Feedback, passes func(*receipts.Receipt) bool) (changed bool, err error) {
	o.At = o.At.UTC().Round(0) // equal to the decoded value
	err = storage.Retry(ctx, func() error {
		changed = false
		found, err := findAnswer(ctx, jobs, chat, id, passes)
		if found == nil || err != nil {
			return err
		}
		var write bool
		if write, changed = found.turn.AddFeedback(o); write {
			_, err = storage.Save(ctx, jobs.Store, found.key, found.record, found.rev)
		}
		return err
	})
	return changed && err == nil, err
}

// answerRecord is the record of a job or a receipt, the receipt of either, and the turn in the record.
type answerRecord struct {
	key     string
	rev     storage.Revision
	record  any
	receipt *receipts.Receipt
	turn    *receipts.Turn
}

// findAnswer returns the record of the answer that contains the message with the given id, or nil.
func findAnswer(ctx context.Context, jobs queue.Store, chat chats.Chat, id string, passes func(*receipts.Receipt) bool) (*answerRecord, error) {
	quoted := []byte(`"` + id + `"`)
	// If a job is closed between the two listings, its receipt is found in the second.
	for _, prefix := range []string{queue.OpenPrefix, receipts.Prefix} {
		for entry, err := range jobs.Store.List(ctx, storage.Range{Prefix: prefix + chat.WithoutThread().String() + "/"}) {
			if err != nil {
				return nil, fmt.Errorf("find the answer %s in %s: %w", id, chat, err)
			}
			if !bytes.Contains(entry.Value, quoted) {
				continue
			}
			found, r := &answerRecord{key: entry.Key, rev: entry.Revision}, new(receipts.Receipt)
			if prefix == receipts.Prefix {
				err = json.Unmarshal(entry.Value, r)
				found.record, found.turn = r, &r.Turn
			} else if j, broken := jobs.DecodeJob(entry); broken == nil {
				r, found.record, found.turn = j.Receipt(), &j.Job, &WorkOf(j).Turn
			} else {
				err = broken
			}
			if err == nil && r.HasSent(id) && passes(r) {
				found.receipt = r
				return found, nil
			}
		}
	}
	return nil, nil
}

package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// SetFeedback stores a user's rating of the answer that contains the message with an id: in its
// receipt, or in the job while that is open, concurrently with the turn; see [queue.Store.Check]. It
// reports whether the rating changed: not if no answer of the chat that passes selects has sent the
// message.
func SetFeedback(ctx context.Context, jobs queue.Store, chat chats.Chat, id string, o receipts.Feedback, passes func(*receipts.Receipt) bool) (changed bool, err error) {
	o.At = o.At.UTC().Round(0) // as it is decoded
	for {
		found, err := sender(ctx, jobs, chat, id, passes)
		if found == nil || err != nil {
			return false, err
		}
		write, changed := found.turn.Note(o)
		if write {
			_, err = queue.Write(ctx, jobs.Store, found.key, found.record, found.rev)
		}
		if !errors.Is(err, storage.ErrConflict) {
			return changed && err == nil, err
		}
	}
}

// answered is the record of a job or a receipt, and the turn in it.
type answered struct {
	key    string
	rev    storage.Revision
	record any
	turn   *receipts.Turn
}

// sender finds the record whose answer contains the message with an id.
func sender(ctx context.Context, jobs queue.Store, chat chats.Chat, id string, passes func(*receipts.Receipt) bool) (*answered, error) {
	quoted := []byte(`"` + id + `"`)
	// A job that is closed between the two is found in the second.
	for _, prefix := range []string{queue.OpenPrefix, receipts.Prefix} {
		for entry, err := range jobs.Store.List(ctx, storage.Range{Prefix: prefix + chat.WithoutThread().String() + "/"}) {
			if err != nil {
				return nil, fmt.Errorf("find the answer %s in %s: %w", id, chat, err)
			}
			if !bytes.Contains(entry.Value, quoted) {
				continue
			}
			found, r := &answered{key: entry.Key, rev: entry.Revision}, new(receipts.Receipt)
			if prefix == receipts.Prefix {
				err = json.Unmarshal(entry.Value, r)
				found.record, found.turn = r, &r.Turn
			} else if j, broken := jobs.Read(entry); broken == nil {
				r, found.record, found.turn = j.Receipt(), &j.Job, &Of(j).Turn
			} else {
				err = broken
			}
			if err == nil && r.HasSent(id) && passes(r) {
				return found, nil
			}
		}
	}
	return nil, nil
}

package receipts

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// finishedPrefix begins the keys of an index: messages and tasks by the time at which they were
// closed, the newest first. The keys of receipts sort by chat.
const finishedPrefix = "finished/"

// Entry is what the index says of a receipt: enough for lists and sums.
type Entry struct {
	// Key is that of the job, At when it was closed.
	Key string    `json:"-"`
	At  time.Time `json:"-"`

	State State `json:"s"`
	// User is the platform's id of who sent it.
	User string `json:"u,omitempty"`
	// Took is how long it was open, in milliseconds; Asked says that it waited for a person.
	Took  int64 `json:"t,omitempty"`
	Asked bool  `json:"a,omitempty"`
	// Notice says that no model was needed for the answer.
	Notice bool `json:"c,omitempty"`
	// Incident is that of the receipt.
	Incident string `json:"i,omitempty"`
}

// Says reports whether a message is something that its sender says, or has said by a task.
func Says(m chats.Message) bool { return m.Kind == chats.KindText || m.Kind == KindTask }

// entry is what the index says of a receipt; nothing where it is not in it.
func (r *Receipt) entry() (f Entry, listed bool) {
	listed = Says(r.Message) && r.State != Joined && !r.Closed.IsZero()
	return Entry{
		Key: r.Key(), At: r.Closed, State: r.State, User: r.Message.User,
		Took: max(r.Closed.Sub(r.Accepted).Milliseconds(), 0), Asked: len(r.Turn.Approvals) > 0, Notice: r.Answer.Notice != "", Incident: r.Incident,
	}, listed
}

// finishedBefore is the key of the index behind which older ones are.
func finishedBefore(t time.Time) string {
	return fmt.Sprintf("%s%019d/", finishedPrefix, math.MaxInt64-t.UnixNano())
}

// IndexKey is where it is in the index: what [List] goes on behind.
func (f Entry) IndexKey() string { return finishedBefore(f.At) + f.Key }

// list is the operation that puts a receipt into the index; nothing where it is not in it.
func (r *Receipt) list() ([]storage.Op, error) {
	f, listed := r.entry()
	if !listed || len(f.IndexKey()) > storage.MaxKey {
		return nil, nil
	}
	data, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode the entry of %s: %w", r.Key(), err)
	}
	// Any: the receipt beside it says whether it is written at all.
	return []storage.Op{storage.Put(f.IndexKey(), data, storage.Any)}, nil
}

// List yields the index, the newest first, behind a place of it; empty for all. It may yield what
// has no receipt any more, or one of another time.
func List(ctx context.Context, kv storage.KV, after string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for entry, err := range kv.List(ctx, storage.Range{Prefix: finishedPrefix, After: after}) {
			if err != nil {
				yield(Entry{}, fmt.Errorf("list what is finished: %w", err))
				return
			}
			if f, ok := readEntry(entry); ok && !yield(f, nil) {
				return
			}
		}
	}
}

// Of returns the receipts of entries of the index, by their keys; of one that is damaged, or of
// another time, nothing.
func Of(ctx context.Context, kv storage.KV, of []Entry) (map[string]*Receipt, error) {
	keys := make([]string, len(of))
	for i, f := range of {
		keys[i] = Prefix + f.Key
	}
	entries, err := storage.GetMany(ctx, kv, keys)
	if err != nil {
		return nil, fmt.Errorf("read receipts: %w", err)
	}
	all := make(map[string]*Receipt, len(of))
	for _, f := range of {
		r := new(Receipt)
		if json.Unmarshal(entries[Prefix+f.Key].Value, r) == nil && r.Closed.Equal(f.At) {
			all[f.Key] = r
		}
	}
	return all, nil
}

func readEntry(entry storage.Entry) (f Entry, ok bool) {
	at, key, _ := strings.Cut(strings.TrimPrefix(entry.Key, finishedPrefix), "/")
	n, err := strconv.ParseInt(at, 10, 64)
	if err != nil || json.Unmarshal(entry.Value, &f) != nil {
		return f, false
	}
	f.Key, f.At = key, time.Unix(0, math.MaxInt64-n)
	return f, true
}

// forgetFinished removes what is older in the index than receipts are kept, and what a wrong
// clock has put too far ahead.
func forgetFinished(ctx context.Context, store storage.Store, now time.Time) error {
	ahead, old := finishedBefore(now.Add(Age)), remover{store: store}
	for entry, err := range store.List(ctx, storage.Range{Prefix: finishedPrefix}) {
		if err == nil && entry.Key >= ahead {
			break
		}
		if err == nil {
			err = old.add(ctx, entry)
		}
		if err != nil {
			return fmt.Errorf("tidy what is finished: %w", err)
		}
	}
	for entry, err := range Throttled(ctx, store.List(ctx, storage.Range{Prefix: finishedPrefix, After: finishedBefore(now.Add(-Age))})) {
		if err == nil {
			err = old.add(ctx, entry)
		}
		if err != nil {
			return fmt.Errorf("tidy what is finished: %w", err)
		}
	}
	return old.flush(ctx)
}

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

// finishedPrefix begins the keys of an index: messages and tasks by the time at which they were closed,
// the newest first. (The keys of receipts sort by chat.)
const finishedPrefix = "finished/"

// Entry is a receipt's entry in the index: enough for lists and sums.
type Entry struct {
	// Key is the key of the job, At when it was closed.
	Key string    `json:"-"`
	At  time.Time `json:"-"`

	State State `json:"s"`
	// User is the platform's id of the sender.
	User string `json:"u,omitempty"`
	// Took is how long it was open, in milliseconds; Asked says that it waited for a user.
	Took  int64 `json:"t,omitempty"`
	Asked bool  `json:"a,omitempty"`
	// Notice says that no model was needed for the answer.
	Notice bool `json:"c,omitempty"`
	// Incident is the receipt's.
	Incident string `json:"i,omitempty"`
}

// Says reports whether a message was said by its sender, directly or as a task.
func Says(m chats.Message) bool { return m.Kind == chats.KindText || m.Kind == KindTask }

// entry returns the index entry of a receipt; false if it has none.
func (r *Receipt) entry() (f Entry, listed bool) {
	listed = Says(r.Message) && r.State != Joined && !r.Closed.IsZero()
	return Entry{
		Key: r.Key(), At: r.Closed, State: r.State, User: r.Message.User,
		Took: max(r.Closed.Sub(r.Accepted).Milliseconds(), 0), Asked: len(r.Turn.Approvals) > 0, Notice: r.Answer.Notice != "", Incident: r.Incident,
	}, listed
}

// finishedBefore returns the index key after which entries are older than t.
func finishedBefore(t time.Time) string {
	return fmt.Sprintf("%s%019d/", finishedPrefix, math.MaxInt64-t.UnixNano())
}

// IndexKey returns the entry's key in the index, from which [List] can continue.
func (f Entry) IndexKey() string { return finishedBefore(f.At) + f.Key }

// list returns the operation that adds a receipt to the index; none if it is not listed.
func (r *Receipt) list() ([]storage.Op, error) {
	f, listed := r.entry()
	if !listed || len(f.IndexKey()) > storage.MaxKey {
		return nil, nil
	}
	data, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode the entry of %s: %w", r.Key(), err)
	}
	// Any revision: the receipt in the same write has the condition.
	return []storage.Op{storage.Put(f.IndexKey(), data, storage.Any)}, nil
}

// List yields the index, the newest first, after a key of it; empty for all. An entry's receipt may be
// gone, or have another time.
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

// Of returns the receipts of index entries, by key; without those that are damaged, or have another
// time.
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

// forgetFinished deletes index entries that are older than receipts are kept, or too far in the future
// because of a wrong clock.
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

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

// indexPrefix begins the keys of an index of receipts by the time at which their jobs were closed, the
// newest first. The keys of receipts sort by chat. Receipts that no list shows have empty entries, for
// [Prune].
const indexPrefix = "finished/"

// Entry is a receipt's entry in the index. It has the fields by which lists are searched.
type Entry struct {
	// Key is the key of the job, At the time when the job was closed.
	Key string    `json:"-"`
	At  time.Time `json:"-"`

	State State `json:"s"`
	// User is the platform's id of the sender.
	User string `json:"u,omitempty"`
	// Incident is that of the receipt.
	Incident string `json:"i,omitempty"`
}

// IsUserMessage reports whether a message was written by its user, directly or as a task, or is the
// result of such a task.
func IsUserMessage(m chats.Message) bool {
	return m.Kind == chats.KindText || m.Kind == KindResult || IsTask(m)
}

// indexEntry returns the index entry of a receipt; false if the receipt is not listed in the index.
func (r *Receipt) indexEntry() (f Entry, listed bool) {
	listed = IsUserMessage(r.Message) && r.State != Joined && !r.Closed.IsZero()
	return Entry{Key: r.Key(), At: r.Closed, State: r.State, User: r.Message.User, Incident: r.Incident}, listed
}

// indexKeyAt returns the index key for a time: entries after the key were closed at t or earlier.
func indexKeyAt(t time.Time) string {
	return fmt.Sprintf("%s%019d/", indexPrefix, math.MaxInt64-t.UnixNano())
}

// IndexKey returns the entry's key in the index, from which [ListEntries] can continue.
func (f Entry) IndexKey() string { return indexKeyAt(f.At) + f.Key }

// indexKey returns the receipt's key in the index; empty if the job is not closed, or the key is too
// long.
func (r *Receipt) indexKey() string {
	key := Entry{Key: r.Key(), At: r.Closed}.IndexKey()
	if r.Closed.IsZero() || len(key) > storage.MaxKey {
		return ""
	}
	return key
}

// indexOps returns the operation that adds a receipt to the index; none if it gets no entry.
func (r *Receipt) indexOps() ([]storage.Op, error) {
	key := r.indexKey()
	if key == "" {
		return nil, nil
	}
	var data []byte
	if f, listed := r.indexEntry(); listed {
		var err error
		if data, err = json.Marshal(f); err != nil {
			return nil, fmt.Errorf("encode the entry of %s: %w", r.Key(), err)
		}
	}
	// Any revision: the receipt in the same write has the condition.
	return []storage.Op{storage.Put(key, data, storage.Any)}, nil
}

// ListEntries yields the index entries after an index key, the newest first; all if the key is empty.
// The receipt of an entry may be gone, or may have been closed at another time.
func ListEntries(ctx context.Context, kv storage.KV, after string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for entry, err := range kv.List(ctx, storage.Range{Prefix: indexPrefix, After: after}) {
			if err != nil {
				yield(Entry{}, fmt.Errorf("list the index of receipts: %w", err))
				return
			}
			if f, ok := decodeEntry(entry); ok && !yield(f, nil) {
				return
			}
		}
	}
}

// LoadReceipts returns the receipts of index entries, by key. It leaves out receipts that are damaged or
// were closed at another time.
func LoadReceipts(ctx context.Context, kv storage.KV, of []Entry) (map[string]*Receipt, error) {
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

// decodeEntry decodes an entry; false for an empty or damaged one.
func decodeEntry(entry storage.Entry) (f Entry, ok bool) {
	key, at, ok := parseIndexKey(entry.Key)
	if !ok || json.Unmarshal(entry.Value, &f) != nil {
		return f, false
	}
	f.Key, f.At = key, at
	return f, true
}

// parseIndexKey returns the key of the job, and the time when it was closed.
func parseIndexKey(indexKey string) (key string, at time.Time, ok bool) {
	number, key, _ := strings.Cut(strings.TrimPrefix(indexKey, indexPrefix), "/")
	n, err := strconv.ParseInt(number, 10, 64)
	return key, time.Unix(0, math.MaxInt64-n), err == nil
}

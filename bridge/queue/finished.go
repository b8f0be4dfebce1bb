package queue

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

// Completed is what the index says of a receipt: enough for lists and sums.
type Completed struct {
	// Key is that of the job, At when it was closed.
	Key string    `json:"-"`
	At  time.Time `json:"-"`

	State State `json:"s"`
	// User is the platform's id of who sent it.
	User string `json:"u,omitempty"`
	// Took is how long it was open, in milliseconds; Asked says that it waited for a person.
	Took  int64 `json:"t,omitempty"`
	Asked bool  `json:"a,omitempty"`
	// Incident is that of the receipt.
	Incident string `json:"i,omitempty"`
}

// finished is what the index says of a closed job; nothing where it is not in it.
func (j *Job) finished() (f Completed, listed bool) {
	kind := j.Message.Kind
	listed = (kind == chats.KindText || kind == KindTask) && j.State != StateJoined && !j.Closed.IsZero()
	return Completed{
		Key: j.Key(), At: j.Closed, State: j.State, User: j.Message.User,
		Took: max(j.Closed.Sub(j.Accepted).Milliseconds(), 0), Asked: len(j.Approvals) > 0, Incident: j.Incident,
	}, listed
}

// receiptPlace is the key of the index behind which older ones are.
func receiptPlace(t time.Time) string {
	return fmt.Sprintf("%s%019d/", finishedPrefix, math.MaxInt64-t.UnixNano())
}

// Place is where it is in the index: what [Store.Completed] goes on behind.
func (f Completed) Place() string { return receiptPlace(f.At) + f.Key }

// list is the operation that puts a closed job into the index; nothing where it is not in it.
func (j *Job) list() ([]storage.Op, error) {
	f, listed := j.finished()
	if !listed || len(f.Place()) > storage.MaxKey {
		return nil, nil
	}
	data, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode the entry of %s: %w", j.Key(), err)
	}
	// Any: the receipt beside it says whether it is written at all.
	return []storage.Op{storage.Put(f.Place(), data, storage.Any)}, nil
}

// Completed yields what was closed, the newest first, behind a place of it; empty for all. It
// may yield what has no receipt any more, or one of another time.
func (s Store) Completed(ctx context.Context, after string) iter.Seq2[Completed, error] {
	return func(yield func(Completed, error) bool) {
		for entry, err := range s.Store.List(ctx, storage.Range{Prefix: finishedPrefix, After: after}) {
			if err != nil {
				yield(Completed{}, fmt.Errorf("list what is finished: %w", err))
				return
			}
			if f, ok := readFinished(entry); ok && !yield(f, nil) {
				return
			}
		}
	}
}

// Receipts returns those of the entries of the index that have one, by their keys; of one that is
// damaged, or of another time, nothing.
func (s Store) Receipts(ctx context.Context, of []Completed) (map[string]*Job, error) {
	keys := make([]string, len(of))
	for i, f := range of {
		keys[i] = ReceiptPrefix + f.Key
	}
	entries, err := storage.GetMany(ctx, s.Store, keys)
	if err != nil {
		return nil, fmt.Errorf("read receipts: %w", err)
	}
	all := make(map[string]*Job, len(of))
	for _, f := range of {
		if j, err := s.Read(entries[ReceiptPrefix+f.Key]); err == nil && j.Closed.Equal(f.At) {
			all[f.Key] = &j.Job
		}
	}
	return all, nil
}

func readFinished(entry storage.Entry) (f Completed, ok bool) {
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
func forgetFinished(ctx context.Context, s Store, now time.Time) error {
	ahead, old := receiptPlace(now.Add(ReceiptAge)), remover{s: s}
	for entry, err := range s.Store.List(ctx, storage.Range{Prefix: finishedPrefix}) {
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
	for entry, err := range Throttled(ctx, s.Store.List(ctx, storage.Range{Prefix: finishedPrefix, After: receiptPlace(now.Add(-ReceiptAge))})) {
		if err == nil {
			err = old.add(ctx, entry)
		}
		if err != nil {
			return fmt.Errorf("tidy what is finished: %w", err)
		}
	}
	return old.flush(ctx)
}

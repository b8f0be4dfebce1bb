package receipts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"oneclaw/storage"
)

// Keys of the tallies: one for each hour, kept for tallyAge, and the time up to which they are complete.
const (
	tallyPrefix = "tally/"
	hourPrefix  = tallyPrefix + "hour/"
	untilKey    = tallyPrefix + "until"
	hourLayout  = "2006-01-02T15"
	tallyAge    = 400 * 24 * time.Hour
)

// recountAfter is the time after which an hour is counted for a second time: until then, replicas whose
// clocks are slow may add receipts to it.
const recountAfter = 24 * time.Hour

// tookBounds are the upper bounds of the histogram of response times, in milliseconds.
var tookBounds = [...]int64{250, 500, 1000, 2000, 3000, 5000, 8000, 13_000, 20_000, 30_000, 60_000, 120_000, 300_000}

// Tally counts the messages and tasks that were closed in a period.
type Tally struct {
	// Messages counts all messages and tasks, Answered those with an answer, and Failed those whose
	// answer failed or could not be delivered.
	Messages int `json:"n"`
	Answered int `json:"ok,omitempty"`
	Failed   int `json:"bad,omitempty"`
	// TookHistogram is a histogram of the response times of the model's answers, except those that
	// waited for a user. The last count is for times above all bounds.
	TookHistogram [len(tookBounds) + 1]int `json:"took"`
}

// Add counts an entry.
func (t *Tally) Add(f Entry) {
	t.Messages++
	switch {
	case f.State == Failed || f.Incident != "":
		t.Failed++
		return
	case f.State != Done:
		return
	}
	t.Answered++
	if f.AskedUser || f.IsNotice {
		return
	}
	i := 0
	for i < len(tookBounds) && f.TookMillis > tookBounds[i] {
		i++
	}
	t.TookHistogram[i]++
}

// Merge adds the counts of another tally.
func (t *Tally) Merge(o Tally) {
	t.Messages, t.Answered, t.Failed = t.Messages+o.Messages, t.Answered+o.Answered, t.Failed+o.Failed
	for i, n := range o.TookHistogram {
		t.TookHistogram[i] += n
	}
}

// Percentile returns the response time that a share of the answers, such as 0.5, did not exceed; 0 if
// there are none.
func (t *Tally) Percentile(share float64) time.Duration {
	all := 0
	for _, n := range t.TookHistogram {
		all += n
	}
	below, before := 0.0, int64(0)
	for i, n := range t.TookHistogram {
		bound := 2 * before
		if i < len(tookBounds) {
			bound = tookBounds[i]
		}
		if want := share * float64(all); n > 0 && below+float64(n) >= want {
			part := (want - below) / float64(n)
			return time.Duration(float64(before)+part*float64(bound-before)) * time.Millisecond
		}
		below, before = below+float64(n), bound
	}
	return 0
}

// Tallies returns the tallies of the hours since a time, by the start of the hour, and the time up to
// which they are complete.
func Tallies(ctx context.Context, kv storage.KV, since time.Time) (hours map[time.Time]Tally, until time.Time, err error) {
	hours = make(map[time.Time]Tally)
	entry, err := kv.Get(ctx, untilKey)
	if err == nil {
		err = json.Unmarshal(entry.Value, &until)
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, until, fmt.Errorf("read the time of the last tally: %w", err)
	}
	for entry, err := range kv.List(ctx, storage.Range{Prefix: hourPrefix, After: hourKey(since.Add(-time.Hour))}) {
		if err != nil {
			return nil, until, fmt.Errorf("list tallies: %w", err)
		}
		var t Tally
		hour, err := time.Parse(hourLayout, strings.TrimPrefix(entry.Key, hourPrefix))
		if err == nil && json.Unmarshal(entry.Value, &t) == nil { // a damaged tally is computed again
			hours[hour] = t
		}
	}
	return hours, until, nil
}

func hourKey(t time.Time) string { return hourPrefix + t.UTC().Format(hourLayout) }

// updateTallies counts the receipts of the hours since the last update, and again those of recountAfter
// ago, and deletes tallies that are too old.
func updateTallies(ctx context.Context, kv storage.KV, now time.Time) error {
	known := make(map[string]storage.Entry)
	for entry, err := range kv.List(ctx, storage.Range{Prefix: tallyPrefix}) {
		if err != nil {
			return fmt.Errorf("list tallies: %w", err)
		}
		known[entry.Key] = entry
		if strings.HasPrefix(entry.Key, hourPrefix) && entry.Key < hourKey(now.Add(-tallyAge)) {
			if err := remove(ctx, kv, entry.Key, entry.Revision); err != nil {
				return err
			}
		}
	}
	var until time.Time
	damaged := json.Unmarshal(known[untilKey].Value, &until) != nil && known[untilKey].Key != ""
	if until.After(now) { // the clock was wrong
		until = time.Time{}
	}
	counted := 0
	const hour = time.Hour
	for h := now.Add(-Age).Truncate(hour).Add(hour); !h.After(now); h = h.Add(hour) { // earlier hours have lost receipts
		isNew := !h.Before(until.Truncate(hour))
		isAgain := !h.Before(until.Truncate(hour).Add(-recountAfter)) && h.Before(now.Truncate(hour).Add(-recountAfter))
		before, exists := known[hourKey(h)]
		if !isNew && !isAgain && (!exists || json.Unmarshal(before.Value, new(Tally)) == nil) {
			continue
		}
		messages, err := updateTally(ctx, kv, h, now, before.Value)
		if err != nil {
			return err
		}
		counted += messages
	}
	if counted == 0 && !damaged {
		return nil
	}
	data, err := json.Marshal(now)
	if err == nil {
		_, err = kv.Put(ctx, untilKey, data, storage.Any) // after a conflict, hours would only be counted again
	}
	if err != nil {
		return fmt.Errorf("store the time of the last tally: %w", err)
	}
	return nil
}

// updateTally counts the receipts of the hour that begins at h, until now at most, and stores the tally
// if it is not empty and differs from the one before. It returns the number of messages.
func updateTally(ctx context.Context, kv storage.KV, h, now time.Time, before []byte) (messages int, err error) {
	end := h.Add(time.Hour - 1)
	if end.After(now) {
		end = now
	}
	t, err := count(ctx, kv, h, end)
	if err != nil {
		return 0, err
	}
	data, err := json.Marshal(t)
	if err == nil && t.Messages > 0 && string(before) != string(data) {
		_, err = kv.Put(ctx, hourKey(h), data, storage.Any) // the tally depends only on the receipts
	}
	if err != nil {
		return 0, fmt.Errorf("store tally %s: %w", hourKey(h), err)
	}
	return t.Messages, nil
}

// count returns the tally of the receipts from begin to end.
func count(ctx context.Context, kv storage.KV, begin, end time.Time) (t Tally, err error) {
	for f, err := range Throttle(ctx, ListEntries(ctx, kv, indexKeyAt(end))) {
		if err != nil {
			return t, err
		}
		if f.At.Before(begin) {
			break
		}
		t.Add(f)
	}
	return t, nil
}

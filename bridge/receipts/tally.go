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

// Where the sums lie: one for each hour, kept for tallyAge, and up to when they were made.
const (
	tallyPrefix = "tally/"
	hourPrefix  = tallyPrefix + "hour/"
	untilKey    = tallyPrefix + "until"
	hourLayout  = "2006-01-02T15"
	tallyAge    = 400 * 24 * time.Hour
)

// tookBounds are the upper bounds of what is told apart of how long answers took, in
// milliseconds.
var tookBounds = [...]int64{250, 500, 1000, 2000, 3000, 5000, 8000, 13_000, 20_000, 30_000, 60_000, 120_000, 300_000}

// Tally is what was finished in some time.
type Tally struct {
	// Messages counts messages and tasks; Answered those with an answer, Failed those
	// without one because of an error, or with one that could not be delivered.
	Messages int `json:"n"`
	Answered int `json:"ok,omitempty"`
	Failed   int `json:"bad,omitempty"`
	// Took counts the answers of a model that waited for no person by how long they took, the last those
	// that took longer than all bounds.
	Took [len(tookBounds) + 1]int `json:"took"`
}

// Add counts one more.
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
	if f.Asked || f.Notice {
		return
	}
	i := 0
	for i < len(tookBounds) && f.Took > tookBounds[i] {
		i++
	}
	t.Took[i]++
}

// Join adds another sum.
func (t *Tally) Join(o Tally) {
	t.Messages, t.Answered, t.Failed = t.Messages+o.Messages, t.Answered+o.Answered, t.Failed+o.Failed
	for i, n := range o.Took {
		t.Took[i] += n
	}
}

// Percentile is a time that a share of the answers, such as 0.5, did not take longer than; 0 where
// there are none.
func (t *Tally) Percentile(share float64) time.Duration {
	all := 0
	for _, n := range t.Took {
		all += n
	}
	below, before := 0.0, int64(0)
	for i, n := range t.Took {
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

// Tallies returns the sums of the hours since a time, by the hour in which they begin, and up
// to when they were made: what was finished later is not in them.
func Tallies(ctx context.Context, kv storage.KV, since time.Time) (hours map[time.Time]Tally, until time.Time, err error) {
	hours = make(map[time.Time]Tally)
	entry, err := kv.Get(ctx, untilKey)
	if err == nil {
		err = json.Unmarshal(entry.Value, &until)
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, until, fmt.Errorf("read up to when sums were made: %w", err)
	}
	for entry, err := range kv.List(ctx, storage.Range{Prefix: hourPrefix, After: hourKey(since.Add(-time.Hour))}) {
		if err != nil {
			return nil, until, fmt.Errorf("read sums: %w", err)
		}
		var t Tally
		hour, err := time.Parse(hourLayout, strings.TrimPrefix(entry.Key, hourPrefix))
		if err == nil && json.Unmarshal(entry.Value, &t) == nil { // one that is damaged is made again
			hours[hour] = t
		}
	}
	return hours, until, nil
}

func hourKey(t time.Time) string { return hourPrefix + t.UTC().Format(hourLayout) }

// sums are made of all receipts whenever they are looked through.
type sums map[string]*Tally

func (all sums) add(r *Receipt) {
	f, listed := r.entry()
	if !listed {
		return
	}
	key := hourKey(f.At)
	if all[key] == nil {
		all[key] = new(Tally)
	}
	all[key].Add(f)
}

// keep writes the sums of the hours whose receipts are all there, where they say
// something else than before, and removes those that are too old.
func (all sums) keep(ctx context.Context, kv storage.KV, now time.Time) error {
	known := make(map[string]string)
	first := hourKey(now.Add(-Age)) // of it some are gone
	for entry, err := range kv.List(ctx, storage.Range{Prefix: hourPrefix}) {
		if err != nil {
			return fmt.Errorf("read sums: %w", err)
		}
		known[entry.Key] = string(entry.Value)
		if entry.Key < hourKey(now.Add(-tallyAge)) {
			if err := remove(ctx, kv, entry.Key, entry.Revision); err != nil {
				return err
			}
		}
	}
	for key, t := range all {
		data, err := json.Marshal(t)
		if err == nil && key > first && known[key] != string(data) {
			_, err = kv.Put(ctx, key, data, storage.Any) // it comes from the receipts alone
		}
		if err != nil {
			return fmt.Errorf("keep the sums of %s: %w", key, err)
		}
	}
	if len(all) == 0 {
		return nil
	}
	data, err := json.Marshal(now)
	if err == nil {
		_, err = kv.Put(ctx, untilKey, data, storage.Any) // as above
	}
	if err != nil {
		return fmt.Errorf("keep up to when sums were made: %w", err)
	}
	return nil
}

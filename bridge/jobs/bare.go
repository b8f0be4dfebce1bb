package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// Of yields the receipts of what somebody, as platform:id, has sent. It reads those of the whole
// platform, and leaves out what is damaged.
func (s Store) Of(ctx context.Context, by string) iter.Seq2[*Job, error] {
	return func(yield func(*Job, error) bool) {
		platform, _, _ := strings.Cut(by, ":")
		for entry, err := range s.Store.List(ctx, storage.Range{Prefix: ReceiptPrefix + platform + ":"}) {
			if err != nil {
				yield(nil, fmt.Errorf("list receipts: %w", err))
				return
			}
			j := &Job{Rev: entry.Revision}
			if json.Unmarshal(entry.Value, j) == nil && j.Message.User != "" && j.Message.By() == by && !yield(j, nil) {
				return
			}
		}
	}
}

// Strip takes what somebody, as platform:id, has said, and what they were answered, out of the
// receipts.
func (s Store) Strip(ctx context.Context, by string) error {
	for j, err := range s.Of(ctx, by) {
		if err != nil {
			return err
		}
		ops, err := j.bare().list()
		if err != nil {
			return err
		}
		data, err := json.Marshal(j.bare())
		if err != nil {
			return fmt.Errorf("encode the receipt of %s: %w", j.Key(), err)
		}
		if _, err := s.Store.Write(ctx, append(ops, storage.Put(ReceiptPrefix+j.Key(), data, j.Rev))...); err != nil {
			return fmt.Errorf("strip the receipt of %s: %w", j.Key(), err)
		}
	}
	return nil
}

// bare is what stays of a receipt that somebody wants to be gone: what stops duplicates, and
// what sums are made of.
func (j *Job) bare() *Job {
	m := j.Message
	return &Job{
		Message: chats.Message{Chat: m.Chat, ID: m.ID, Kind: m.Kind, Direct: m.Direct}, Seq: j.Seq, State: j.State, From: j.From, With: j.With,
		Incident: j.Incident, Accepted: j.Accepted, Closed: j.Closed,
	}
}

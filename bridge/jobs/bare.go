package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// Of yields the receipts of what somebody, as platform:id, has sent. It reads those of the whole
// platform, and leaves out what is damaged.
func (s Store) Of(ctx context.Context, by string) iter.Seq2[*Job, error] {
	platform, _, _ := strings.Cut(by, ":")
	return jobsOf(ctx, s.Store, ReceiptPrefix+platform+":", by)
}

func jobsOf(ctx context.Context, kv storage.KV, prefix, by string) iter.Seq2[*Job, error] {
	return func(yield func(*Job, error) bool) {
		for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
			if err != nil {
				yield(nil, fmt.Errorf("list jobs: %w", err))
				return
			}
			j := &Job{Rev: entry.Revision}
			if json.Unmarshal(entry.Value, j) == nil && j.Message.User != "" && j.Message.By() == by && !yield(j, nil) {
				return
			}
		}
	}
}

// ErrClosing is returned where what was accepted before a job still is to be closed.
var ErrClosing = errors.New("jobs: what was accepted before is still to be closed")

// Strip takes what the sender of a job has said, and what they were answered, out of the
// receipts: out of all, or of those of the chat, where all that was accepted there before the job
// has to be closed, else it returns ErrClosing.
func (s Store) Strip(ctx context.Context, by *Job, all bool) error {
	receipts := s.Of(ctx, by.Message.By())
	if !all {
		chat := by.Message.Chat.Whole().String() + "/"
		for j, err := range jobsOf(ctx, s.Store, OpenPrefix+chat, by.Message.By()) {
			says := j != nil && (j.Message.Kind == chats.KindText || j.Message.Kind == KindTask)
			if says && j.Message.Chat == by.Message.Chat && j.Seq < by.Seq {
				err = fmt.Errorf("%w: %s", ErrClosing, j.Key())
			}
			if err != nil {
				return err
			}
		}
		receipts = jobsOf(ctx, s.Store, ReceiptPrefix+chat, by.Message.By())
	}
	for changed := true; changed; {
		changed = false
		for j, err := range receipts {
			if err == nil {
				err = strip(ctx, s.Store, j)
			}
			if errors.Is(err, storage.ErrConflict) { // it is looked at again
				changed, err = true, nil
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func strip(ctx context.Context, store storage.Store, j *Job) error {
	ops, err := j.bare().list()
	if err != nil {
		return err
	}
	data, err := json.Marshal(j.bare())
	if err != nil {
		return fmt.Errorf("encode the receipt of %s: %w", j.Key(), err)
	}
	if _, err := store.Write(ctx, append(ops, storage.Put(ReceiptPrefix+j.Key(), data, j.Rev))...); err != nil {
		return fmt.Errorf("strip the receipt of %s: %w", j.Key(), err)
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

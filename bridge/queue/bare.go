package queue

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

// ReceiptsOf yields the receipts of what somebody, as platform:id, has sent. It reads those of
// the whole platform, and leaves out what is damaged.
func ReceiptsOf(ctx context.Context, kv storage.KV, by string) iter.Seq2[*Job, error] {
	return func(yield func(*Job, error) bool) {
		for j, err := range receiptsOf(ctx, kv, by) {
			if !yield(&j.Job, err) {
				return
			}
		}
	}
}

func receiptsOf(ctx context.Context, kv storage.KV, by string) iter.Seq2[*Run, error] {
	platform, _, _ := strings.Cut(by, ":")
	return jobsOf(ctx, kv, ReceiptPrefix+platform+":", by)
}

// OpenOf yields the open jobs of somebody, as platform:id.
func OpenOf(ctx context.Context, kv storage.KV, by string) iter.Seq2[*Run, error] {
	platform, _, _ := strings.Cut(by, ":")
	return jobsOf(ctx, kv, OpenPrefix+platform+":", by)
}

// Says reports whether a job is something that its sender says, or has said by a task.
func (j *Job) Says() bool { return j.Message.Kind == chats.KindText || j.Message.Kind == KindTask }

func jobsOf(ctx context.Context, kv storage.KV, prefix, by string) iter.Seq2[*Run, error] {
	return func(yield func(*Run, error) bool) {
		for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
			if err != nil {
				yield(new(Run), fmt.Errorf("list jobs: %w", err))
				return
			}
			j := &Run{Rev: entry.Revision}
			if json.Unmarshal(entry.Value, &j.Job) == nil && j.Message.User != "" && j.Message.By() == by && !yield(j, nil) {
				return
			}
		}
	}
}

// AllClosed returns an error unless all that the sender of a job has said in its chat before is
// closed, and has its receipt: their tasks for the job that goes through tasks, else the rest. The
// one that forgets what is theirs everywhere waits for all threads and tasks, whose tools may make
// more of it; it holds up nobody else.
func AllClosed(ctx context.Context, kv storage.KV, by *Run) error {
	for j, err := range jobsOf(ctx, kv, OpenPrefix+by.Message.Chat.Whole().String()+"/", by.Message.By()) {
		if err != nil {
			return err
		}
		here := j.Message.Chat == by.Message.Chat && (j.Message.Kind == KindTask) == (by.Message.Kind == KindEraseTasks)
		if j.Says() && (here || by.Message.Kind == KindForget) && j.Seq < by.Seq {
			return fmt.Errorf("what was accepted before is still to be closed: %s", j.Key())
		}
	}
	return nil
}

// EraseFromReceipts takes what somebody, as platform:id, has said in a chat, and what they were answered, out
// of its receipts.
func EraseFromReceipts(ctx context.Context, store storage.Store, by string, chat chats.Chat) error {
	return stripAll(ctx, store, jobsOf(ctx, store, ReceiptPrefix+chat.Whole().String()+"/", by))
}

// EraseFromAllReceipts does so in all chats.
func EraseFromAllReceipts(ctx context.Context, store storage.Store, by string) error {
	return stripAll(ctx, store, receiptsOf(ctx, store, by))
}

func stripAll(ctx context.Context, store storage.Store, receipts iter.Seq2[*Run, error]) error {
	for changed := true; changed; {
		changed = false
		for j, err := range receipts {
			if err == nil {
				err = strip(ctx, store, j)
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

func strip(ctx context.Context, store storage.Store, j *Run) error {
	bare := j.bare()
	ops, err := bare.list()
	if err != nil {
		return err
	}
	data, err := json.Marshal(bare)
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
		Message: chats.Message{Chat: m.Chat, ID: m.ID, Kind: m.Kind, Direct: m.Direct}, Seq: j.Seq, State: j.State, From: j.From, JoinedTo: j.JoinedTo,
		Incident: j.Incident, Accepted: j.Accepted, Closed: j.Closed,
	}
}

// kept is what a receipt says of a job. What the bot has shown by itself may repeat what somebody
// said, and nobody has sent it who could want it to be gone: its receipt has no text.
func (j *Job) kept() *Job {
	switch j.Message.Kind {
	case KindCard, KindRefresh, KindPreview:
		bare := j.bare()
		bare.Message.User, bare.Card, bare.LeaseToken = j.Message.User, j.Card, j.LeaseToken
		return bare
	}
	return j
}

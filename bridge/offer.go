package bridge

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/owners"
	"oneclaw/internal/retry"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Where several processes share a store, a message may come to one that does not answer in
// its chat. That one writes it as an offer and confirms it. Whoever answers there learns of
// it from the store, decides what becomes of it as if it had come to itself, and takes it.
//
// The same way a process finds what another one wrote that believed to answer in the chat
// still: each job there that does not carry its own mark is taken.

// offer writes a message for the process that answers in its chat.
func (in *intake) offer(ctx context.Context, j *jobs.Job) error {
	switch {
	case j.Message.Kind == chats.KindEdit:
		return in.offerEdit(ctx, j)
	case j.Message.Kind == chats.KindText && in.people.Role(j.Message.By()) == toolgroups.RoleStranger:
		return in.hear(ctx, j)
	}
	return in.enqueue(ctx, j)
}

// offerEdit offers an edit in the place of one that nobody has taken yet.
func (in *intake) offerEdit(ctx context.Context, j *jobs.Job) error {
	for {
		added, err := in.jobs.Add(ctx, j)
		if added || err != nil {
			return err
		}
		known, err := in.jobs.Load(ctx, j.Key())
		if err != nil {
			return err
		}
		if j.Rev = storage.Absent; known != nil {
			j.Rev = known.Rev
		}
	}
}

// overtaken takes what other processes have accepted in a chat before, if this one answers
// there. The caller has the chat to itself; after an error it does not any more.
func (in *intake) overtaken(ctx context.Context, chat chats.Chat, release func()) (func(), error) {
	if !in.owners.Owns(chat) {
		return release, nil
	}
	open, _, err := in.jobs.Open(ctx, chat.Whole().String()+"/", owners.All)
	for _, j := range open {
		switch {
		case err != nil || j.Message.Chat != chat:
		case j.Holder == in.jobs.Mark(chat):
			err = in.adopt(ctx, j.Key()) // the write that took it may have reported an error
		default:
			err = in.receive(ctx, j)
		}
	}
	if err != nil {
		release()
	}
	return release, err
}

// receive takes a job that another process has written.
func (in *intake) receive(ctx context.Context, j *jobs.Job) error {
	if !j.Offer {
		return in.resume(ctx, j)
	}
	if in.jobs.Assign(j); j.Offer {
		return nil // the chat was given away meanwhile
	}
	j.Found = false
	switch j.Message.Kind {
	case chats.KindText, chats.KindPress, chats.KindEdit:
		if j.Notice == "" {
			return in.admit(ctx, j)
		}
	}
	return in.enqueue(ctx, j) // what it becomes is decided
}

// resume goes on with a job that was begun in another tenure, here or elsewhere.
func (in *intake) resume(ctx context.Context, j *jobs.Job) error {
	if in.lanes.Has(j.Key()) {
		resume, err := in.lanes.Cut(ctx, j.Key())
		if err != nil {
			return err
		}
		defer resume()
	}
	taken, err := in.jobs.Take(ctx, j)
	if err == nil && !taken {
		// It was cut short when it had just been taken.
		if j, err = in.jobs.Load(ctx, j.Key()); j == nil || err != nil {
			return err
		}
		taken = j.Holder == in.jobs.Mark(j.Message.Chat)
	}
	if taken {
		in.sender.Resume(j)
		in.lanes.Queue(j)
	}
	return err
}

// follow takes what other processes write for this one, until ctx ends.
func (in *intake) follow(ctx context.Context) {
	for pauses := retry.New(minRetry, in.maxRetry); ctx.Err() == nil; {
		watching, again := context.WithCancel(ctx)
		in.mu.Lock()
		in.again = again
		in.mu.Unlock()
		err := in.followOnce(ctx, in.store.Watch(watching, jobs.OpenPrefix))
		again()
		if err == nil {
			pauses.Reset()
			continue
		}
		in.log.Warn("what other replicas have accepted cannot be read, trying again", "err", err)
		_ = retry.Wait(ctx, pauses.Next(0))
	}
}

// lookAgain has follow look at all there is, because chats are this process's now.
func (in *intake) lookAgain() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.again != nil {
		in.again()
	}
}

// followOnce looks at all there is, then at changes.
func (in *intake) followOnce(ctx context.Context, changes iter.Seq2[storage.Event, error]) error {
	open, broken, err := in.jobs.Open(ctx, "", in.owners.Owns)
	if err != nil {
		return err
	}
	for _, err := range broken {
		if d, is := errors.AsType[*jobs.DamagedError](err); is {
			if err := in.keeper.mendJob(ctx, d); err != nil {
				return err
			}
		}
	}
	seen := make(map[chats.Chat]bool)
	for _, j := range open {
		if chat := j.Message.Chat; !seen[chat] && (j.Holder != in.jobs.Mark(chat) || !in.lanes.Has(j.Key())) {
			seen[chat] = true
			if err := in.takeIn(ctx, chat); err != nil {
				return err
			}
		}
	}
	for e, err := range changes {
		if err != nil {
			return fmt.Errorf("watch open jobs: %w", err)
		}
		if err := in.notice(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// notice looks at a job that was written.
func (in *intake) notice(ctx context.Context, e storage.Event) error {
	m, ok := jobs.MessageOf(e.Key, jobs.OpenPrefix)
	if e.Deleted || !ok || !in.owners.Owns(m.Chat) {
		return nil
	}
	var j jobs.Job
	if jobs.Decode(e.Entry, &j) != nil {
		return nil // it is found when the chat is taken over
	}
	// Nobody works on a job of this process whose first write has reported an error.
	if j.Holder == in.jobs.Mark(j.Message.Chat) && in.lanes.Has(j.Key()) {
		return nil
	}
	return in.takeIn(ctx, j.Message.Chat)
}

// takeIn takes what there is for a chat.
func (in *intake) takeIn(ctx context.Context, chat chats.Chat) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	release, err := in.accepting.Acquire(ctx, chat.String())
	if err == nil {
		release, err = in.overtaken(ctx, chat, release)
	}
	if err != nil {
		return fmt.Errorf("take what was accepted elsewhere in %s: %w", chat, err)
	}
	release()
	return nil
}

package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/internal/named"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Where several processes share a store, a message may come to one that does not answer in
// its chat. That one writes it as an offer and confirms it. The process that answers there learns of
// it from the store, decides what becomes of it as if it had come to itself, and takes it.
//
// The same way a process finds what another one wrote that believed to answer in the chat
// still: each job there that does not carry its own mark is taken.

// offer writes a message for the process that answers in its chat.
func (in *intake) offer(ctx context.Context, j *queue.Run) error {
	switch {
	case j.Message.Kind == chats.KindEdit:
		return in.offerEdit(ctx, j)
	case in.workers.Place(j).Said && in.people.Role(j.Message.By()) == toolgroups.RoleStranger:
		return in.hear(ctx, j)
	}
	return in.enqueue(ctx, j)
}

// offerEdit offers an edit in the place of one that no process has taken yet.
func (in *intake) offerEdit(ctx context.Context, j *queue.Run) error {
	for {
		added, err := in.jobs.Add(ctx, j)
		if errors.Is(err, storage.ErrInvalid) {
			in.log.Error("edit dropped", "job", j.Key(), "err", err)
			return nil
		}
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

// errAsleep says that another process may have taken a chat over.
var errAsleep = errors.New("bridge: this process has not proved for too long that it answers in this chat")

// overtaken takes what other processes have accepted in a chat before, if this one answers
// there. The caller has the chat to itself; after an error it does not any more.
func (in *intake) overtaken(ctx context.Context, chat chats.Chat, release func()) (func(), error) {
	if in.jobs.LeaseToken(chat) == "" {
		return release, nil
	}
	err := rescue.Do(func() error { return in.takeOthers(ctx, chat) })
	if err != nil {
		release()
	}
	return release, err
}

func (in *intake) takeOthers(ctx context.Context, chat chats.Chat) error {
	ctx, cancel := context.WithTimeout(ctx, queue.WriteTimeout)
	defer cancel()
	open, _, err := in.jobs.Open(ctx, chat.Whole().String()+"/", queue.AllChats)
	if err == nil && !in.owners.Owns(chat) {
		err = errAsleep
	}
	open = slices.DeleteFunc(open, func(j *queue.Run) bool { return j.Origin() != chat })
	if err == nil {
		open = in.hold(open)
	}
	// First all are taken that others work on, the last first as in TakeAll.
	for _, j := range slices.Backward(open) {
		if err == nil && !j.Unclaimed && j.LeaseToken != in.jobs.LeaseToken(chat) {
			var resume func()
			resume, err = in.retake(ctx, j)
			defer resume()
		}
	}
	slices.SortFunc(open, queue.Order)
	for _, j := range open {
		switch {
		case err != nil:
		case j.Unclaimed:
			err = in.receive(ctx, j)
		default:
			err = in.inserter.Adopt(ctx, j.Key()) // the write that took it may have reported an error
		}
	}
	return err
}

// hold has the jobs among some that a later program wrote hold up what is behind them in their
// chats, and returns the others. Such a program takes them when it answers there.
func (in *intake) hold(open []*queue.Run) []*queue.Run {
	return slices.DeleteFunc(open, func(j *queue.Run) bool {
		if !in.workers.Place(j).Unknown {
			return false
		}
		if !in.lanes.Has(j.Key()) {
			in.log.Warn("this program does not know the kind of a job: its chat waits for a later one", "job", j.Key())
			in.lanes.Enqueue(j)
		}
		return true
	})
}

// receive takes an offer.
func (in *intake) receive(ctx context.Context, j *queue.Run) error {
	if in.jobs.Assign(j); j.Unclaimed {
		return nil // the chat was given away meanwhile
	}
	j.Found = false
	if in.workers.of(j).declares().delivered && outbox.Of(j).Notice == "" {
		return in.take(ctx, j)
	}
	return in.enqueue(ctx, j) // what it becomes is decided
}

// retake makes a job this tenure's that belongs to another one, here or elsewhere. Until
// resume is called nothing begins in its lane.
func (in *intake) retake(ctx context.Context, j *queue.Run) (resume func(), err error) {
	resume = func() {}
	if in.lanes.Has(j.Key()) {
		if cut, err := in.lanes.Evict(ctx, j.Key()); err != nil {
			return resume, err
		} else if resume = cut; in.lanes.Has(j.Key()) {
			return resume, nil // it is about to be closed here; see completer.lost
		}
	}
	_, err = in.jobs.Claim(ctx, j)
	return resume, err
}

// follow takes what other processes write for this one, until ctx ends.
func (in *intake) follow(ctx context.Context) {
	for pauses := retry.New(minRetry, in.maxRetry); ctx.Err() == nil; {
		watching, again := context.WithCancel(ctx)
		in.mu.Lock()
		in.again = again
		in.mu.Unlock()
		err := in.followOnce(watching)
		switch {
		case watching.Err() != nil: // it looks again
		case errors.Is(err, storage.ErrLagged):
			pauses.Reset()
		default:
			in.log.Warn("what other replicas have accepted cannot be read, trying again", "err", err)
			_ = retry.Wait(watching, pauses.Next(0))
		}
		again()
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
func (in *intake) followOnce(ctx context.Context) error {
	changes := in.store.Watch(ctx, queue.OpenPrefix)
	open, broken, err := in.jobs.Open(ctx, "", func(chat chats.Chat) bool { return in.jobs.LeaseToken(chat) != "" })
	if err != nil {
		return err
	}
	in.lanes.ReleaseUnknown(func(j *queue.Run) bool {
		return !slices.ContainsFunc(open, func(o *queue.Run) bool { return o.Key() == j.Key() })
	})
	for _, j := range open {
		in.lookFirst(ctx, j)
	}
	for _, j := range open {
		rescue.Go(in.log, "a job of another replica", func() { in.look(j) })
	}
	for _, err := range broken {
		if d, is := errors.AsType[*queue.DamagedError](err); is {
			if err := in.keeper.mendJob(ctx, d); err != nil {
				return err
			}
		}
	}
	for e, err := range changes {
		if err != nil {
			return fmt.Errorf("watch open jobs: %w", err)
		}
		in.notice(ctx, e)
	}
	return nil
}

// notice looks at a job that was written.
func (in *intake) notice(ctx context.Context, e storage.Event) {
	m, ok := queue.MessageOf(e.Key, queue.OpenPrefix)
	if !ok || in.jobs.LeaseToken(m.Chat) == "" {
		return
	}
	if e.Deleted {
		if key := e.Key[len(queue.OpenPrefix):]; in.lanes.Has(key) {
			in.lanes.ReleaseUnknown(func(j *queue.Run) bool { return j.Key() == key })
		}
		return
	}
	if j, err := in.jobs.Read(e.Entry); err == nil { // else it is found when the chat is taken over
		in.lookFirst(ctx, j)
		rescue.Go(in.log, "a job of another replica", func() { in.look(j) })
	}
}

// lookFirst takes a job that holds up other chats before what came later is looked at there: chats
// are taken side by side, and a message behind a move belongs into the new chat. Where it fails,
// look tries again.
func (in *intake) lookFirst(ctx context.Context, j *queue.Run) {
	if _, blocks := in.workers.of(j).(blocker); !blocks || in.lanes.Has(j.Key()) {
		return
	}
	if err := rescue.Do(func() error { return in.takeOnce(ctx, j.Origin()) }); err != nil {
		in.log.Warn("a job that holds up other chats cannot be taken first", "job", j.Key(), "err", err)
	}
}

// look has a job taken on which no worker is here. One with the mark of this process is on
// disk although its first write has reported an error.
func (in *intake) look(j *queue.Run) {
	if j.LeaseToken != in.jobs.LeaseToken(j.Message.Chat) || !in.lanes.Has(j.Key()) {
		in.see(j.Origin())
	}
}

// see has somebody take what there is for a chat, once more where somebody does. A chat in
// trouble is tried again by itself: the others do not wait for it.
func (in *intake) see(chat chats.Chat) {
	in.mu.Lock()
	_, taken := in.taking[chat]
	in.taking[chat] = taken
	in.mu.Unlock()
	if take := func() { in.takeIn(in.lanes.Context(), chat) }; !taken && !in.lanes.TryGo(take) {
		take()
	}
}

// takeIn takes what there is for a chat, until there is no more.
func (in *intake) takeIn(ctx context.Context, chat chats.Chat) {
	for pauses := retry.New(minRetry, in.maxRetry); ; {
		in.mu.Lock()
		in.taking[chat] = false
		in.mu.Unlock()
		err := rescue.Do(func() error { return in.takeOnce(ctx, chat) })
		in.mu.Lock()
		if err == nil && !in.taking[chat] || ctx.Err() != nil {
			delete(in.taking, chat)
			in.mu.Unlock()
			return
		}
		in.mu.Unlock()
		if err != nil {
			in.log.Warn("what was accepted elsewhere cannot be taken, trying again", "chat", chat.String(), "err", err)
			_ = retry.Wait(ctx, pauses.Next(0))
		}
	}
}

// takeAll takes what there is for a chat and its threads now, and has others look for the rest.
func (in *intake) takeAll(ctx context.Context, chat chats.Chat) error {
	open, _, err := in.jobs.Open(ctx, chat.String()+"/", queue.AllChats)
	taken := make(map[chats.Chat]bool)
	for _, j := range open {
		if origin := j.Origin(); err == nil && !taken[origin] {
			taken[origin], err = true, in.takeOnce(ctx, origin)
		}
	}
	in.lookAgain()
	return err
}

func (in *intake) takeOnce(ctx context.Context, chat chats.Chat) error {
	if err := named.Take(ctx, in.places); err != nil {
		return err
	}
	defer func() { <-in.places }()
	release, err := in.accepting.Acquire(ctx, chat.String())
	if err == nil {
		release, err = in.overtaken(ctx, chat, release)
	}
	if err == nil {
		release()
	}
	return err
}

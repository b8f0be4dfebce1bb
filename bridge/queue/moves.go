package queue

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"oneclaw/bridge/chats"
)

// currentChat returns the chat to which a chat has moved, or the chat itself.
func (q *Queue) currentChat(chat chats.Chat) chats.Chat {
	for range len(q.moved) {
		next, moved := q.moved[chat.WithoutThread()]
		if !moved {
			break
		}
		chat.ID = next.ID
	}
	return chat
}

// RestoreMove records a move that an earlier run or another process has completed.
func (q *Queue) RestoreMove(from, to chats.Chat) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.moved[from] = to
	q.hasMoves.Store(true)
}

// BeginMove stops messages in the old and the new chat of a move from being answered, until EndMove.
// Commands may still begin while a message is being answered, because its end may depend on them.
func (q *Queue) BeginMove(from, to chats.Chat) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.moving[from], q.moving[to] = to, to
	q.hasMoves.Store(true)
	for _, l := range q.queuesOf(from, to) {
		l.moving = true
	}
}

// EndMove allows messages in the two chats to be answered again.
func (q *Queue) EndMove(from, to chats.Chat) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.moving, from)
	delete(q.moving, to)
	for _, l := range q.queuesOf(from, to) {
		l.moving = false
		q.wake(l)
	}
}

// queuesOf returns the queues of some chats, including those of their threads, tasks and cards.
func (q *Queue) queuesOf(some ...chats.Chat) []*chatQueue {
	var all []*chatQueue
	for at, l := range q.byChat {
		for _, chat := range some {
			if at.WithoutThread() == chat {
				all = append(all, l)
			}
		}
	}
	return all
}

// JobsIn returns, ordered by Seq, the queued and running jobs in the sub-queues of a chat whose names
// begin with subQueues; with allThreads also those of its threads. Only their messages, arguments and
// numbers may be read, because their workers change the rest.
func (q *Queue) JobsIn(chat chats.Chat, subQueues string, allThreads bool) []*Run {
	var all []*Run
	q.mu.Lock()
	defer q.mu.Unlock()
	for at, l := range q.byChat {
		thread, name, _ := strings.Cut(at.Thread, "/")
		if !strings.HasPrefix("/"+name, subQueues) || at.WithoutThread() != chat.WithoutThread() || thread != chat.Thread && !allThreads {
			continue
		}
		all = append(all, l.messages.waiting...)
		if j := l.current(); j != nil {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b *Run) int { return cmp.Compare(a.Seq, b.Seq) })
	return all
}

// notifyEnded wakes the callers that wait for a job to end. The queue is locked.
func (q *Queue) notifyEnded() {
	close(q.ended)
	q.ended = make(chan struct{})
}

// mustAwaitMove reports whether a command has to wait for the move of its chat, and run in the new chat.
func (q *Queue) mustAwaitMove(l *chatQueue) bool {
	if !l.moving || q.cfg.Workers.Placement(l.commands.waiting[0]).Pinned {
		return false
	}
	to, answering := q.moving[l.chat.WithoutThread()], false
	for end, target := range q.moving {
		if target == to {
			answering = answering || slices.ContainsFunc(q.queuesOf(end), func(l *chatQueue) bool { return l.messages.running != nil })
		}
	}
	return !answering
}

// AwaitIdle waits until no job runs in some chats except the job that moves them.
func (q *Queue) AwaitIdle(ctx context.Context, some ...chats.Chat) error {
	for {
		q.mu.Lock()
		ended, busy := q.ended, false
		for _, l := range q.queuesOf(some...) {
			busy = busy || l.messages.running != nil || l.commands.running != nil && !q.cfg.Workers.Placement(l.commands.running).Pinned
		}
		q.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// MoveChat records that a chat has moved, and puts its waiting jobs into the queues of the new chat,
// including a job that waits for a decision.
func (q *Queue) MoveChat(from, to chats.Chat) {
	var along []*Run
	q.mu.Lock()
	q.moved[from] = to
	for _, l := range q.queuesOf(from) {
		along = append(append(along, l.commands.waiting...), l.messages.waiting...)
		l.commands.waiting, l.messages.waiting = nil, nil
		if l.held != nil {
			l.held.job.Suspended = false
			along = append(along, l.held.job)
			l.held = nil
		}
		q.wake(l)
	}
	for _, j := range along {
		delete(q.open, j.Key())
	}
	q.mu.Unlock()
	for _, j := range along {
		q.Enqueue(j.Clone()) // other goroutines may still read the job
	}
}

// relocate moves a job to the new chat.
func (q *Queue) relocate(j *Run) {
	home := q.currentChat(j.Message.Chat)
	if home == j.Message.Chat || q.cfg.Workers.Placement(j).Pinned {
		return
	}
	if j.From == "" {
		j.From = j.Message.Chat.ID
	}
	// Found makes the worker check again whether a command has ended the job.
	j.Message.Chat, j.Found = home, true
}

// TargetChat returns the chat to which a chat has moved or is moving, otherwise the chat itself, without
// a thread.
func (q *Queue) TargetChat(chat chats.Chat) chats.Chat {
	if !q.hasMoves.Load() {
		return chat.WithoutThread()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	home := q.currentChat(chat.WithoutThread())
	if next, moving := q.moving[home]; moving {
		return next
	}
	return home
}

package queue

import (
	"context"
	"slices"
	"strings"

	"oneclaw/bridge/chats"
)

// queuedChats returns the chats that have a queue and that passes selects. It calls passes without
// holding the lock, because passes may call CurrentChat.
func (q *Queue) queuedChats(passes func(chats.Chat) bool) []chats.Chat {
	var all, some []chats.Chat
	q.mu.Lock()
	for chat := range q.byChat {
		all = append(all, chat)
	}
	q.mu.Unlock()
	for _, chat := range all {
		if passes(chat) {
			some = append(some, chat)
		}
	}
	return some
}

// AnyRunning reports whether a job runs in a selected chat.
func (q *Queue) AnyRunning(passes func(chats.Chat) bool) bool {
	some := q.queuedChats(passes)
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, chat := range some {
		if l := q.byChat[chat]; l != nil && (l.messages.running != nil || l.commands.running != nil) {
			return true
		}
	}
	return false
}

// DropChats removes the waiting jobs of the selected chats, and cancels the running ones with [ErrLost],
// because another process has them now.
func (q *Queue) DropChats(passes func(chats.Chat) bool) {
	some := q.queuedChats(passes)
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, chat := range some {
		l := q.byChat[chat]
		if l == nil {
			continue
		}
		gone := append(l.commands.waiting, l.messages.waiting...)
		if l.held != nil {
			gone = append(gone, l.held.job)
		}
		l.commands.waiting, l.messages.waiting, l.held = nil, nil, nil
		for _, j := range gone {
			q.members.remove(j)
			delete(q.open, j.Key())
		}
		for _, list := range []*queue{&l.commands, &l.messages} {
			if list.running != nil {
				list.cancel(ErrLost)
			}
		}
		q.wake(l)
	}
}

// Evict is [Queue.DropChats] for one job. It returns when the job has stopped running, although its
// receipt may still be written. Until resume is called, no other job begins in its chat, so that later
// jobs do not overtake the job when it is queued again.
func (q *Queue) Evict(ctx context.Context, key string) (resume func(), err error) {
	var shut []*chatQueue
	resume = func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		for _, l := range shut {
			l.evictions--
			q.wake(l)
		}
	}
	for {
		q.mu.Lock()
		ended, runs := q.ended, false
		for _, l := range q.byChat {
			has, running := l.evict(func(j *Run) bool { return j.Key() == key }, q.members)
			if has && !slices.Contains(shut, l) {
				shut = append(shut, l)
				l.evictions++
			}
			if has && !running {
				delete(q.open, key)
			}
			runs = runs || running
		}
		q.mu.Unlock()
		if !runs {
			return resume, nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			resume()
			return nil, context.Cause(ctx)
		}
	}
}

// HasUnknown reports whether jobs of unknown kinds wait whose keys have a prefix.
func (q *Queue) HasUnknown(prefix string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.byChat {
		if slices.ContainsFunc(l.messages.waiting, func(j *Run) bool {
			return strings.HasPrefix(j.Key(), prefix) && q.cfg.Workers.Placement(j).UnknownKind
		}) {
			return true
		}
	}
	return false
}

// DropUnknown removes the jobs of unknown kinds for which closed returns true.
func (q *Queue) DropUnknown(closed func(*Run) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.byChat {
		before := len(l.messages.waiting)
		l.messages.waiting = slices.DeleteFunc(l.messages.waiting, func(j *Run) bool {
			gone := q.cfg.Workers.Placement(j).UnknownKind && closed(j)
			if gone {
				delete(q.open, j.Key())
			}
			return gone
		})
		if len(l.messages.waiting) < before {
			q.wake(l)
		}
	}
}

// evict removes a job from a chat queue, or cancels the job if it runs.
func (l *chatQueue) evict(its func(*Run) bool, members members) (has, runs bool) {
	for _, q := range []*queue{&l.commands, &l.messages} {
		if q.running != nil && its(q.running) {
			q.cancel(ErrLost)
			has, runs = true, true
		}
		if i := slices.IndexFunc(q.waiting, its); i >= 0 {
			members.remove(q.waiting[i])
			q.waiting = slices.Delete(q.waiting, i, i+1)
			has = true
		}
	}
	if l.held != nil && its(l.held.job) {
		l.held = nil
		has = true
	}
	return has, runs
}

// CurrentChat returns the chat to which a chat has moved, or the chat itself.
func (q *Queue) CurrentChat(chat chats.Chat) chats.Chat {
	if !q.hasMoves.Load() {
		return chat
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.currentChat(chat)
}

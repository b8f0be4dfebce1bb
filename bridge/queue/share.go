package queue

import (
	"context"
	"slices"

	"oneclaw/bridge/chats"
)

// in returns the chats with a queue that passes selects. It calls passes without the lock, because
// passes may call CurrentChat.
func (s *Queue) in(passes func(chats.Chat) bool) []chats.Chat {
	var all, some []chats.Chat
	s.mu.Lock()
	for chat := range s.byChat {
		all = append(all, chat)
	}
	s.mu.Unlock()
	for _, chat := range all {
		if passes(chat) {
			some = append(some, chat)
		}
	}
	return some
}

// AnyRunning reports whether a job runs in a selected chat.
func (s *Queue) AnyRunning(passes func(chats.Chat) bool) bool {
	some := s.in(passes)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, chat := range some {
		if l := s.byChat[chat]; l != nil && (l.messages.running != nil || l.commands.running != nil) {
			return true
		}
	}
	return false
}

// DropChats removes the waiting jobs of the selected chats, and ends the running ones with [ErrLost]:
// another process has them now.
func (s *Queue) DropChats(passes func(chats.Chat) bool) {
	some := s.in(passes)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, chat := range some {
		l := s.byChat[chat]
		if l == nil {
			continue
		}
		gone := append(l.commands.waiting, l.messages.waiting...)
		if l.held != nil {
			gone = append(gone, l.held.job)
		}
		l.commands.waiting, l.messages.waiting, l.held = nil, nil, nil
		for _, j := range gone {
			s.members.give(j)
			delete(s.open, j.Key())
		}
		for _, q := range []*queue{&l.commands, &l.messages} {
			if q.running != nil {
				q.cancel(ErrLost)
			}
		}
		s.wake(l)
	}
}

// Evict is [Queue.DropChats] for one job, and returns when it does not run any more; an answered one
// may still be about to be closed. Until resume is called nothing else begins in its chat: later jobs
// must not overtake it when it is queued again.
func (s *Queue) Evict(ctx context.Context, key string) (resume func(), err error) {
	var shut []*chatQueue
	resume = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, l := range shut {
			l.evictions--
			s.wake(l)
		}
	}
	for {
		s.mu.Lock()
		ended, runs := s.ended, false
		for _, l := range s.byChat {
			has, running := l.cut(func(j *Run) bool { return j.Key() == key }, s.members)
			if has && !slices.Contains(shut, l) {
				shut = append(shut, l)
				l.evictions++
			}
			if has && !running {
				delete(s.open, key)
			}
			runs = runs || running
		}
		s.mu.Unlock()
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

// ReleaseUnknown removes the jobs of unknown kinds that a later version of the program has closed.
func (s *Queue) ReleaseUnknown(closed func(*Run) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.byChat {
		before := len(l.messages.waiting)
		l.messages.waiting = slices.DeleteFunc(l.messages.waiting, func(j *Run) bool {
			gone := s.cfg.Workers.Placement(j).Unknown && closed(j)
			if gone {
				delete(s.open, j.Key())
			}
			return gone
		})
		if len(l.messages.waiting) < before {
			s.wake(l)
		}
	}
}

// cut removes a job from a chat queue, or ends it if it runs.
func (l *chatQueue) cut(its func(*Run) bool, members members) (has, runs bool) {
	for _, q := range []*queue{&l.commands, &l.messages} {
		if q.running != nil && its(q.running) {
			q.cancel(ErrLost)
			has, runs = true, true
		}
		if i := slices.IndexFunc(q.waiting, its); i >= 0 {
			members.give(q.waiting[i])
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
func (s *Queue) CurrentChat(chat chats.Chat) chats.Chat {
	if !s.moves.Load() {
		return chat
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.home(chat)
}

package queue

import (
	"context"
	"slices"

	"oneclaw/bridge/chats"
)

// in returns the chats that have a queue and pass. The caller does not hold the lock: who
// decides may ask where a chat goes on.
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

// AnyRunning reports whether a job runs in one of the chats that pass.
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

// DropChats forgets what waits in the chats that pass, and ends what runs there with
// [ErrLost]: another process has these jobs now.
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

// Evict is [Queue.DropChats] for one job, and returns when it does not run any more; one that was
// answered may still be about to be closed. Until resume is
// called nothing else begins in its chat: what was accepted after it must not overtake it
// when it is queued again.
func (s *Queue) Evict(ctx context.Context, key string) (resume func(), err error) {
	var shut []*chatQueue
	resume = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, l := range shut {
			l.shut--
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
				l.shut++
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

// ReleaseUnknown takes the jobs of unknown kinds that a later program has closed out of their queues.
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

// cut takes a job out of a chat queue, or ends it where it runs.
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

// CurrentChat is the chat as which a chat goes on that has moved.
func (s *Queue) CurrentChat(chat chats.Chat) chats.Chat {
	if !s.moves.Load() {
		return chat
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.home(chat)
}

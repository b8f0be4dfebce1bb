package queue

import (
	"context"
	"slices"

	"oneclaw/bridge/chats"
)

// home is the chat as which a chat goes on.
func (s *Queue) home(chat chats.Chat) chats.Chat {
	for range len(s.over) {
		next, moved := s.over[chat.Whole()]
		if !moved {
			break
		}
		chat.ID = next.ID
	}
	return chat
}

// RestoreMove tells of a move that a former run or another process has carried out.
func (s *Queue) RestoreMove(from, to chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over[from] = to
	s.moves.Store(true)
}

// Block lets no message be answered at either end of a move, until Unblock. Commands begin as
// long as a message is being answered: it may wait for what one of them says, or be ended by it.
func (s *Queue) Block(from, to chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending[from], s.pending[to] = to, to
	s.moves.Store(true)
	for _, l := range s.ofChats(from, to) {
		l.moving = true
	}
}

// Unblock lets messages be answered again.
func (s *Queue) Unblock(from, to chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, from)
	delete(s.pending, to)
	for _, l := range s.ofChats(from, to) {
		l.moving = false
		s.wake(l)
	}
}

// ofChats are the queues of some chats, with those of their threads, tasks and cards.
func (s *Queue) ofChats(some ...chats.Chat) []*chatQueue {
	var all []*chatQueue
	for at, l := range s.byChat {
		for _, chat := range some {
			if at.Whole() == chat {
				all = append(all, l)
			}
		}
	}
	return all
}

// tellEnded tells who waits for that that something ended.
func (s *Queue) tellEnded() {
	close(s.ended)
	s.ended = make(chan struct{})
}

// blocks reports whether a command has to wait for the move of its chat: what is left of the old
// chat by then is carried out in the new one.
func (s *Queue) blocks(l *chatQueue) bool {
	if !l.moving || s.cfg.Workers.Placement(l.commands.waiting[0]).Pinned {
		return false
	}
	to, answering := s.pending[l.chat.Whole()], false
	for end, target := range s.pending {
		if target == to {
			answering = answering || slices.ContainsFunc(s.ofChats(end), func(l *chatQueue) bool { return l.messages.running != nil })
		}
	}
	return !answering
}

// AwaitIdle waits until nothing runs in some chats that are blocked, but the move itself.
func (s *Queue) AwaitIdle(ctx context.Context, some ...chats.Chat) error {
	for {
		s.mu.Lock()
		ended, busy := s.ended, false
		for _, l := range s.ofChats(some...) {
			busy = busy || l.messages.running != nil || l.commands.running != nil && !s.cfg.Workers.Placement(l.commands.running).Pinned
		}
		s.mu.Unlock()
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

// MoveChat notes that a chat goes on as another, and puts what waits there into the queues of
// that one. A job that waits for a decision looks for it there.
func (s *Queue) MoveChat(from, to chats.Chat) {
	var along []*Run
	s.mu.Lock()
	s.over[from] = to
	for _, l := range s.ofChats(from) {
		along = append(append(along, l.commands.waiting...), l.messages.waiting...)
		l.commands.waiting, l.messages.waiting = nil, nil
		if l.held != nil {
			l.held.job.Suspended = false
			along = append(along, l.held.job)
			l.held = nil
		}
		s.wake(l)
	}
	for _, j := range along {
		delete(s.open, j.Key())
	}
	s.mu.Unlock()
	for _, j := range along {
		s.Enqueue(j.Clone()) // others may look at it still
	}
}

// relocate gives a job of a chat that has moved to the new one.
func (s *Queue) relocate(j *Run) {
	home := s.home(j.Message.Chat)
	if home == j.Message.Chat || s.cfg.Workers.Placement(j).Pinned {
		return
	}
	if j.From == "" {
		j.From = j.Message.Chat.ID
	}
	// Its place in the queue was another: what a command has ended is asked for again.
	j.Message.Chat, j.Found = home, true
}

// Forward is where what is for a chat goes from now on: it may have moved, or move.
func (s *Queue) Forward(chat chats.Chat) chats.Chat {
	if !s.moves.Load() {
		return chat.Whole()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	home := s.home(chat.Whole())
	if next, moving := s.pending[home]; moving {
		return next
	}
	return home
}

package queue

import (
	"context"
	"slices"

	"oneclaw/bridge/chats"
)

// home returns the chat to which a chat has moved, or the chat itself.
func (s *Queue) home(chat chats.Chat) chats.Chat {
	for range len(s.moved) {
		next, moved := s.moved[chat.WithoutThread()]
		if !moved {
			break
		}
		chat.ID = next.ID
	}
	return chat
}

// RestoreMove records a move that a former run or another process has completed.
func (s *Queue) RestoreMove(from, to chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved[from] = to
	s.moves.Store(true)
}

// Block keeps messages at both ends of a move from being answered, until Unblock. Commands may begin
// while a message is being answered: it may depend on one of them, or be ended by it.
func (s *Queue) Block(from, to chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moving[from], s.moving[to] = to, to
	s.moves.Store(true)
	for _, l := range s.ofChats(from, to) {
		l.moving = true
	}
}

// Unblock allows messages to be answered again.
func (s *Queue) Unblock(from, to chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.moving, from)
	delete(s.moving, to)
	for _, l := range s.ofChats(from, to) {
		l.moving = false
		s.wake(l)
	}
}

// ofChats returns the queues of some chats, with those of their threads, tasks and cards.
func (s *Queue) ofChats(some ...chats.Chat) []*chatQueue {
	var all []*chatQueue
	for at, l := range s.byChat {
		for _, chat := range some {
			if at.WithoutThread() == chat {
				all = append(all, l)
			}
		}
	}
	return all
}

// tellEnded wakes callers that wait for a job to end.
func (s *Queue) tellEnded() {
	close(s.ended)
	s.ended = make(chan struct{})
}

// blocks reports whether a command has to wait for the move of its chat; then it runs in the new one.
func (s *Queue) blocks(l *chatQueue) bool {
	if !l.moving || s.cfg.Workers.Placement(l.commands.waiting[0]).Pinned {
		return false
	}
	to, answering := s.moving[l.chat.WithoutThread()], false
	for end, target := range s.moving {
		if target == to {
			answering = answering || slices.ContainsFunc(s.ofChats(end), func(l *chatQueue) bool { return l.messages.running != nil })
		}
	}
	return !answering
}

// AwaitIdle waits until nothing runs in some blocked chats but the move itself.
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

// MoveChat records that a chat has moved, and puts its waiting jobs into the queues of the new chat. A
// job that waits for a decision looks for it there.
func (s *Queue) MoveChat(from, to chats.Chat) {
	var along []*Run
	s.mu.Lock()
	s.moved[from] = to
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
		s.Enqueue(j.Clone()) // others may still read it
	}
}

// relocate moves a job to the new chat.
func (s *Queue) relocate(j *Run) {
	home := s.home(j.Message.Chat)
	if home == j.Message.Chat || s.cfg.Workers.Placement(j).Pinned {
		return
	}
	if j.From == "" {
		j.From = j.Message.Chat.ID
	}
	// Its order in the queue was another, so whether a command has ended it is checked again.
	j.Message.Chat, j.Found = home, true
}

// Forward returns the chat to which a chat has moved, or is moving; otherwise the chat itself.
func (s *Queue) Forward(chat chats.Chat) chats.Chat {
	if !s.moves.Load() {
		return chat.WithoutThread()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	home := s.home(chat.WithoutThread())
	if next, moving := s.moving[home]; moving {
		return next
	}
	return home
}

package lanes

import (
	"context"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// home is the chat as which a chat goes on.
func (s *Lanes) home(chat chats.Chat) chats.Chat {
	for range len(s.over) {
		next, moved := s.over[chat.Whole()]
		if !moved {
			break
		}
		chat.ID = next.ID
	}
	return chat
}

// Restore tells of a move that a former run or another process has carried out.
func (s *Lanes) Restore(from, to chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over[from] = to
	s.Moves.Store(true)
}

// Bar lets no message be answered at either end of a move, until Unbar.
func (s *Lanes) Bar(from, to chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending[from], s.pending[to] = to, to
	s.Moves.Store(true)
	for _, l := range s.ofChats(from, to) {
		l.moving = true
	}
}

// Unbar lets messages be answered again.
func (s *Lanes) Unbar(from, to chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, from)
	delete(s.pending, to)
	for _, l := range s.ofChats(from, to) {
		l.moving = false
		s.wake(l)
	}
}

// ofChats are the lanes of some chats, with those of their threads, tasks and cards.
func (s *Lanes) ofChats(some ...chats.Chat) []*lane {
	var all []*lane
	for at, l := range s.byChat {
		for _, chat := range some {
			if at.Whole() == chat {
				all = append(all, l)
			}
		}
	}
	return all
}

// hush tells who waits for quiet that something ended.
func (s *Lanes) hush() {
	close(s.hushed)
	s.hushed = make(chan struct{})
}

// Quiet waits until no message is being answered in some chats that are barred.
func (s *Lanes) Quiet(ctx context.Context, some ...chats.Chat) error {
	for {
		s.mu.Lock()
		hushed, busy := s.hushed, false
		for _, l := range s.ofChats(some...) {
			busy = busy || l.messages.running != nil
		}
		s.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-hushed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// MoveOn notes that a chat goes on as another, and puts what waits there into the lanes of
// that one. A job that waits for a decision looks for it there.
func (s *Lanes) MoveOn(from, to chats.Chat) {
	var along []*jobs.Job
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
		copied := *j // others may look at it still
		s.Queue(&copied)
	}
}

// relocate gives a job of a chat that has moved to the new one.
func (s *Lanes) relocate(j *jobs.Job) {
	home := s.home(j.Message.Chat)
	if home == j.Message.Chat || s.cfg.Place(j).Fixed {
		return
	}
	if j.From == "" {
		j.From = j.Message.Chat.ID
	}
	// Its place in the queue was another: what a command has ended is asked for again.
	j.Message.Chat, j.Found = home, true
}

// Forward is where what is for a chat goes from now on: it may have moved, or move.
func (s *Lanes) Forward(chat chats.Chat) chats.Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	home := s.home(chat.Whole())
	if next, moving := s.pending[home]; moving {
		return next
	}
	return home
}

package lanes

import (
	"context"
	"maps"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// moves says which chats go on under another id. It is guarded by Lanes.mu.
type moves struct {
	// over are the moves that were carried out, pending both ends of those that were not,
	// with where they lead.
	over, pending map[chats.Chat]chats.Chat
	// hushed is closed, and replaced, when something ended in a chat that moves.
	hushed chan struct{}
}

func newMoves() moves {
	return moves{over: make(map[chats.Chat]chats.Chat), pending: make(map[chats.Chat]chats.Chat), hushed: make(chan struct{})}
}

// barred reports whether no message is answered in a chat, because it moves.
func (m *moves) barred(chat chats.Chat) bool {
	_, barred := m.pending[chat.Whole()]
	return barred
}

// gone reports whether a chat goes on under another id.
func (m *moves) gone(chat chats.Chat) bool {
	_, gone := m.over[chat.Whole()]
	return gone
}

// home is the chat as which a chat goes on.
func (m *moves) home(chat chats.Chat) chats.Chat {
	for range len(m.over) {
		next, moved := m.over[chat.Whole()]
		if !moved {
			break
		}
		chat.ID = next.ID
	}
	return chat
}

// Restore tells of moves that were carried out by a former run.
func (s *Lanes) Restore(over map[chats.Chat]chats.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.moves.over, over)
}

// Bar lets no message be answered at either end of a move, until Unbar or MoveOn.
func (s *Lanes) Bar(from, to chats.Chat) {
	s.mu.Lock()
	s.moves.pending[from], s.moves.pending[to] = to, to
	s.mu.Unlock()
	for _, l := range s.ofChats(from, to) {
		l.mu.Lock()
		l.moving = true
		l.mu.Unlock()
	}
}

// Unbar lets messages be answered again.
func (s *Lanes) Unbar(from, to chats.Chat) {
	s.mu.Lock()
	delete(s.moves.pending, from)
	delete(s.moves.pending, to)
	var waiting []*Lane
	for at, l := range s.byChat {
		if at.Whole() == from || at.Whole() == to {
			l.users++ // nobody else may need it
			waiting = append(waiting, l)
		}
	}
	s.mu.Unlock()
	for _, l := range waiting {
		l.mu.Lock()
		l.moving = false
		l.mu.Unlock()
		s.wake(l)
		s.Leave(l)
	}
}

// ofChats are the lanes of some chats, with those of their threads, tasks and cards.
func (s *Lanes) ofChats(some ...chats.Chat) []*Lane {
	return s.all(func(at chats.Chat) bool {
		for _, chat := range some {
			if at.Whole() == chat {
				return true
			}
		}
		return false
	})
}

// hush tells a move that waits that something ended in a lane.
func (s *Lanes) hush(l *Lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moves.barred(l.Chat) {
		close(s.moves.hushed)
		s.moves.hushed = make(chan struct{})
	}
}

// Quiet waits until no message is being answered in some chats that are barred.
func (s *Lanes) Quiet(ctx context.Context, some ...chats.Chat) error {
	for {
		s.mu.Lock()
		hushed := s.moves.hushed
		s.mu.Unlock()
		busy := false
		for _, l := range s.ofChats(some...) {
			l.mu.Lock()
			busy = busy || l.messages.running != nil
			l.mu.Unlock()
		}
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
	s.mu.Lock()
	s.moves.over[from] = to
	s.mu.Unlock()
	for _, l := range s.ofChats(from) {
		l.mu.Lock()
		l.gone = true
		along := append(l.commands.waiting, l.messages.waiting...)
		l.commands.waiting, l.messages.waiting = nil, nil
		held := l.messages.held
		if held != nil {
			held.job.Suspended = false
			along = append(along, held.job)
			l.messages.held = nil
		}
		l.mu.Unlock()
		for _, j := range along {
			copied := *j // others may look at it still
			s.line(&copied)
		}
		if held != nil {
			s.Leave(l)
		}
	}
}

// relocate gives a job of a chat that has moved to the new one, and reports whether it did.
func (s *Lanes) relocate(j *jobs.Job) bool {
	s.mu.Lock()
	home := s.moves.home(j.Message.Chat)
	s.mu.Unlock()
	if home == j.Message.Chat {
		return false
	}
	if j.From == "" {
		j.From = j.Message.Chat.ID
	}
	// Its place in the queue was another: what a command has ended is asked for again.
	j.Message.Chat, j.Found = home, true
	return true
}

// Forward is where what is for a chat goes from now on: it may have moved, or move.
func (s *Lanes) Forward(chat chats.Chat) chats.Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	home := s.moves.home(chat.Whole())
	if next, moving := s.moves.pending[home]; moving {
		return next
	}
	return home
}

package telegram

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/wire"
)

// Statuses of members.
const (
	Creator       = "creator"
	Administrator = "administrator"
	Member        = "member"
	Left          = "left"
	Kicked        = "kicked"
)

func getChat(_ context.Context, s *Server, p *wire.Params) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(p, false)
	if err != nil {
		return nil, err
	}
	return botapi.FullChat{Chat: c.wire(), MaxReactionCount: 11}, nil
}

// member describes a user or the bot in a chat.
func (s *Server) member(c *chat, u User) botapi.Member {
	m := botapi.Member{User: u, Status: cmp.Or(c.members[u.ID], Left)}
	if u.ID == s.bot.ID {
		switch {
		case c.kicked || c.blocked:
			m.Status = Kicked
		case c.botAdmin:
			m.Status = Administrator
		default:
			m.Status = Member
		}
	} else if c.kind == Private && c.user.ID == u.ID {
		m.Status = Member
	}
	if m.Status == Kicked {
		m.UntilDate = new(int)
	}
	return m
}

func getChatMember(_ context.Context, s *Server, p *wire.Params) (any, *apiError) {
	id := p.Int("user_id")
	if id <= 0 {
		return nil, badRequest("invalid user_id specified") // Client.cpp
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(p, false)
	if err != nil {
		return nil, err
	}
	if id == s.bot.ID {
		return s.member(c, s.bot), nil
	}
	u := s.users[id]
	if u == nil {
		return nil, badRequest("user not found") // Client.cpp
	}
	return s.member(c, *u), nil
}

func getChatAdministrators(_ context.Context, s *Server, p *wire.Params) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(p, true)
	if err != nil {
		return nil, err
	}
	if c.kind == Private {
		return nil, badRequest("there are no administrators in the private chat") // Client.cpp
	}
	admins := []botapi.Member{}
	for _, id := range slices.Sorted(maps.Keys(c.members)) {
		if st := c.members[id]; st == Creator || st == Administrator {
			admins = append(admins, s.member(c, *s.users[id]))
		}
	}
	if c.botAdmin {
		admins = append(admins, s.member(c, s.bot))
	}
	return admins, nil
}

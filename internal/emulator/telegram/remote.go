package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"oneclaw/internal/emulator/wire"
)

// remoteCall is the body of a POST to the control side: the fields of whichever
// act it is.
type remoteCall struct {
	SayOptions
	Chat    int64  `json:"chat"`
	User    int64  `json:"user"`
	Message int64  `json:"message"`
	Text    string `json:"text"`
	Data    string `json:"data"`
	Forge   bool   `json:"forge"`
	Blocked bool   `json:"blocked"`
	Status  string `json:"status"`
}

// serveControl lets another process, or a person with curl, act as people would:
//
//	POST /emulator/users      User                          → User
//	POST /emulator/chats      ChatSpec                      → {"chat": id}
//	POST /emulator/topics     {chat, text}                  → {"topic": id}
//	POST /emulator/say        {chat, user, text, …}         → Sent
//	POST /emulator/edit       {chat, message, text}         → Sent
//	POST /emulator/press      {chat, message, user, data}   → Sent
//	POST /emulator/react      {chat, message, user, text}   → Sent
//	POST /emulator/block      {user, blocked}               → Sent
//	POST /emulator/bot        {chat, user, status}          → Sent
//	POST /emulator/migrate    {chat, user}                  → {"chat": id}
//	POST /emulator/faults     Fault (delay in nanoseconds)  → {"id": n}
//	POST /emulator/unfault    {id}                          → {"fired": n}
//	GET  /emulator/messages?chat=ID[&answers=N&seconds=S]   → messages, once the bot wrote N
//	GET  /emulator/state                                    → counters
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	c := wire.Control[int64]{MaxBody: maxUpload, Faults: s.Faults, Messages: s.remoteMessages, State: s.remoteState, Act: s.remoteAct}
	c.ServeHTTP(w, r)
}

// remoteAct runs one act.
func (s *Server) remoteAct(act string, body *json.Decoder) (any, error) {
	switch act {
	case "users":
		return wire.RunAct(body, "user", func(u User) (any, error) { return s.AddUser(u), nil })
	case "chats":
		return wire.RunAct(body, "chat", func(spec ChatSpec) (any, error) {
			id, err := s.AddChat(spec)
			return map[string]int64{"chat": id}, err
		})
	}
	return wire.RunAct(body, "act", func(c remoteCall) (any, error) { return s.remoteCall(act, c) })
}

func (s *Server) remoteCall(act string, c remoteCall) (any, error) {
	switch act {
	case "say":
		return s.Say(c.Chat, c.User, c.Text, &c.SayOptions)
	case "edit":
		return s.Edit(c.Chat, c.Message, c.Text)
	case "press":
		return s.Press(c.Chat, c.Message, c.User, c.Data, c.Forge)
	case "react":
		return s.React(c.Chat, c.Message, c.User, c.Text)
	case "block":
		return s.SetBlocked(c.User, c.Blocked)
	case "bot":
		return s.SetBot(c.Chat, c.User, c.Status)
	case "topics":
		id, err := s.AddTopic(c.Chat, c.Text)
		return map[string]int64{"topic": id}, err
	case "migrate":
		id, err := s.Migrate(c.Chat, c.User)
		return map[string]int64{"chat": id}, err
	}
	return nil, fmt.Errorf("unknown act %q", act)
}

// remoteMessages lists a chat, after waiting for a number of answers where asked.
func (s *Server) remoteMessages(ctx context.Context, query url.Values, answers int) (any, error) {
	chat, err := strconv.ParseInt(query.Get("chat"), 10, 64)
	if err != nil {
		return nil, errors.New("chat must be a number")
	}
	err = s.WaitFor(ctx, func(st State) bool { return answers <= 0 || st.CountAnswers(chat) >= answers })
	if err != nil {
		return nil, err
	}
	return s.Messages(chat), nil
}

func (s *Server) remoteState() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]any{
		"bot": s.bot, "chats": s.order, "pending": len(s.updates), "confirmed": s.confirmed,
		"polls": s.polls, "polling": s.poll != nil, "cuts": s.cuts, "lost": s.lost, "calls": maps.Clone(s.hub.Calls()),
	}
}

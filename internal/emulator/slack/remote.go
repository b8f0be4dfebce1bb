package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"

	"oneclaw/internal/emulator/wire"
)

// remoteCall is the body of a POST to the control side: the fields of whichever
// act it is.
type remoteCall struct {
	SayOptions
	Channel string `json:"channel"`
	User    string `json:"user"`
	TS      string `json:"ts"`
	Text    string `json:"text"`
	Command string `json:"command"`
	Value   string `json:"value"`
	Forge   bool   `json:"forge"`
	Reason  string `json:"reason"`
}

// serveControl lets another process, or a person with curl, act as people would:
//
//	POST /emulator/users       User                              → User
//	POST /emulator/channels    ChannelSpec                       → {"channel": id}
//	POST /emulator/say         {channel, user, text, thread, …}  → Sent
//	POST /emulator/edit        {channel, ts, text}               → Sent
//	POST /emulator/delete      {channel, ts}                     → Sent
//	POST /emulator/react       {channel, ts, user, text}         → Sent
//	POST /emulator/unreact     {channel, ts, user, text}         → Sent
//	POST /emulator/command     {channel, user, command, text}    → Sent
//	POST /emulator/press       {channel, ts, user, value, forge} → Sent
//	POST /emulator/disconnect  {reason}                          → {"sockets": n}
//	POST /emulator/drop        {}                                → {"sockets": n}
//	POST /emulator/freeze      {}                                → {"sockets": n}
//	POST /emulator/redeliver   {}                                → {"envelopes": n}
//	POST /emulator/faults      Fault (delay in nanoseconds)      → {"id": n}
//	POST /emulator/unfault     {id}                              → {"fired": n}
//	GET  /emulator/messages?channel=ID[&answers=N&seconds=S]     → messages, once the bot wrote N
//	GET  /emulator/state                                         → counters
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	c := wire.Control[string]{MaxBody: maxUpload, Faults: s.Faults, Messages: s.remoteMessages, State: s.remoteState, Act: s.remoteAct}
	c.ServeHTTP(w, r)
}

// remoteAct runs one act.
func (s *Server) remoteAct(act string, body *json.Decoder) (any, error) {
	switch act {
	case "users":
		return wire.RunAct(body, "user", func(u User) (any, error) { return s.AddUser(u), nil })
	case "channels":
		return wire.RunAct(body, "channel", func(spec ChannelSpec) (any, error) {
			id, err := s.AddChannel(spec)
			return map[string]string{"channel": id}, err
		})
	}
	return wire.RunAct(body, "act", func(c remoteCall) (any, error) { return s.remoteCall(act, c) })
}

func (s *Server) remoteCall(act string, c remoteCall) (any, error) {
	switch act {
	case "say":
		return s.Say(c.Channel, c.User, c.Text, &c.SayOptions)
	case "edit":
		return s.Edit(c.Channel, c.TS, c.Text)
	case "delete":
		return s.Delete(c.Channel, c.TS)
	case "react", "unreact":
		return s.React(c.Channel, c.TS, c.User, c.Text, act == "unreact")
	case "command":
		return s.Command(c.Channel, c.User, c.Command, c.Text)
	case "press":
		return s.Press(c.Channel, c.TS, c.User, c.Value, c.Forge)
	case "disconnect":
		return map[string]int{"sockets": s.Disconnect(c.Reason)}, nil
	case "drop":
		return map[string]int{"sockets": s.Drop()}, nil
	case "freeze":
		return map[string]int{"sockets": s.Freeze()}, nil
	case "redeliver":
		return map[string]int{"envelopes": s.Redeliver()}, nil
	}
	return nil, fmt.Errorf("unknown act %q", act)
}

// remoteMessages lists a channel, after waiting for a number of answers where asked.
func (s *Server) remoteMessages(ctx context.Context, query url.Values, answers int) (any, error) {
	channel := query.Get("channel")
	err := s.WaitFor(ctx, func(st State) bool { return answers <= 0 || st.CountAnswers(channel) >= answers })
	if err != nil {
		return nil, err
	}
	return s.Messages(channel), nil
}

func (s *Server) remoteState() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{s}
	return map[string]any{
		"team": s.cfg.Team, "bot_user": s.cfg.BotUser, "channels": s.order, "undelivered": st.Undelivered(),
		"sockets": st.Sockets(), "opened": st.Opened(), "cuts": s.cuts, "calls": maps.Clone(s.hub.Calls()),
	}
}

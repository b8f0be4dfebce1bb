package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"

	"oneclaw/internal/emulator/slack/delivery"
	"oneclaw/internal/emulator/wire"
)

// remoteCall is the body of a POST to the control side, with the fields of all actions.
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

// remote lets another process, or a person with curl, act as people would:
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
type remote struct {
	*People
	*Observer
	delivery.Control
	faults *wire.Faults[string]
}

// ServeHTTP runs an action, or answers a query.
func (c *remote) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	control := wire.Control[string]{MaxBody: maxUpload, Faults: c.faults, Messages: c.messages, State: c.counters, Act: c.act}
	control.ServeHTTP(w, r)
}

// act runs one action.
func (c *remote) act(act string, body *json.Decoder) (any, error) {
	switch act {
	case "users":
		return wire.RunAct(body, "user", func(u User) (any, error) { return c.AddUser(u), nil })
	case "channels":
		return wire.RunAct(body, "channel", func(spec ChannelSpec) (any, error) {
			id, err := c.AddChannel(spec)
			return map[string]string{"channel": id}, err
		})
	}
	return wire.RunAct(body, "act", func(call remoteCall) (any, error) { return c.run(act, call) })
}

func (c *remote) run(act string, call remoteCall) (any, error) {
	switch act {
	case "say":
		return c.Say(call.Channel, call.User, call.Text, &call.SayOptions)
	case "edit":
		return c.Edit(call.Channel, call.TS, call.Text)
	case "delete":
		return c.Delete(call.Channel, call.TS)
	case "react", "unreact":
		return c.React(call.Channel, call.TS, call.User, call.Text, act == "unreact")
	case "command":
		return c.Command(call.Channel, call.User, call.Command, call.Text)
	case "press":
		return c.Press(call.Channel, call.TS, call.User, call.Value, call.Forge)
	case "disconnect":
		return map[string]int{"sockets": c.Disconnect(call.Reason)}, nil
	case "drop":
		return map[string]int{"sockets": c.Drop()}, nil
	case "freeze":
		return map[string]int{"sockets": c.Freeze()}, nil
	case "redeliver":
		return map[string]int{"envelopes": c.Redeliver()}, nil
	}
	return nil, fmt.Errorf("unknown act %q", act)
}

// messages lists a channel, optionally after waiting for a number of answers.
func (c *remote) messages(ctx context.Context, query url.Values, answers int) (any, error) {
	channel := query.Get("channel")
	err := c.WaitFor(ctx, func(st State) bool { return answers <= 0 || st.CountAnswers(channel) >= answers })
	if err != nil {
		return nil, err
	}
	return c.Messages(channel), nil
}

func (c *remote) counters() (counted any) {
	c.View(func(st State) {
		counted = map[string]any{
			"team": st.world.cfg.Team, "bot_user": st.world.cfg.BotUser, "channels": st.Channels(), "undelivered": st.Undelivered(),
			"sockets": st.Sockets(), "opened": st.Opened(), "cuts": st.Cuts(), "calls": maps.Clone(st.world.hub.Calls()),
		}
	})
	return counted
}

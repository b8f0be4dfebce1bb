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

// remoteControl lets another process, or a developer with curl, act for the users:
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
type remoteControl struct {
	*People
	*Observer
	delivery.Control
	faults *wire.Faults[string]
}

// ServeHTTP runs an action, or answers a query.
func (c *remoteControl) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	control := wire.Control[string]{MaxBody: maxUpload, Faults: c.faults, Messages: c.awaitMessages, State: c.counters, RunAction: c.runAction}
	control.ServeHTTP(w, r)
}

// runAction runs one action.
func (c *remoteControl) runAction(act string, body *json.Decoder) (any, error) {
	switch act {
	case "users":
		return wire.RunAction(body, "user", func(u User) (any, error) { return c.AddUser(u), nil })
	case "channels":
		return wire.RunAction(body, "channel", func(spec ChannelSpec) (any, error) {
			id, err := c.AddChannel(spec)
			return map[string]string{"channel": id}, err
		})
	}
	return wire.RunAction(body, "act", func(call remoteCall) (any, error) { return c.runCall(act, call) })
}

func (c *remoteControl) runCall(act string, call remoteCall) (any, error) {
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
		return map[string]int{"sockets": c.BreakSockets()}, nil
	case "freeze":
		return map[string]int{"sockets": c.Freeze()}, nil
	case "redeliver":
		return map[string]int{"envelopes": c.Redeliver()}, nil
	}
	return nil, fmt.Errorf("unknown action %q", act)
}

// awaitMessages returns the messages of a channel, once it has the required number of answers.
func (c *remoteControl) awaitMessages(ctx context.Context, query url.Values, answers int) (any, error) {
	channel := query.Get("channel")
	err := c.WaitFor(ctx, func(st State) bool { return answers <= 0 || st.CountAnswers(channel) >= answers })
	if err != nil {
		return nil, err
	}
	return c.Messages(channel), nil
}

func (c *remoteControl) counters() (counted any) {
	c.View(func(st State) {
		counted = map[string]any{
			"team": st.world.cfg.Team, "bot_user": st.world.cfg.BotUser, "channels": st.Channels(), "undelivered": st.UnackedCount(),
			"sockets": st.ActiveSockets(), "opened": st.OpenedSockets(), "cuts": st.DroppedResponses(), "calls": maps.Clone(st.world.hub.Calls()),
		}
	})
	return counted
}

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

// control is the control interface, with which tests, the demo or another process act on a server and
// observe it.
type control struct {
	*setup
	*people
	*observer
	*wire.Faults[int64]
}

// remoteCall is the body of a POST to the control side, with the fields of all actions.
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

// serveControl lets another process, or a developer with curl, act for the users:
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
func (c *control) serveControl(w http.ResponseWriter, r *http.Request) {
	served := wire.Control[int64]{MaxBody: maxUpload, Faults: c.Faults, Messages: c.awaitRemoteMessages, State: c.remoteState, RunAction: c.runRemoteAction}
	served.ServeHTTP(w, r)
}

// runRemoteAction runs one action.
func (c *control) runRemoteAction(act string, body *json.Decoder) (any, error) {
	switch act {
	case "users":
		return wire.RunAction(body, "user", func(u User) (any, error) { return c.AddUser(u), nil })
	case "chats":
		return wire.RunAction(body, "chat", func(spec ChatSpec) (any, error) {
			id, err := c.AddChat(spec)
			return map[string]int64{"chat": id}, err
		})
	}
	return wire.RunAction(body, "act", func(call remoteCall) (any, error) { return c.runRemoteCall(act, call) })
}

func (c *control) runRemoteCall(act string, call remoteCall) (any, error) {
	switch act {
	case "say":
		return c.Say(call.Chat, call.User, call.Text, &call.SayOptions)
	case "edit":
		return c.Edit(call.Chat, call.Message, call.Text)
	case "press":
		return c.Press(call.Chat, call.Message, call.User, call.Data, call.Forge)
	case "react":
		return c.React(call.Chat, call.Message, call.User, call.Text)
	case "block":
		return c.SetBlocked(call.User, call.Blocked)
	case "bot":
		return c.SetBotStatus(call.Chat, call.User, call.Status)
	case "topics":
		id, err := c.AddTopic(call.Chat, call.Text)
		return map[string]int64{"topic": id}, err
	case "migrate":
		id, err := c.Migrate(call.Chat, call.User)
		return map[string]int64{"chat": id}, err
	}
	return nil, fmt.Errorf("unknown action %q", act)
}

// awaitRemoteMessages returns the messages of a chat, once it has the required number of answers.
func (c *control) awaitRemoteMessages(ctx context.Context, query url.Values, answers int) (any, error) {
	chat, err := strconv.ParseInt(query.Get("chat"), 10, 64)
	if err != nil {
		return nil, errors.New("chat must be a number")
	}
	err = c.WaitFor(ctx, func(st State) bool { return answers <= 0 || st.CountAnswers(chat) >= answers })
	if err != nil {
		return nil, err
	}
	return c.Messages(chat), nil
}

func (c *control) remoteState() any {
	w, q := c.people.world, c.people.updates
	w.mu.Lock()
	defer w.mu.Unlock()
	return map[string]any{
		"bot": w.bot, "chats": w.chatOrder, "pending": len(q.waiting), "confirmed": q.confirmed,
		"polls": q.pollCount, "polling": q.poll != nil, "cuts": w.droppedResponses, "lost": q.lostCount, "calls": maps.Clone(w.hub.Calls()),
	}
}

package slack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/emulator/wire"
)

// Kinds of channels, as in channel_type.
const (
	Public  = "channel"
	Private = "group"
	DM      = "im"
	GroupDM = "mpim"
)

// User is a person, or the bot.
type User struct {
	ID string `json:"id"`
	// Name is the handle; RealName and DisplayName are shown.
	Name        string `json:"name"`
	RealName    string `json:"real_name"`
	DisplayName string `json:"display_name"`
	Admin       bool   `json:"admin"`
	Owner       bool   `json:"owner"`
	Bot         bool   `json:"bot"`
	// Deleted marks a deactivated account.
	Deleted bool `json:"deleted"`
	// Team is the person's other workspace; the person's channels are shared with it.
	Team string `json:"team"`
}

// world is the workspace: people, channels, messages and files, with the service's rules. It
// knows nothing of HTTP, nor of what the app is told. It is guarded by the lock of the server,
// which callers hold.
type world struct {
	cfg       *Config                    // immutable
	hub       *wire.Hub[string, Message] // for observers
	users     map[string]*User
	channels  map[string]*channel
	order     []string // channels in the order of creation
	nextID    int
	lastStamp int64 // microseconds
	files     fileStore
	responses map[string]*response
	answers   int
	homes     map[string]json.RawMessage // views, by user
}

func newWorld(cfg *Config, hub *wire.Hub[string, Message]) *world {
	bot := &User{ID: cfg.BotUser, Name: cfg.BotName, RealName: cfg.BotName, Bot: true}
	return &world{
		cfg: cfg, hub: hub, users: map[string]*User{bot.ID: bot}, channels: map[string]*channel{},
		files: newFileStore(), responses: map[string]*response{}, homes: map[string]json.RawMessage{},
	}
}

// refusal is an error of the service.
type refusal struct {
	code             string
	needed, provided string
	retryAfter       int // seconds; only for rate limits
	messages         []string
}

func refuse(code string, messages ...string) *refusal {
	return &refusal{code: code, messages: messages}
}

func tooMany(seconds int) *refusal {
	return &refusal{code: "ratelimited", retryAfter: seconds}
}

type channel struct {
	id       string
	kind     string
	name     string
	members  []string
	botIn    bool
	archived bool

	messages []*message
	byTS     map[string]*message
	statuses map[string]Status // by thread
	sessions map[string]string // statuses by thread
	titles   map[string]string // by thread
	prompts  []Prompt
	history  []Status
	answers  int
}

// message is a message of a channel. parent is the first message of its thread, or nil.
type message struct {
	ts        string
	parent    *message
	user      string
	bot       bool   // ours
	otherBot  string // the id of another bot
	subtype   string
	text      string
	blocks    []byte
	files     []*file
	replies   []string
	replyFrom []string
	broadcast bool
	ephemeral string // for this user only
	sent      time.Time
	edited    time.Time
	edits     []Edit
	deleted   bool
	react     []string
	theirs    []reaction // of people
	cut       int
	attached  []any // forwarded messages
	loose     bool  // plain words may be mentions
	stream    *stream
}

// teamOf returns the workspace of a user.
func (w *world) teamOf(user string) string {
	if u := w.users[user]; u != nil && u.Team != "" {
		return u.Team
	}
	return w.cfg.Team
}

// isShared reports whether people of other workspaces are in a channel.
func (w *world) isShared(c *channel) bool {
	return c != nil && slices.ContainsFunc(c.members, func(user string) bool { return w.teamOf(user) != w.cfg.Team })
}

func (m *message) thread() string {
	switch {
	case m.parent != nil:
		return m.parent.ts
	case len(m.replies) > 0:
		return m.ts
	}
	return ""
}

// stamp returns the next ts, which is also the id of a message.
func (w *world) stamp() string {
	w.lastStamp = max(w.lastStamp+1, w.cfg.Now().UnixMicro())
	return fmt.Sprintf("%d.%06d", w.lastStamp/1e6, w.lastStamp%1e6)
}

// id returns an id in the service's form.
func (w *world) id(prefix string) string {
	w.nextID++
	return fmt.Sprintf("%s0E%07d", prefix, w.nextID)
}

// add adds a message to its channel and tells the observers.
func (w *world) add(c *channel, m *message) {
	m.ts = w.stamp()
	m.sent = w.cfg.Now()
	c.messages = append(c.messages, m)
	c.byTS[m.ts] = m
	if p := m.parent; p != nil && m.ephemeral == "" {
		p.replies = append(p.replies, m.ts)
		if !slices.Contains(p.replyFrom, m.user) {
			p.replyFrom = append(p.replyFrom, m.user)
		}
	}
	w.tally(c, m, 1)
	if len(c.messages) > w.cfg.MaxMessages {
		gone := c.messages[0]
		delete(c.byTS, gone.ts)
		w.tally(c, gone, -1)
		c.messages[0] = nil
		c.messages = c.messages[1:]
	}
	w.emit(Event{Kind: EventMessage, Chat: c.id, Message: m.ts}, c, m)
}

// emit tells the observers. A message is shown as it is now.
func (w *world) emit(e Event, c *channel, m *message) {
	var look func() Message
	if m != nil {
		look = func() Message { return w.observed(c, m) }
	}
	w.hub.Emit(e, look)
}

// tally counts the bot's messages that are not deleted.
func (w *world) tally(c *channel, m *message, n int) {
	if m.bot && !m.deleted {
		c.answers += n
		w.answers += n
	}
}

// find returns a channel by its id, or by a user's id for the DM. With write, it refuses
// channels that the bot cannot write to.
func (w *world) find(id string, write bool) (*channel, *refusal) {
	if id == "" {
		return nil, refuse("channel_not_found") // its page
	}
	if _, ok := w.users[id]; ok && id != w.cfg.BotUser {
		return w.openDM(id), nil
	}
	c := w.channels[id]
	switch {
	case c == nil, !c.botIn && c.kind != Public:
		return nil, refuse("channel_not_found") // its page
	case !c.botIn:
		return nil, refuse("not_in_channel") // its page
	case c.archived && write:
		return nil, refuse("is_archived") // its page
	}
	return c, nil
}

// openDM returns the DM of the bot with a user, new if necessary.
func (w *world) openDM(user string) *channel {
	for _, id := range w.order {
		if c := w.channels[id]; c.kind == DM && c.botIn && slices.Contains(c.members, user) {
			return c
		}
	}
	return w.makeChannel(ChannelSpec{Kind: DM, Members: []string{user}})
}

func (w *world) makeChannel(spec ChannelSpec) *channel {
	if spec.ID == "" {
		prefix := "C"
		if spec.Kind == DM {
			prefix = "D"
		}
		spec.ID = w.id(prefix)
	}
	c := &channel{
		id: spec.ID, kind: spec.Kind, name: spec.Name, members: slices.Clone(spec.Members), botIn: !spec.WithoutBot,
		byTS: map[string]*message{}, statuses: map[string]Status{}, sessions: map[string]string{}, titles: map[string]string{},
	}
	if c.name == "" && c.kind != DM {
		c.name = strings.ToLower(c.id)
	}
	w.channels[c.id] = c
	w.order = append(w.order, c.id)
	w.hub.Changed()
	return c
}

// kindScope returns the scope for reading a channel, or its messages
// (docs.slack.dev/reference/methods/conversations.history and …/conversations.info).
func kindScope(kind, what string) string {
	switch kind {
	case Private:
		return "groups:" + what
	case DM:
		return "im:" + what
	case GroupDM:
		return "mpim:" + what
	}
	return "channels:" + what
}

// status returns the current status of a thread: a reply clears it, and so does time.
func (w *world) status(c *channel, thread string) (Status, bool) {
	st, ok := c.statuses[thread]
	return st, ok && w.cfg.Now().Sub(st.At) < statusAge
}

// setStatus shows or, with an empty text, clears a status. Calls of the bot itself are recorded.
func (w *world) setStatus(ch *channel, thread, text string, asked bool) {
	st := Status{Channel: ch.id, Thread: thread, Text: text, At: w.cfg.Now()}
	if text == "" {
		delete(ch.statuses, thread)
	} else {
		ch.statuses[thread] = st
	}
	if asked && len(ch.history) < w.cfg.MaxMessages {
		ch.history = append(ch.history, st)
	}
	w.emit(Event{Kind: EventStatus, Chat: ch.id, Message: thread, Text: text}, nil, nil)
}

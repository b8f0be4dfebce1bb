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
	public  = "channel"
	Private = "group"
	DM      = "im"
	groupDM = "mpim"
)

// User is a user or the bot.
type User struct {
	ID string `json:"id"`
	// Name is the handle. RealName and DisplayName are the names that apps show.
	Name        string `json:"name"`
	RealName    string `json:"real_name"`
	DisplayName string `json:"display_name"`
	Admin       bool   `json:"admin"`
	Owner       bool   `json:"owner"`
	Bot         bool   `json:"bot"`
	// Deleted marks a deactivated account.
	Deleted bool `json:"deleted"`
	// Zone is the IANA name of the user's time zone; which the settings of the device tell Slack.
	Zone string `json:"tz"`
	// Team is the id of the user's other workspace, if any; the user's channels are shared with it.
	Team string `json:"team"`
}

// world is the workspace: users, channels, messages and files, with the rules of the service. It
// does not depend on HTTP or on the delivery of events. It is guarded by the lock of the server,
// which its callers must hold.
type world struct {
	cfg          *Config                    // immutable
	hub          *wire.Hub[string, Message] // sends events to observers
	users        map[string]*User
	channels     map[string]*channel
	userGroups   []userGroup
	channelOrder []string // ids of channels in the order of creation
	lastID       int
	lastStamp    int64 // microseconds
	files        fileStore
	responses    map[string]*responseURL
	answerCount  int
	homes        map[string]json.RawMessage // views, by user
}

func newWorld(cfg *Config, hub *wire.Hub[string, Message]) *world {
	bot := &User{ID: cfg.BotUser, Name: cfg.BotName, RealName: cfg.BotName, Bot: true}
	return &world{
		cfg: cfg, hub: hub, users: map[string]*User{bot.ID: bot}, channels: map[string]*channel{},
		files: newFileStore(), responses: map[string]*responseURL{}, homes: map[string]json.RawMessage{},
	}
}

// refusal is an error of the service.
type refusal struct {
	code             string
	needed, provided string
	retryAfter       int // seconds; only for rate limits
	messages         []string
}

func newRefusal(code string, messages ...string) *refusal {
	return &refusal{code: code, messages: messages}
}

func rateLimited(seconds int) *refusal {
	return &refusal{code: "ratelimited", retryAfter: seconds}
}

// userGroup is a group of users.
type userGroup struct{ id, handle string }

type channel struct {
	id       string
	kind     string
	name     string
	topic    string
	purpose  string
	members  []string
	hasBot   bool
	archived bool

	messages      []*message
	byTS          map[string]*message
	statuses      map[string]Status // by thread
	sessions      map[string]string // statuses by thread
	titles        map[string]string // by thread
	prompts       []Prompt
	statusHistory []Status
	answerCount   int
}

// message is a message of a channel. parent is the first message of its thread, or nil.
type message struct {
	ts                string
	parent            *message
	user              string
	fromBot           bool   // of the app
	otherBotID        string // id of another bot that wrote the message
	subtype           string
	text              string
	blocks            []byte
	viewing           string // the channel that the user looked at
	pasted            []byte // the blocks of a pasted table
	files             []*file
	replies           []string
	replyUsers        []string
	broadcast         bool
	ephemeral         string // id of the only user who sees the message
	sent              time.Time
	edited            time.Time
	edits             []Edit
	deleted           bool
	botReactions      []string
	userReactions     []reaction // reactions of users
	droppedResponses  int
	attachments       []any // forwarded messages, pasted tables, and those of apps
	metadata          *metadata
	detectsBroadcasts bool // plain words such as @here are broadcasts
	stream            *stream
}

// teamOf returns the id of a user's workspace.
func (w *world) teamOf(user string) string {
	if u := w.users[user]; u != nil && u.Team != "" {
		return u.Team
	}
	return w.cfg.Team
}

// isShared reports whether users of other workspaces are in a channel.
func (w *world) isShared(c *channel) bool {
	return c != nil && slices.ContainsFunc(c.members, func(user string) bool { return w.teamOf(user) != w.cfg.Team })
}

func (m *message) threadTS() string {
	switch {
	case m.parent != nil:
		return m.parent.ts
	case len(m.replies) > 0:
		return m.ts
	}
	return ""
}

// nextTS returns the next ts, which is also the id of a message.
func (w *world) nextTS() string {
	w.lastStamp = max(w.lastStamp+1, w.cfg.Now().UnixMicro())
	return fmt.Sprintf("%d.%06d", w.lastStamp/1e6, w.lastStamp%1e6)
}

// newID returns a new id in the service's form.
func (w *world) newID(prefix string) string {
	w.lastID++
	return fmt.Sprintf("%s0E%07d", prefix, w.lastID)
}

// addMessage adds a message to its channel and emits the event.
func (w *world) addMessage(c *channel, m *message) {
	m.ts = w.nextTS()
	m.sent = w.cfg.Now()
	c.messages = append(c.messages, m)
	c.byTS[m.ts] = m
	if p := m.parent; p != nil && m.ephemeral == "" {
		p.replies = append(p.replies, m.ts)
		if !slices.Contains(p.replyUsers, m.user) {
			p.replyUsers = append(p.replyUsers, m.user)
		}
	}
	w.countAnswer(c, m, 1)
	if len(c.messages) > w.cfg.MaxMessages {
		gone := c.messages[0]
		delete(c.byTS, gone.ts)
		w.countAnswer(c, gone, -1)
		c.messages[0] = nil
		c.messages = c.messages[1:]
	}
	w.emit(event{Kind: EventMessage, Chat: c.id, Message: m.ts}, c, m)
}

// emit sends an event to the observers, with the current state of the message, if any.
func (w *world) emit(e event, c *channel, m *message) {
	var look func() Message
	if m != nil {
		look = func() Message { return w.observedMessage(c, m) }
	}
	w.hub.Emit(e, look)
}

// countAnswer adds n to the counts of answers if the message is an answer of the bot.
func (w *world) countAnswer(c *channel, m *message, n int) {
	if m.fromBot && !m.deleted {
		c.answerCount += n
		w.answerCount += n
	}
}

// findChannel returns the channel with the given id, or the DM with a user's id. It refuses channels
// without the bot and, with write, archived ones.
func (w *world) findChannel(id string, write bool) (*channel, *refusal) {
	if id == "" {
		return nil, newRefusal("channel_not_found") // its page
	}
	if _, ok := w.users[id]; ok && id != w.cfg.BotUser {
		return w.openDM(id), nil
	}
	c := w.channels[id]
	switch {
	case c == nil, !c.hasBot && c.kind != public:
		return nil, newRefusal("channel_not_found") // its page
	case !c.hasBot:
		return nil, newRefusal("not_in_channel") // its page
	case c.archived && write:
		return nil, newRefusal("is_archived") // its page
	}
	return c, nil
}

// openDM returns the DM of the bot with a user. It creates the DM if necessary.
func (w *world) openDM(user string) *channel {
	for _, id := range w.channelOrder {
		if c := w.channels[id]; c.kind == DM && c.hasBot && slices.Contains(c.members, user) {
			return c
		}
	}
	return w.addChannel(ChannelSpec{Kind: DM, Members: []string{user}})
}

func (w *world) addChannel(spec ChannelSpec) *channel {
	if spec.ID == "" {
		prefix := "C"
		if spec.Kind == DM {
			prefix = "D"
		}
		spec.ID = w.newID(prefix)
	}
	c := &channel{
		id: spec.ID, kind: spec.Kind, name: spec.Name, topic: spec.Topic, purpose: spec.Purpose, members: slices.Clone(spec.Members), hasBot: !spec.WithoutBot,
		byTS: map[string]*message{}, statuses: map[string]Status{}, sessions: map[string]string{}, titles: map[string]string{},
	}
	if c.name == "" && c.kind != DM {
		c.name = strings.ToLower(c.id)
	}
	w.channels[c.id] = c
	w.channelOrder = append(w.channelOrder, c.id)
	w.hub.Wake()
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
	case groupDM:
		return "mpim:" + what
	}
	return "channels:" + what
}

// currentStatus returns the current status of a thread. A reply clears it, and it expires.
func (w *world) currentStatus(c *channel, thread string) (Status, bool) {
	st, ok := c.statuses[thread]
	return st, ok && w.cfg.Now().Sub(st.At) < maxStatusAge
}

// setStatus sets a status, or clears it if the text is empty. If asked is set, the bot has called for
// it, and the status history has it.
func (w *world) setStatus(ch *channel, thread, text string, asked bool) {
	st := Status{Channel: ch.id, Thread: thread, Text: text, At: w.cfg.Now()}
	if text == "" {
		delete(ch.statuses, thread)
	} else {
		ch.statuses[thread] = st
	}
	if asked && len(ch.statusHistory) < w.cfg.MaxMessages {
		ch.statusHistory = append(ch.statusHistory, st)
	}
	w.emit(event{Kind: eventStatus, Chat: ch.id, Message: thread, Text: text}, nil, nil)
}

package slack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kinds of channels, as channel_type has them.
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
	// Team is another workspace that the person is of; a channel they are in is shared
	// with it.
	Team string `json:"team"`
}

// world is what the service knows: people, channels, files. Guarded by Server.mu.
type world struct {
	users     map[string]*User
	channels  map[string]*channel
	order     []string // channels as they were made
	nextID    int
	lastStamp int64 // microseconds
	files     fileStore
	responses map[string]*response
	answers   int
	homes     map[string]json.RawMessage // views, by user
	homeless  bool                       // the app has no Home tab
}

func newWorld() world {
	return world{
		users: map[string]*User{}, channels: map[string]*channel{},
		files: newFileStore(), responses: map[string]*response{}, homes: map[string]json.RawMessage{},
	}
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
	sessions map[string]string // their status, by thread
	titles   map[string]string // by thread
	prompts  []Prompt
	history  []Status
	answers  int
}

// message is a message of a channel. parent is that of its thread, or nil.
type message struct {
	ts        string
	parent    *message
	user      string
	bot       bool   // ours
	otherBot  string // an id of somebody else's
	subtype   string
	text      string
	blocks    []byte
	files     []*file
	replies   []string
	replyFrom []string
	broadcast bool
	ephemeral string // for whom
	sent      time.Time
	edited    time.Time
	edits     []Edit
	deleted   bool
	react     []string
	theirs    []reaction // of people
	cut       int
	unfurled  bool
	attached  []any // messages that it shares or links to
	loose     bool  // plain words may be mentions
	stream    *stream
}

// teamOf is the workspace of a user.
func (s *Server) teamOf(user string) string {
	if u := s.users[user]; u != nil && u.Team != "" {
		return u.Team
	}
	return s.cfg.Team
}

// isShared says whether people of other workspaces are in a channel.
func (s *Server) isShared(c *channel) bool {
	return c != nil && slices.ContainsFunc(c.members, func(user string) bool { return s.teamOf(user) != s.cfg.Team })
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

// stamp gives the next ts, which is also the id of a message.
func (s *Server) stamp() string {
	s.lastStamp = max(s.lastStamp+1, s.cfg.Now().UnixMicro())
	return fmt.Sprintf("%d.%06d", s.lastStamp/1e6, s.lastStamp%1e6)
}

// id gives an id as the service makes them.
func (s *Server) id(prefix string) string {
	s.nextID++
	return fmt.Sprintf("%s0E%07d", prefix, s.nextID)
}

// add puts a message into its channel and tells the observers.
func (s *Server) add(c *channel, m *message) {
	m.ts = s.stamp()
	m.sent = s.cfg.Now()
	c.messages = append(c.messages, m)
	c.byTS[m.ts] = m
	if p := m.parent; p != nil && m.ephemeral == "" {
		p.replies = append(p.replies, m.ts)
		if !slices.Contains(p.replyFrom, m.user) {
			p.replyFrom = append(p.replyFrom, m.user)
		}
	}
	s.tally(c, m, 1)
	if len(c.messages) > s.cfg.MaxMessages {
		gone := c.messages[0]
		delete(c.byTS, gone.ts)
		s.tally(c, gone, -1)
		c.messages[0] = nil
		c.messages = c.messages[1:]
	}
	s.emit(Event{Kind: EventMessage, Chat: c.id, Message: m.ts}, c, m)
}

// tally counts the messages of the bot that stand.
func (s *Server) tally(c *channel, m *message, n int) {
	if m.bot && !m.deleted {
		c.answers += n
		s.answers += n
	}
}

// find looks a channel up as the methods do: by its id, or by a user's for the DM
// with them. Where write is set, it also refuses those the bot cannot write to.
func (s *Server) find(id string, write bool) (*channel, *apiError) {
	if id == "" {
		return nil, refuse("channel_not_found") // its page
	}
	if _, ok := s.users[id]; ok && id != s.cfg.BotUser {
		return s.openDM(id), nil
	}
	c := s.channels[id]
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

// openDM finds or makes the DM of the bot with a user.
func (s *Server) openDM(user string) *channel {
	for _, id := range s.order {
		if c := s.channels[id]; c.kind == DM && c.botIn && slices.Contains(c.members, user) {
			return c
		}
	}
	return s.makeChannel(ChannelSpec{Kind: DM, Members: []string{user}})
}

func (s *Server) makeChannel(spec ChannelSpec) *channel {
	if spec.ID == "" {
		prefix := "C"
		if spec.Kind == DM {
			prefix = "D"
		}
		spec.ID = s.id(prefix)
	}
	c := &channel{
		id: spec.ID, kind: spec.Kind, name: spec.Name, members: slices.Clone(spec.Members), botIn: !spec.WithoutBot,
		byTS: map[string]*message{}, statuses: map[string]Status{}, sessions: map[string]string{}, titles: map[string]string{},
	}
	if c.name == "" && c.kind != DM {
		c.name = strings.ToLower(c.id)
	}
	s.channels[c.id] = c
	s.order = append(s.order, c.id)
	s.hub.Changed()
	return c
}

// kindScope is the scope that reading a channel, or what is said there, takes
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

// status is the status that stands in a thread: a reply clears it, and so does time.
func (s *Server) status(c *channel, thread string) (Status, bool) {
	st, ok := c.statuses[thread]
	return st, ok && s.cfg.Now().Sub(st.At) < statusAge
}

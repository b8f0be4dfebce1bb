package telegram

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oneclaw/internal/emulator/telegram/markup"
)

// Sent names what an act of a person made.
type Sent struct {
	// Chat and Message name the message.
	Chat    int64 `json:"chat"`
	Message int64 `json:"message"`
	// Update is the update's id, 0 where the bot does not want that kind or is not
	// in the chat.
	Update int64 `json:"update"`
	// Callback is the id of the callback query of a press.
	Callback string `json:"callback,omitempty"`
}

// ChatSpec describes a chat to make.
type ChatSpec struct {
	// ID is the chat's id. 0 means the next free one; a private chat has its user's.
	ID int64 `json:"id"`
	// Kind is Private, Group or Supergroup.
	Kind string `json:"kind"`
	// Title is the name of a group.
	Title string `json:"title"`
	// User is the user of a private chat, and the creator of a group.
	User int64 `json:"user"`
	// Forum turns topics on: in a supergroup, or in a private chat whose owner
	// enabled them.
	Forum bool `json:"forum"`
	// Members and Admins are users of a group besides its creator.
	Members []int64 `json:"members"`
	Admins  []int64 `json:"admins"`
	// BotAdmin makes the bot an administrator.
	BotAdmin bool `json:"bot_admin"`
}

// Attachment is a file that a person sends.
type Attachment struct {
	// Kind is KindDocument, KindPhoto, KindVoice, KindAudio or KindRound. Empty means a
	// document.
	Kind string `json:"kind"`
	// Name and MIME are what the person's app tells.
	Name string `json:"name"`
	MIME string `json:"mime"`
	// Data is the file.
	Data []byte `json:"data"`
	// Size may pretend to more bytes than Data has.
	Size int `json:"size"`
	// Seconds is how long a sound or video lasts.
	Seconds int `json:"seconds"`
}

// SayOptions are the details of a message of a person.
type SayOptions struct {
	// Thread is the topic. 0 is the chat itself, or General.
	Thread int64 `json:"thread"`
	// ReplyTo is the message replied to.
	ReplyTo int64 `json:"reply_to"`
	// Pointers say what else the message points at.
	Pointers
	// Attachment makes the text a caption.
	Attachment *Attachment `json:"attachment"`
	// Album joins messages with the same value into one album.
	Album string `json:"album"`
	// Entities overrides those found in the text.
	Entities []Entity `json:"entities"`
}

// AddUser makes a person known. An ID of 0 gets the next free one.
func (s *Server) AddUser(u User) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.ID == 0 {
		for s.nextUser++; s.users[s.nextUser] != nil; s.nextUser++ {
			continue
		}
		u.ID = s.nextUser
	}
	if u.FirstName == "" {
		u.FirstName = fmt.Sprintf("User %d", u.ID)
	}
	s.users[u.ID] = &u
	return u
}

// AddChat makes a chat and returns its id. The bot is in it, without an update.
func (s *Server) AddChat(spec ChatSpec) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &chat{
		id: spec.ID, kind: spec.Kind, title: spec.Title, forum: spec.Forum, botAdmin: spec.BotAdmin,
		topics: map[int64]string{}, closed: map[int64]bool{}, members: map[int64]string{}, byID: map[int64]*message{}, drafts: map[int64]Draft{},
	}
	switch spec.Kind {
	case Private:
		c.id, c.title, c.user = spec.User, "", s.users[spec.User]
		if c.user == nil {
			return 0, fmt.Errorf("telegram emulator: private chat with unknown user %d", spec.User)
		}
	case Group, Supergroup:
		if err := s.fillGroup(c, spec); err != nil {
			return 0, err
		}
	default:
		return 0, fmt.Errorf("telegram emulator: unknown kind of chat %q", spec.Kind)
	}
	if s.chats[c.id] != nil {
		return 0, fmt.Errorf("telegram emulator: chat %d exists", c.id)
	}
	if c.forum {
		c.topics[generalTopic] = "General"
	}
	s.chats[c.id] = c
	s.order = append(s.order, c.id)
	s.hub.Changed()
	return c.id, nil
}

func (s *Server) fillGroup(c *chat, spec ChatSpec) error {
	if spec.Forum && spec.Kind != Supergroup {
		return errors.New("telegram emulator: only supergroups and private chats have topics")
	}
	if c.id == 0 && spec.Kind == Group {
		s.nextGroup--
		c.id = s.nextGroup
	} else if c.id == 0 {
		s.nextSuper--
		c.id = s.nextSuper
	}
	if c.id >= 0 {
		return fmt.Errorf("telegram emulator: id %d of a group is not negative", c.id)
	}
	add := func(status string, ids ...int64) error {
		for _, id := range ids {
			if s.users[id] == nil {
				return fmt.Errorf("telegram emulator: unknown member %d", id)
			}
			c.members[id] = status
		}
		return nil
	}
	err := errors.Join(add(Member, spec.Members...), add(Administrator, spec.Admins...))
	if spec.User != 0 {
		err = errors.Join(err, add(Creator, spec.User))
	}
	return err
}

// AddTopic opens a topic in a forum and returns its id.
func (s *Server) AddTopic(chatID int64, name string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil || !c.forum {
		return 0, fmt.Errorf("telegram emulator: chat %d has no topics", chatID)
	}
	id := max(s.newID(c), generalTopic+1)
	c.next = max(c.next, id)
	c.topics[id] = name
	return id, nil
}

// DeleteTopic removes a topic: what is sent to it from now on is refused.
func (s *Server) DeleteTopic(chatID, topic int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil || c.topics[topic] == "" {
		return fmt.Errorf("telegram emulator: no topic %d in chat %d", topic, chatID)
	}
	delete(c.topics, topic)
	return nil
}

// CloseTopic has an administrator close a topic: only administrators write there.
func (s *Server) CloseTopic(chatID, topic int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil || c.topics[topic] == "" {
		return fmt.Errorf("telegram emulator: no topic %d in chat %d", topic, chatID)
	}
	c.closed[topic] = true
	return nil
}

// SetMember changes the status of a person in a group, without an update.
func (s *Server) SetMember(chatID, userID int64, status string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, _, err := s.person(chatID, userID)
	if err != nil {
		return err
	}
	c.members[userID] = status
	return nil
}

// person finds a chat and a user.
func (s *Server) person(chatID, userID int64) (*chat, *User, error) {
	c, u := s.chats[chatID], s.users[userID]
	if c == nil {
		return nil, nil, fmt.Errorf("telegram emulator: unknown chat %d", chatID)
	}
	if u == nil {
		return nil, nil, fmt.Errorf("telegram emulator: unknown user %d", userID)
	}
	return c, u, nil
}

// Say has a person write a message. In a group the person must be a member.
// A nil opts is a plain text.
func (s *Server) Say(chatID, userID int64, text string, opts *SayOptions) (Sent, error) {
	if opts == nil {
		opts = &SayOptions{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u, err := s.speaker(chatID, userID)
	if err != nil {
		return Sent{}, err
	}
	m := &message{from: *u, thread: opts.Thread, album: opts.Album}
	m.body = markup.Text{Plain: text, Source: text, Entities: opts.Entities}
	if m.body.Entities == nil {
		m.body.Entities = markup.Detect(text)
	}
	if opts.Thread == generalTopic {
		m.thread = 0
	} else if opts.Thread != 0 && c.topics[opts.Thread] == "" {
		return Sent{}, fmt.Errorf("telegram emulator: no topic %d in chat %d", opts.Thread, chatID)
	}
	if opts.ReplyTo != 0 {
		if m.replyTo = c.byID[opts.ReplyTo]; m.replyTo == nil {
			return Sent{}, fmt.Errorf("telegram emulator: no message %d in chat %d", opts.ReplyTo, chatID)
		}
	}
	if err := s.pointAt(m, opts.Pointers); err != nil {
		return Sent{}, err
	}
	if a := opts.Attachment; a != nil {
		kind := a.Kind
		if kind == "" {
			kind = KindDocument
		}
		m.file = s.files.put(kind, a.Name, a.MIME, slices.Clone(a.Data), a.Size, s.cfg.MaxFiles)
		m.file.seconds = a.Seconds
	} else if text == "" {
		return Sent{}, errors.New("telegram emulator: a message needs a text or a file")
	}
	s.add(c, m)
	return s.tell(c, m, "message"), nil
}

// speaker finds a person who may write in a chat.
func (s *Server) speaker(chatID, userID int64) (*chat, *User, error) {
	c, u, err := s.person(chatID, userID)
	if err != nil {
		return nil, nil, err
	}
	switch st := c.members[userID]; {
	case c.migrated != 0:
		return nil, nil, fmt.Errorf("telegram emulator: chat %d has become %d", chatID, c.migrated)
	case c.kind == Private && c.user.ID != userID,
		c.kind != Private && (st == "" || st == Left || st == Kicked):
		return nil, nil, fmt.Errorf("telegram emulator: user %d is not in chat %d", userID, chatID)
	}
	return c, u, nil
}

// tell queues the update of a message where the bot sees it.
func (s *Server) tell(c *chat, m *message, kind string) Sent {
	sent := Sent{Chat: c.id, Message: m.id}
	if c.isBotMember() && s.sees(c, m) {
		sent.Update = s.push(kind, m.wire(c, true))
	}
	return sent
}

// sees says whether the bot gets a message: in a group all of them without privacy mode or
// as an administrator, else commands that are not another bot's, replies to it, and what
// the chat itself tells (core.telegram.org/bots/features#privacy-mode). That mentions are
// among them is what BotFather says where it is asked about the mode.
func (s *Server) sees(c *chat, m *message) bool {
	if c.kind == Private || s.cfg.ReadsAll || c.botAdmin || m.migTo != 0 || m.migFrom != 0 {
		return true
	}
	if m.replyTo != nil && m.replyTo.from.ID == s.bot.ID {
		return true
	}
	return slices.ContainsFunc(m.body.Entities, func(e Entity) bool {
		part := markup.Cut(m.body.Plain, e.Offset, e.Length)
		switch e.Type {
		case "mention":
			return strings.EqualFold(part, "@"+s.bot.Username)
		case "text_mention":
			return e.User != nil && e.User.ID == s.bot.ID
		case "bot_command":
			_, target, named := strings.Cut(part, "@")
			return e.Offset == 0 && (!named || strings.EqualFold(target, s.bot.Username))
		}
		return false
	})
}

// SayAlbum has a person send pictures or files at once, as messages of one album of which
// the first has the caption.
func (s *Server) SayAlbum(chatID, userID int64, caption string, items ...Attachment) ([]Sent, error) {
	s.mu.Lock()
	s.albums++
	album := strconv.Itoa(13_000_000_000 + s.albums)
	s.mu.Unlock()
	var all []Sent
	for i := range items {
		sent, err := s.Say(chatID, userID, caption, &SayOptions{Attachment: &items[i], Album: album})
		if err != nil {
			return all, err
		}
		all, caption = append(all, sent), ""
	}
	return all, nil
}

// Edit has a person change a text or caption they wrote.
func (s *Server) Edit(chatID, messageID int64, text string) (Sent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil || c.byID[messageID] == nil {
		return Sent{}, fmt.Errorf("telegram emulator: no message %d in chat %d", messageID, chatID)
	}
	m := c.byID[messageID]
	if m.from.IsBot {
		return Sent{}, errors.New("telegram emulator: people cannot edit what the bot wrote")
	}
	if len(m.edits) < maxEdits {
		m.edits = append(m.edits, Edit{At: s.cfg.Now(), Text: m.body.Plain})
	}
	m.body = markup.Typed(text)
	m.edited = s.cfg.Now()
	s.emit(Event{Kind: EventEdit, Chat: c.id, Message: m.id}, c, m)
	return s.tell(c, m, "edited_message"), nil
}

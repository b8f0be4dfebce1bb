package telegram

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/telegram/markup"
)

// Sent identifies the result of a user's action.
type Sent struct {
	// Chat and Message identify the message.
	Chat    int64 `json:"chat"`
	Message int64 `json:"message"`
	// Update is the id of the update, or 0 if the bot did not request its kind or is not in the chat.
	Update int64 `json:"update"`
	// Callback is the id of the callback query of a button press.
	Callback string `json:"callback,omitempty"`
}

// Attachment is a file that a user sends.
type Attachment struct {
	// Kind is KindDocument, KindPhoto, KindVoice, KindAudio or kindRound. Empty means a document.
	Kind string `json:"kind"`
	// Name and MIME are from the user's app.
	Name string `json:"name"`
	MIME string `json:"mime"`
	// Data is the content of the file.
	Data []byte `json:"data"`
	// Size may exceed the length of Data.
	Size int `json:"size"`
	// Seconds is the duration of a recording or video.
	Seconds int `json:"seconds"`
}

// SayOptions are the details of a user's message.
type SayOptions struct {
	// Thread is the id of the topic. 0 means the chat itself, or General. In the direct messages of a channel
	// only administrators need it.
	Thread int64 `json:"thread"`
	// ReplyTo is the id of the message to which this one replies; 0 if there is none.
	ReplyTo int64 `json:"reply_to"`
	// References are the other messages that the message refers to.
	References
	// Attachment makes the text a caption.
	Attachment *Attachment `json:"attachment"`
	// Contents are what the user sends instead of words: a place, a contact, a poll or a sticker.
	Contents *Contents `json:"contents"`
	// Album joins messages with the same value into one album.
	Album string `json:"album"`
	// Anonymous makes an administrator write in the name of the group.
	Anonymous bool `json:"anonymous"`
	// Entities replace the detected entities.
	Entities []Entity `json:"entities"`
}

// groupAnonymousBot is the sender of messages in the name of a group, and channelBot of those in the name of a channel,
// beside their sender_chat (core.telegram.org/bots/api#message).
var (
	groupAnonymousBot = User{ID: 1087968824, FirstName: "Group", IsBot: true, Username: "GroupAnonymousBot"}
	channelBot        = User{ID: 136817688, FirstName: "Channel", IsBot: true, Username: "Channel_Bot"}
)

// people acts for the users, whose actions send updates to the bot.
type people struct {
	world         *world
	updates       *queue
	noPrivacyMode bool // the bot gets all messages of its groups
}

// Say writes a message as a user, who must be a member of the chat. A nil opts means a plain text.
func (p *people) Say(chatID, userID int64, text string, opts *SayOptions) (Sent, error) {
	if opts == nil {
		opts = &SayOptions{}
	}
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	c, u, err := p.world.findWriter(chatID, userID)
	if err != nil {
		return Sent{}, err
	}
	m := &message{from: *u, thread: opts.Thread, album: opts.Album, body: markup.NewText(text)}
	if opts.Entities != nil {
		m.body.Entities = opts.Entities
	}
	if c.direct {
		if err := p.world.setDirectTopic(c, m, opts.Thread); err != nil {
			return Sent{}, err
		}
	} else if opts.Thread == generalTopic {
		m.thread = 0
	} else if opts.Thread != 0 && c.topics[opts.Thread] == "" {
		return Sent{}, fmt.Errorf("telegram emulator: no topic %d in chat %d", opts.Thread, chatID)
	}
	if opts.Anonymous {
		if status := c.members[userID]; status != Administrator && status != Creator {
			return Sent{}, fmt.Errorf("telegram emulator: user %d does not administer chat %d", userID, chatID)
		}
		group := c.apiChat()
		m.senderChat = &group
	}
	if opts.ReplyTo != 0 {
		if m.replyTo = c.byID[opts.ReplyTo]; m.replyTo == nil {
			return Sent{}, fmt.Errorf("telegram emulator: no message %d in chat %d", opts.ReplyTo, chatID)
		}
	}
	if err := p.world.setReferences(m, opts.References); err != nil {
		return Sent{}, err
	}
	if a := opts.Attachment; a != nil {
		m.file = p.world.files.add(cmp.Or(a.Kind, KindDocument), a.Name, a.MIME, slices.Clone(a.Data), a.Size)
		m.file.seconds = a.Seconds
	} else if m.contents = opts.Contents; text == "" && opts.Contents == nil {
		return Sent{}, errors.New("telegram emulator: a message needs a text, a file or other contents")
	}
	p.world.addMessage(c, m)
	return p.notify(c, m, "message"), nil
}

// setDirectTopic sets the topic of a user's message in the direct messages of a channel.
func (w *world) setDirectTopic(c *chat, m *message, topic int64) error {
	m.thread = m.from.ID
	if status := c.members[m.from.ID]; status == Administrator || status == Creator {
		m.thread = topic
		m.senderChat = c.channel()
	}
	if m.topicUser = w.users[m.thread]; m.topicUser == nil {
		return fmt.Errorf("telegram emulator: no topic %d in chat %d", m.thread, c.id)
	}
	c.topics[m.thread] = m.topicUser.FirstName
	return nil
}

// channel returns the channel to which a chat of direct messages belongs. Its administrators write there in its name, bots
// too (core.telegram.org/method/channels.getMessageAuthor).
func (c *chat) channel() *botapi.Chat {
	return &botapi.Chat{ID: -1007777777777, Type: "channel", Title: cmp.Or(c.title, "Channel")}
}

// notify queues the update for a message if the bot sees the message. It queues an edit only if the bot
// got the message (source: core.telegram.org/bots/api#update, edited_message).
func (p *people) notify(c *chat, m *message, kind string) Sent {
	sent := Sent{Chat: c.id, Message: m.id}
	if c.isBotMember() && p.isVisibleToBot(c, m) && (kind == "message" || m.sentToBot) {
		m.sentToBot = true
		sent.Update = p.updates.push(kind, m.apiMessage(c, true))
	}
	return sent
}

// isVisibleToBot reports whether the bot gets a message. In a group it gets all of them without privacy
// mode or as an administrator, otherwise commands that are not for another bot, replies to the bot, and
// service messages (core.telegram.org/bots/features#privacy-mode). It also gets mentions, as BotFather
// says about privacy mode.
func (p *people) isVisibleToBot(c *chat, m *message) bool {
	if c.kind == Private || p.noPrivacyMode || c.botAdmin || m.migratedTo != 0 || m.migratedFrom != 0 {
		return true
	}
	if m.replyTo != nil && m.replyTo.from.ID == p.world.bot.ID {
		return true
	}
	return slices.ContainsFunc(m.body.Entities, func(e Entity) bool {
		part := markup.EntityText(m.body.Plain, e.Offset, e.Length)
		switch e.Type {
		case "mention":
			return strings.EqualFold(part, "@"+p.world.bot.Username)
		case "text_mention":
			return e.User != nil && e.User.ID == p.world.bot.ID
		case "bot_command":
			_, target, named := strings.Cut(part, "@")
			return e.Offset == 0 && (!named || strings.EqualFold(target, p.world.bot.Username))
		}
		return false
	})
}

// SayAlbum sends pictures or files as an album, as a user. The first one has the caption.
func (p *people) SayAlbum(chatID, userID int64, caption string, items ...Attachment) ([]Sent, error) {
	p.world.mu.Lock()
	p.world.albumCount++
	album := strconv.Itoa(13_000_000_000 + p.world.albumCount)
	p.world.mu.Unlock()
	var all []Sent
	for i := range items {
		sent, err := p.Say(chatID, userID, caption, &SayOptions{Attachment: &items[i], Album: album})
		if err != nil {
			return all, err
		}
		all, caption = append(all, sent), ""
	}
	return all, nil
}

// Edit edits the text or caption of a user's message.
func (p *people) Edit(chatID, messageID int64, text string) (Sent, error) {
	return p.edit(chatID, messageID, func(c *chat, m *message) { p.world.revise(c, m, markup.NewText(text), nil) })
}

// EditFile replaces the file and the caption of a user's message. A nil file leaves a text.
func (p *people) EditFile(chatID, messageID int64, text string, a *Attachment) (Sent, error) {
	return p.edit(chatID, messageID, func(c *chat, m *message) {
		if m.file = nil; a != nil {
			m.file = p.world.files.add(cmp.Or(a.Kind, KindDocument), a.Name, a.MIME, slices.Clone(a.Data), a.Size)
		}
		p.world.revise(c, m, markup.NewText(text), nil)
	})
}

func (p *people) edit(chatID, messageID int64, change func(c *chat, m *message)) (Sent, error) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	c := p.world.chats[chatID]
	if c == nil || c.byID[messageID] == nil {
		return Sent{}, fmt.Errorf("telegram emulator: no message %d in chat %d", messageID, chatID)
	}
	m := c.byID[messageID]
	if m.from.IsBot {
		return Sent{}, errors.New("telegram emulator: users cannot edit messages of the bot")
	}
	change(c, m)
	return p.notify(c, m, "edited_message"), nil
}

// SayLong sends a text of any length as a user. The client splits it into messages of at most
// 4,096 characters, each at the last space that fits, as the Android app does
// (ChatActivityEnterView.processSendingText).
func (p *people) SayLong(chatID, userID int64, text string, opts *SayOptions) ([]Sent, error) {
	const most = 4096
	var all []Sent
	for rest := []rune(text); len(rest) > 0; {
		n := min(most, len(rest))
		for k := n; n < len(rest) && k > n-300; k-- {
			if rest[k-1] == ' ' {
				n = k
				break
			}
		}
		sent, err := p.Say(chatID, userID, strings.TrimSpace(string(rest[:n])), opts)
		if err != nil {
			return all, err
		}
		all, rest = append(all, sent), rest[n:]
	}
	return all, nil
}

// DeleteBotMessage deletes a message of the bot for all members, as a user. Both users of a private chat
// may do that, and administrators of a group (telegram.org/faq, deleting messages). Bots get no update.
func (p *people) DeleteBotMessage(chatID, message int64) error {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	c := p.world.chats[chatID]
	if c == nil || c.byID[message] == nil || c.byID[message].from.ID != p.world.bot.ID {
		return fmt.Errorf("telegram emulator: no message %d of the bot in chat %d", message, chatID)
	}
	p.world.remove(c, c.byID[message])
	return nil
}

package telegram

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oneclaw/internal/emulator/telegram/markup"
)

// Sent identifies the result of a person's action.
type Sent struct {
	// Chat and Message identify the message.
	Chat    int64 `json:"chat"`
	Message int64 `json:"message"`
	// Update is the update's id, 0 if the bot does not want that kind or is not in the chat.
	Update int64 `json:"update"`
	// Callback is the id of the callback query of a press.
	Callback string `json:"callback,omitempty"`
}

// Attachment is a file that a person sends.
type Attachment struct {
	// Kind is KindDocument, KindPhoto, KindVoice, KindAudio or KindRound. Empty means a document.
	Kind string `json:"kind"`
	// Name and MIME are from the person's app.
	Name string `json:"name"`
	MIME string `json:"mime"`
	// Data is the file.
	Data []byte `json:"data"`
	// Size may exceed the length of Data.
	Size int `json:"size"`
	// Seconds is the length of a sound or video.
	Seconds int `json:"seconds"`
}

// SayOptions are the details of a person's message.
type SayOptions struct {
	// Thread is the topic. 0 is the chat itself, or General.
	Thread int64 `json:"thread"`
	// ReplyTo is the message replied to.
	ReplyTo int64 `json:"reply_to"`
	// Pointers are its other references.
	Pointers
	// Attachment makes the text a caption.
	Attachment *Attachment `json:"attachment"`
	// Album joins messages with the same value into one album.
	Album string `json:"album"`
	// Entities override the detected ones.
	Entities []Entity `json:"entities"`
}

// people acts for people in their apps, which the bot may be told of.
type people struct {
	world    *world
	updates  *queue
	readsAll bool // without privacy mode
}

// Say writes a message as a person, who must be a member of a group. A nil opts is a plain text.
func (p *people) Say(chatID, userID int64, text string, opts *SayOptions) (Sent, error) {
	if opts == nil {
		opts = &SayOptions{}
	}
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	c, u, err := p.world.speaker(chatID, userID)
	if err != nil {
		return Sent{}, err
	}
	m := &message{from: *u, thread: opts.Thread, album: opts.Album, body: markup.Typed(text)}
	if opts.Entities != nil {
		m.body.Entities = opts.Entities
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
	if err := p.world.pointAt(m, opts.Pointers); err != nil {
		return Sent{}, err
	}
	if a := opts.Attachment; a != nil {
		m.file = p.world.files.put(cmp.Or(a.Kind, KindDocument), a.Name, a.MIME, slices.Clone(a.Data), a.Size)
		m.file.seconds = a.Seconds
	} else if text == "" {
		return Sent{}, errors.New("telegram emulator: a message needs a text or a file")
	}
	p.world.add(c, m)
	return p.tell(c, m, "message"), nil
}

// tell queues the update of a message if the bot sees it; an edit only if it knows the message
// (source: core.telegram.org/bots/api#update, edited_message).
func (p *people) tell(c *chat, m *message, kind string) Sent {
	sent := Sent{Chat: c.id, Message: m.id}
	if c.isBotMember() && p.sees(c, m) && (kind == "message" || m.known) {
		m.known = true
		sent.Update = p.updates.push(kind, m.wire(c, true))
	}
	return sent
}

// sees reports whether the bot gets a message: in a group all of them without privacy mode or as
// an administrator, else commands that are not another bot's, replies to it, and service
// messages (core.telegram.org/bots/features#privacy-mode). Mentions are included, as BotFather
// says about the mode.
func (p *people) sees(c *chat, m *message) bool {
	if c.kind == Private || p.readsAll || c.botAdmin || m.migTo != 0 || m.migFrom != 0 {
		return true
	}
	if m.replyTo != nil && m.replyTo.from.ID == p.world.bot.ID {
		return true
	}
	return slices.ContainsFunc(m.body.Entities, func(e Entity) bool {
		part := markup.Cut(m.body.Plain, e.Offset, e.Length)
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

// SayAlbum sends pictures or files as an album as a person; the first has the caption.
func (p *people) SayAlbum(chatID, userID int64, caption string, items ...Attachment) ([]Sent, error) {
	p.world.mu.Lock()
	p.world.albums++
	album := strconv.Itoa(13_000_000_000 + p.world.albums)
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

// Edit edits a text or caption of a person's message.
func (p *people) Edit(chatID, messageID int64, text string) (Sent, error) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	c := p.world.chats[chatID]
	if c == nil || c.byID[messageID] == nil {
		return Sent{}, fmt.Errorf("telegram emulator: no message %d in chat %d", messageID, chatID)
	}
	m := c.byID[messageID]
	if m.from.IsBot {
		return Sent{}, errors.New("telegram emulator: people cannot edit what the bot wrote")
	}
	p.world.revise(c, m, markup.Typed(text), nil)
	return p.tell(c, m, "edited_message"), nil
}

// SayLong sends a text of any length as a person: the client splits it into messages of at most
// 4,096 characters, each at the last space that fits, like the Android app
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

// TakeAway deletes a message of the bot for everybody as a person: either side of a private chat
// may, and administrators of a group (telegram.org/faq, deleting messages). Bots are not told.
func (p *people) TakeAway(chatID, message int64) error {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	c := p.world.chats[chatID]
	if c == nil || c.byID[message] == nil || c.byID[message].from.ID != p.world.bot.ID {
		return fmt.Errorf("telegram emulator: no message %d of the bot in chat %d", message, chatID)
	}
	p.world.remove(c, c.byID[message])
	return nil
}

package telegram

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"oneclaw/bridge/chats"
	"oneclaw/internal/cache"
	"oneclaw/internal/rescue"
)

// event is the result of an update that is for the bot: a message, a move, feedback or a dead press.
type event struct {
	message *chats.Message
	// mayBeFirstMention is set for an edit that may be the first to mention the bot.
	mayBeFirstMention bool
	moved             *move
	// feedback has the ratings that a reaction adds and withdraws.
	feedback []chats.Message
	// deadPress is the id of a press that has no message to pass to the inbox. This package answers it.
	deadPress string
}

type move struct{ from, to chats.Chat }

// decoder converts updates to events for one bot.
type decoder struct {
	self         user
	commands     map[string]bool
	albums       albumStore
	forums       *cache.Cache[int64, bool]
	log          *slog.Logger
	wantsAmbient func(chats.Chat) bool
	api          *client // nil if Telegram's limits apply
}

// maxFile returns the size limit of a file.
func (d *decoder) maxFile() int64 {
	if d.api == nil {
		return maxFile
	}
	return d.api.maxFetch()
}

// decodedUpdate is an update with its decoded message.
type decodedUpdate struct {
	update
	message *message
	raw     json.RawMessage
	words   decodedText
	// received is the whole update.
	received json.RawMessage
}

// decodeBatch decodes updates independently, and returns their events with the greatest update id. An
// update that does not decode is logged, and only its id counts. known is false if no id was found. An
// error comes from the store of the albums, without which some messages for the bot would be missed.
func (d *decoder) decodeBatch(ctx context.Context, raws []json.RawMessage) (events []event, last int64, known bool, err error) {
	var list []*decodedUpdate
	for _, raw := range raws {
		var u *decodedUpdate
		var id int64
		err := rescue.Do(func() (err error) { u, id, err = d.decode(raw); return err })
		if err != nil {
			d.log.Error("update skipped: it does not decode", "update_id", id, "bytes", len(raw), "err", err)
		}
		if id > 0 {
			known = true
			last = max(last, id)
		}
		if err == nil {
			list = append(list, u)
		}
	}
	err = d.lookUpAlbums(ctx, list)
	if err == nil {
		list, err = d.addUndecided(ctx, list)
	}
	if err != nil {
		return nil, last, known, err
	}
	for _, u := range list {
		if id := u.message.largeFile(); id != "" && d.api != nil {
			d.api.learnIfLocal(ctx, id)
		}
		err := rescue.Do(func() error {
			if e, ok := d.convertUpdate(u); ok {
				events = append(events, e)
			}
			return nil
		})
		if err != nil {
			d.log.Error("update skipped: it cannot be converted", "update_id", u.ID, "err", err)
		}
	}
	return events, last, known, nil
}

// lookUpAlbums determines which albums, and which texts in pieces, are for the bot. Only one item of an
// album has the text that mentions the bot, not always the first. In a long text it is the first piece.
func (d *decoder) lookUpAlbums(ctx context.Context, list []*decodedUpdate) error {
	var others []*message
	var wanted []album
	var items []*decodedUpdate
	for _, u := range list {
		m := u.message
		if m == nil || m.Chat.Type == "private" || m.ID == 0 {
			continue
		}
		var err error
		switch forBot := d.isForBot(u); {
		case forBot:
			err = d.recordForBot(ctx, m)
		case m.MediaGroupID != "" || !isPresent(u.EditedMessage) && m.mayContinueText():
			others, wanted = append(others, m), append(wanted, m.albumKey())
			if m.MediaGroupID != "" && !isPresent(u.EditedMessage) && !m.isForeign() {
				items = append(items, u)
			}
		}
		if err != nil {
			return err
		}
	}
	// Items are kept before the look-up: another process records the album first, and then reads them.
	if err := d.keepUndecided(ctx, items); err != nil {
		return err
	}
	if err := d.albums.refresh(ctx, wanted...); err != nil {
		return err
	}
	for i, m := range others {
		if d.albums.known.Has(wanted[i]) {
			if err := d.recordForBot(ctx, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepUndecided keeps the items of albums that are not known to be for the bot.
func (d *decoder) keepUndecided(ctx context.Context, items []*decodedUpdate) error {
	var kept []undecidedItem
	for _, u := range items {
		if key := u.message.albumKey(); !d.albums.known.Has(key) {
			kept = append(kept, undecidedItem{u.ID, key, time.Now(), u.received})
		}
	}
	return d.albums.undecided.keep(ctx, kept...)
}

// addUndecided inserts, before each item that mentions the bot, the items of its album that arrived
// earlier. If a batch is passed again, the inbox drops those that it knows.
func (d *decoder) addUndecided(ctx context.Context, list []*decodedUpdate) (all []*decodedUpdate, err error) {
	added := map[album]bool{}
	for _, u := range list {
		if m := u.message; m != nil && m.MediaGroupID != "" && m.Chat.Type != "private" && !added[m.albumKey()] && d.mentionsBot(u) {
			added[m.albumKey()] = true
			raws, err := d.albums.undecided.find(ctx, m.albumKey())
			if err != nil {
				return nil, err
			}
			for _, raw := range raws {
				if earlier, _, err := d.decode(raw); err == nil { // it was decoded before
					all = append(all, earlier)
				}
			}
		}
		all = append(all, u)
	}
	return all, nil
}

// recordForBot records that the album of a message, or the rest of its text, is for the bot.
func (d *decoder) recordForBot(ctx context.Context, m *message) error {
	if m.MediaGroupID != "" {
		return d.albums.add(ctx, m.albumKey())
	}
	return d.albums.add(ctx, m.nextPieces()...)
}

// decode decodes an update and its message. With an error it still returns the update's id, or 0 if it
// cannot read that.
func (d *decoder) decode(raw json.RawMessage) (*decodedUpdate, int64, error) {
	u := &decodedUpdate{received: raw}
	if err := json.Unmarshal(raw, &u.update); err != nil {
		var alone struct {
			ID int64 `json:"update_id"`
		}
		_ = json.Unmarshal(raw, &alone) // 0 if this fails too
		return nil, alone.ID, err
	}
	u.raw = u.Message
	if isPresent(u.EditedMessage) {
		u.raw = u.EditedMessage
	}
	if !isPresent(u.raw) {
		return u, u.ID, nil
	}
	u.message = &message{}
	damaged, err := decodeLoosely(u.raw, u.message)
	if damaged && u.message.Chat.ID == 0 {
		err = errors.New("a message without a chat")
	}
	if err != nil {
		return nil, u.ID, err
	}
	u.message.damaged = damaged
	u.message.readContents(u.raw)
	u.words = d.self.decodeText(u.message.textAndEntities())
	return u, u.ID, nil
}

func isPresent(raw json.RawMessage) bool {
	return len(raw) > 0 && !bytes.Equal(raw, []byte("null"))
}

func (d *decoder) convertUpdate(u *decodedUpdate) (event, bool) {
	switch {
	case u.message != nil:
		return d.messageEvent(u)
	case u.Callback != nil && u.Callback.ID != "":
		return d.decodePress(u.Callback), true
	case u.Reaction != nil:
		said := u.Reaction.feedback()
		return event{feedback: said}, said != nil
	case u.MyChatMember != nil:
		m := u.MyChatMember
		d.log.Info("membership changed", "chat", m.Chat.ID, "by", m.From.ID, "status", m.New.Status)
	}
	return event{}, false
}

func (d *decoder) messageEvent(u *decodedUpdate) (event, bool) {
	m := u.message
	if m.Chat.ID == 0 {
		return event{}, false
	}
	if m.MigrateTo != 0 && m.MigrateTo != m.Chat.ID {
		return event{moved: &move{from: chatOf(m.Chat.ID), to: chatOf(m.MigrateTo)}}, true
	}
	if m.Chat.IsForum {
		d.forums.Put(m.Chat.ID, true, cache.Forever)
	}
	msg := d.convert(u)
	if msg == nil {
		return event{}, false
	}
	first := msg.Kind == chats.KindEdit && !msg.Direct && time.Since(time.Unix(m.Date, 0)) < maxFirstMentionAge
	return event{message: msg, mayBeFirstMention: first}, true
}

func chatOf(id int64) chats.Chat {
	return chats.Chat{Platform: platformName, ID: strconv.FormatInt(id, 10)}
}

// convert returns the message in an update, or nil if it is not for the bot.
func (d *decoder) convert(u *decodedUpdate) *chats.Message {
	m := u.message
	id, name, ok := m.sender()
	alone := m.ID == 0 // an ephemeral message, which the bot alone receives
	forBot := ok && (alone || d.isForBot(u))
	if !ok || !forBot && !d.isAmbientWanted(m) {
		return nil
	}
	msg := &chats.Message{
		Chat:     m.place(),
		Opener:   m.DirectTopic.opener(),
		ID:       strconv.FormatInt(m.ID, 10),
		Kind:     chats.KindText,
		User:     strconv.FormatInt(id, 10),
		UserName: name,
		Direct:   m.Chat.Type == "private",
		Text:     u.words.text,
		Time:     time.Unix(m.Date, 0).UTC(),
	}
	if alone {
		if isPresent(u.EditedMessage) {
			return nil // of which one, its id does not say
		}
		// Ephemeral messages all have the id 0. Their update ids distinguish them.
		msg.ID, msg.Alone = "u"+strconv.FormatInt(u.ID, 10), !msg.Direct
	}
	// Elsewhere a thread id is only the message that began a chain of replies.
	if m.IsTopic && m.ThreadID != 0 {
		msg.Chat.Thread = strconv.FormatInt(m.ThreadID, 10)
	}
	if isPresent(u.EditedMessage) {
		msg.Kind = chats.KindEdit
		msg.Time = time.Unix(cmp.Or(m.EditDate, m.Date), 0).UTC()
	}
	if msg.Kind == chats.KindText && !alone {
		msg.Group, msg.Cut = m.MediaGroupID, m.cut()
	}
	if !d.fillContents(u, msg) {
		return nil
	}
	if !forBot {
		msg.Kind = chats.KindAmbient
	}
	return msg
}

// fillContents fills in the contents of a message, and reports whether there are any. Service messages,
// such as a joined user or a changed title, have none.
func (d *decoder) fillContents(u *decodedUpdate, msg *chats.Message) bool {
	m := u.message
	if msg.Kind == chats.KindEdit && m.isLocation {
		return false // live locations are edited all the time
	}
	msg.Files, msg.Skipped = m.attachments(u.raw, d.maxFile())
	msg.Foreign = (m.isNamed || d.namesOthers(m)) && msg.Text != ""
	d.fillQuotes(m, msg)
	return msg.Text != "" || len(msg.Files)+len(msg.Skipped) > 0 || m.isForeign() && len(msg.Quoted) > 0
}

// namesOthers reports whether the text or the contents of a message name somebody other than the bot.
func (d *decoder) namesOthers(m *message) bool {
	return d.self.namesOthers(m.textAndEntities()) || slices.ContainsFunc(m.inner, func(t innerText) bool { return d.self.namesOthers(t.text, t.entities) })
}

// sender returns the author of a message. A message sent in the name of a chat (by an anonymous
// administrator, or by a user as their channel) is from that chat: the user that Telegram adds stands
// for all such senders. ok is false for messages of bots, posts in a channel, and posts that a linked
// channel forwards.
func (m *message) sender() (id int64, name string, ok bool) {
	switch {
	case m.AutoForward, m.Chat.Type == "channel":
		return 0, "", false
	case m.SenderChat != nil:
		s := m.SenderChat
		return s.ID, oneLine(cmp.Or(s.Title, s.Username)), s.ID != 0
	case m.From == nil, m.From.IsBot:
		return 0, "", false
	}
	return m.From.ID, m.From.name(), m.From.ID != 0
}

func (u user) name() string {
	return oneLine(cmp.Or(oneLine(u.FirstName+" "+u.LastName), u.Username))
}

// oneLine returns a name on one line.
func oneLine(name string) string {
	return strings.Join(strings.FieldsFunc(name, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
}

func (d *decoder) isForBot(u *decodedUpdate) bool {
	m := u.message
	if m.Chat.Type == "private" || m.isDirectMessage() {
		return true
	}
	return !m.isForeign() && d.albums.known.Has(m.albumKey()) || d.mentionsBot(u)
}

// mentionsBot reports whether a message in a group is for the bot regardless of the other items of its
// album or text. A foreign message never is: its author mentioned the bot, not its sender.
func (d *decoder) mentionsBot(u *decodedUpdate) bool {
	return !u.message.isForeign() && d.self.isForBot(u.message, u.words, d.commands)
}

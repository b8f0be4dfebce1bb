package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
)

// pointed returns the messages that a message shares or links to.
func (s self) pointed(m *message, channel string, name names) []chats.Quoted {
	if len(m.Attachments) == 0 {
		return nil
	}
	return s.reader(name).Read(m.Attachments, channel)
}

func (s self) reader(name names) quoteReader {
	return quoteReader{
		Own:  func(user string) bool { return s.wrote(user, "") },
		Name: name,
		Text: func(raw string) string { return s.plain(raw, name) },
		Time: stamp,
		Files: func(raw json.RawMessage) ([]chats.Attachment, []string) {
			var files []attachedFile
			_ = json.Unmarshal(raw, &files) // it comes from another author
			return readAttached(files)
		},
	}
}

// hugeThread is how far back a thread with more than threadPages pages is read.
const hugeThread = 24 * time.Hour

// ReadThread implements [chats.ThreadReader]. Slack returns a thread from its beginning.
func (p *Platform) ReadThread(ctx context.Context, m chats.Message, after string, limit int) ([]chats.Quoted, error) {
	me := p.me.Load()
	if me == nil { // jobs of a former run continue before the bot has connected
		who, err := p.api.whoAmI(ctx)
		if err != nil {
			return nil, err
		}
		me = &self{user: who.UserID, bot: who.BotID, name: who.User}
	}
	joined := after != ""
	found, more, err := me.readThread(ctx, p.api, m, after, limit, &joined)
	if oldest := strconv.FormatInt(m.Time.Add(-hugeThread).Unix(), 10) + ".000000"; more && err == nil && oldest > after {
		found, _, err = me.readThread(ctx, p.api, m, oldest, limit, &joined)
	}
	name := p.names(ctx)
	var list []chats.Quoted
	for i := range found {
		found[i].Files = p.api.known(ctx, found[i].Files)
		quotes := me.quote(&found[i].message, m.Chat.ID, name)
		if len(quotes) > 0 {
			quotes[0].Addressed = found[i].addressed
		}
		list = append(list, quotes...)
	}
	return list[max(0, len(list)-limit):], err
}

// reply is a message of a thread; addressed says that the bot receives it on its own.
type reply struct {
	message
	addressed bool
}

// readThread returns the last messages between two, and whether there are more pages than are read.
// Once the bot has joined, all that users say there is for it, even if the message with which it joined
// has not arrived.
func (s self) readThread(ctx context.Context, api *client, m chats.Message, after string, limit int, joined *bool) (found []reply, more bool, err error) {
	params := slack.GetConversationRepliesParameters{ChannelID: m.Chat.ID, Timestamp: m.Chat.Thread, Oldest: after, Latest: m.ID, Limit: threadPage}
	for range threadPages {
		page, err := ask(ctx, api, "conversations.replies", replies(&params))
		if err != nil {
			return found, false, err
		}
		for i := range page {
			// The first message of a thread is always returned, however old it is.
			if one := messageOf(page[i].Msg); one.TS < m.ID && (spoken(one.Subtype) || one.BotID != "") {
				person := one.fromPerson()
				called := s.isMentioned(one.Text) && (person || one.TS == m.Chat.Thread) // as in [search]
				*joined = *joined || called || s.wrote(one.User, one.BotID)
				if one.TS > after {
					found = append(found, reply{one, *joined && person})
				}
			}
		}
		found = found[max(0, len(found)-limit):]
		if params.Cursor == "" {
			return found, false, nil
		}
	}
	return found, true, nil
}

// quote returns a message of a thread, and the messages that it shares.
func (s self) quote(m *message, channel string, name names) []chats.Quoted {
	q := chats.Quoted{How: chats.PointThread, ID: m.TS, Own: s.wrote(m.User, m.BotID), Time: stamp(m.TS)}
	q.By, q.Text = s.saying(m, name)
	q.Files, q.Skipped = readAttached(m.Files)
	list := s.pointed(m, channel, name)
	if !q.Empty() {
		list = append([]chats.Quoted{q}, list...)
	}
	return chats.Bound(list)
}

// saying returns the author and the text of a message that is not for the bot. Programs also put their
// text into attachments.
func (s self) saying(m *message, name names) (by, text string) {
	text = s.plain(m.Text, name)
	if m.BotID != "" && !s.wrote(m.User, m.BotID) {
		text = strings.TrimSpace(text + "\n" + s.reader(name).Words(m.Attachments))
	}
	if by = cmp.Or(m.Username, m.Profile.Name); by == "" && m.User != "" {
		by = name(m.User)
	}
	return cmp.Or(by, m.BotID), text
}

// hears reports whether a message of a channel is wanted although it is not for the bot. Threads are
// read from Slack when the bot is mentioned there.
func (r *receiver) hears(m *message, msg *chats.Message) bool {
	listener, ok := r.in.(chats.AmbientInbox)
	return ok && m.ThreadTS == "" && listener.WantsAmbient(msg.Chat)
}

// naming returns names: without a look-up if the message is not for the bot.
func (r *receiver) naming(ctx context.Context, forBot bool) names {
	if forBot {
		return r.names(ctx)
	}
	return r.knownName
}

// UserName implements [chats.UserNamer].
func (p *Platform) UserName(ctx context.Context, user string) string {
	return p.askName(ctx, user, nameTimeout)
}

package slack

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"oneclaw/bridge/chats"
)

// quotedMessages returns the messages that a message shares or links to.
func (s identity) quotedMessages(m *message, channel string, name nameLookup) []chats.Quoted {
	if len(m.Attachments) == 0 {
		return nil
	}
	return s.newQuoteReader(name).Read(m.Attachments, channel)
}

func (s identity) newQuoteReader(name nameLookup) quoteReader {
	return quoteReader{
		isOwn: s.isOwn,
		name:  name,
		text:  func(raw string) string { return s.plainText(raw, name) },
		time:  parseTS,
	}
}

// maxThreadAge is how far back a thread with more than threadPages pages is read.
const maxThreadAge = 24 * time.Hour

// ReadThread implements [chats.ThreadReader]. Slack returns a thread from its beginning.
func (p *platform) ReadThread(ctx context.Context, m chats.Message, after string, limit int) ([]chats.Quoted, error) {
	me := p.me.Load()
	if me == nil { // jobs of an earlier run continue before the bot has connected
		who, err := p.api.whoAmI(ctx)
		if err != nil {
			return nil, err
		}
		me = &identity{user: who.UserID, bot: who.BotID, name: who.User}
	}
	joined := after != ""
	found, more, err := me.readThread(ctx, p.api, m, after, limit, &joined)
	if oldest := strconv.FormatInt(m.Time.Add(-maxThreadAge).Unix(), 10) + ".000000"; more && err == nil && oldest > after {
		found, _, err = me.readThread(ctx, p.api, m, oldest, limit, &joined)
	}
	name := p.nameLookup(ctx)
	var list []chats.Quoted
	for i := range found {
		found[i].Files = p.api.completeFiles(ctx, found[i].Files)
		quotes := me.quote(&found[i].message, m.Chat.ID, name)
		if len(quotes) > 0 {
			quotes[0].Addressed = found[i].addressed
		}
		list = append(list, quotes...)
	}
	return list[max(0, len(list)-limit):], err
}

// reply is a message in a thread. addressed is set if the bot also receives it as a message of its own.
type reply struct {
	message
	addressed bool
}

// readThread returns the last messages between after and m, and whether there are more pages than it
// reads. Once the bot has joined, all messages by users there are for it, even if the message with
// which it joined has not arrived.
func (s identity) readThread(ctx context.Context, api *client, m chats.Message, after string, limit int, joined *bool) (found []reply, more bool, err error) {
	q := messageQuery{channel: m.Chat.ID, thread: m.Chat.Thread, oldest: after, latest: m.ID, limit: threadPage}
	for range threadPages {
		page, err := api.readMessages(ctx, &q)
		if err != nil {
			return found, false, err
		}
		for i := range page {
			one := page[i].message
			if one.TS == "" {
				found = append(found, reply{message: one})
				continue
			}
			// The first message of a thread is always returned, however old it is.
			if one.TS < m.ID && (isUserSubtype(one.Subtype) || one.BotID != "") {
				person := one.isFromPerson()
				called := s.isMentioned(one.Text) && (person || one.TS == m.Chat.Thread) // as in [searchThread]
				*joined = *joined || called || s.isAuthor(one.User, one.BotID)
				if one.TS > after {
					found = append(found, reply{one, *joined && person})
				}
			}
		}
		found = found[max(0, len(found)-limit):]
		if q.cursor == "" {
			return found, false, nil
		}
	}
	return found, true, nil
}

// quote returns a message in a thread, and the messages that it shares.
func (s identity) quote(m *message, channel string, name nameLookup) []chats.Quoted {
	q := chats.Quoted{Kind: chats.RefThread, ID: m.TS, FromBot: s.isAuthor(m.User, m.BotID), Time: parseTS(m.TS)}
	q.By, q.Text = s.authorAndText(m, name)
	q.Files, q.Skipped = s.attached(m)
	list := s.quotedMessages(m, channel, name)
	if !q.Empty() {
		list = append([]chats.Quoted{q}, list...)
	}
	return chats.LimitQuotes(list)
}

// authorAndText returns the author and the text of a message that is not for the bot. The bot's own text
// says all that its blocks do.
func (s identity) authorAndText(m *message, name nameLookup) (by, text string) {
	text = s.plainText(m.Text, name)
	if !s.isAuthor(m.User, m.BotID) {
		left := maxQuotedContent - min(utf8.RuneCountInString(text), maxQuotedContent)
		text = strings.TrimSpace(text + "\n" + s.plainText(m.content(left), name))
	}
	if by = cmp.Or(m.Username, m.Profile.Name); by == "" && m.User != "" {
		by = name(m.User)
	}
	return cmp.Or(by, m.BotID), text
}

// wantsAmbient reports whether a message in a channel is wanted although it is not for the bot. Threads
// are read from Slack when the bot is mentioned there.
func (r *receiver) wantsAmbient(m *message, msg *chats.Message) bool {
	listener, ok := r.in.(chats.AmbientInbox)
	return ok && (m.ThreadTS == "" || m.ThreadTS == m.TS) && listener.WantsAmbient(msg.Chat) // one with replies is of the channel, too
}

// nameLookupFor returns a nameLookup, which uses only cached names if the message is not for the bot.
func (r *receiver) nameLookupFor(ctx context.Context, forBot bool) nameLookup {
	if forBot {
		return r.nameLookup(ctx)
	}
	return r.knownName
}

// UserName implements [chats.UserNamer].
func (p *platform) UserName(ctx context.Context, user string) string {
	return p.lookUpName(ctx, user, nameTimeout)
}

// ChatName implements [chats.ChatNamer].
func (p *platform) ChatName(ctx context.Context, chat chats.Chat) string {
	if isUserID(chat.ID) { // a direct chat
		return p.UserName(ctx, chat.ID)
	}
	if name := p.lookUpName(ctx, chat.ID, nameTimeout); name != chat.ID {
		return "#" + name
	}
	return ""
}

// UserZone implements [chats.UserZoner].
func (p *platform) UserZone(ctx context.Context, user string) string {
	id, _ := slackID(user)
	p.lookUpName(ctx, id, nameTimeout)
	known, _ := p.people.Get(id)
	return known.zone
}

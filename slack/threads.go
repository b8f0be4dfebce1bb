package slack

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
)

const (
	// lookupTimeout is how long the acceptance of a message may wait for a thread.
	lookupTimeout = 1500 * time.Millisecond
	// joinedAge is how long it is remembered that the bot takes part in a thread,
	// absentAge that it does not: another process of the bot may have answered there.
	joinedAge = 24 * time.Hour
	absentAge = time.Minute
	// ignoredAge is how long Slack may give an event again.
	ignoredAge = time.Hour
	// Threads are searched for the bot from their beginning, so far and no further.
	threadPage  = 200
	threadPages = 5
)

// thread is what is known of a thread.
type thread struct {
	// opener is the user who began it.
	opener string
	// joined is true where the bot takes part: it was mentioned in the first message
	// or has written.
	joined bool
	// looked is true where Slack was asked.
	looked bool
}

// join notes that the bot takes part in a thread. Other processes are told before what is
// said there next is confirmed: it may reach them.
func (p *Platform) join(ctx context.Context, chat chats.Chat, opener string) {
	if chat.Thread == "" {
		return
	}
	known, _ := p.threads.Get(chat)
	p.reach.Touch(chat)
	opener = cmp.Or(opener, known.opener)
	p.threads.Put(chat, thread{opener: opener, joined: true, looked: known.looked}, joinedAge)
	if p.leads == nil || known.joined && known.opener == opener {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	if err := p.reach.Join(ctx, chat, opener); err != nil {
		p.log.Warn("another process may miss what is said in a thread", "chat", chat.String(), "err", err)
	}
}

// recall is what is known of a thread without asking Slack: here, or by another process of
// the bot, which may have answered there since.
func (p *Platform) recall(ctx context.Context, chat chats.Chat) (known thread, ok bool) {
	known, ok = p.threads.Get(chat)
	if p.leads == nil || known.joined || chat.Thread == "" {
		return known, ok
	}
	opener, joined, err := p.reach.Joined(ctx, chat)
	if err != nil {
		p.log.Warn("not known whether another process takes part in a thread", "chat", chat.String(), "err", err)
	}
	if !joined {
		return known, ok
	}
	known = thread{opener: cmp.Or(known.opener, opener), joined: true, looked: known.looked}
	p.threads.Put(chat, known, joinedAge)
	return known, true
}

// thread looks a thread up. Where Slack refuses to tell, the bot takes no part in
// it; an error means that it may tell later.
func (p *Platform) thread(ctx context.Context, me self, chat chats.Chat) (thread, error) {
	if known, ok := p.recall(ctx, chat); ok && (known.looked || known.opener != "") {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := search(ctx, p.api, me, chat)
	known, _ := p.threads.Get(chat)
	if err != nil {
		var ce *callError
		if !errors.As(err, &ce) || ce.code == "" || transient(ce) {
			if known.joined {
				return known, nil // only who began it is not known
			}
			return thread{}, err
		}
		p.log.Warn("thread not readable: what is not a mention is not answered there", "chat", chat.String(), "err", err)
	}
	found.looked, found.joined = true, found.joined || known.joined
	age := absentAge
	if found.joined {
		age = joinedAge
	}
	p.threads.Put(chat, found, age)
	return found, nil
}

// search reads a thread until the bot is found in it.
func search(ctx context.Context, api *client, me self, chat chats.Chat) (thread, error) {
	var found thread
	params := slack.GetConversationRepliesParameters{ChannelID: chat.ID, Timestamp: chat.Thread, Limit: threadPage}
	for range threadPages {
		page, err := ask(ctx, api, "conversations.replies", replies(&params))
		if err != nil {
			return found, err
		}
		for _, m := range page {
			if m.Timestamp == chat.Thread {
				found.opener = m.User
				found.joined = me.isMentioned(m.Text) || slices.Contains(m.ReplyUsers, me.user)
			}
			found.joined = found.joined || me.wrote(m.User, m.BotID)
		}
		if found.joined || params.Cursor == "" {
			break
		}
	}
	return found, nil
}

// replies reads a page of a thread. Behind the last the cursor is empty.
func replies(params *slack.GetConversationRepliesParameters) func(context.Context, *slack.Client) ([]slack.Message, error) {
	return func(ctx context.Context, api *slack.Client) ([]slack.Message, error) {
		page, more, cursor, err := api.GetConversationRepliesContext(ctx, params)
		if params.Cursor = cursor; !more {
			params.Cursor = ""
		}
		return page, err
	}
}

func (s self) wrote(user, bot string) bool {
	return user != "" && user == s.user || bot != "" && bot == s.bot
}

// transient reports whether a call that was refused may succeed later.
func transient(ce *callError) bool {
	switch ce.code {
	case "":
		return ce.status != 0
	case "ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout",
		"team_added_to_org", "accesslimited":
		return true
	}
	return ce.status >= http.StatusInternalServerError
}

// Shown returns the text of a message as Slack keeps it.
func (p *Platform) Shown(ctx context.Context, chat chats.Chat, id string) (string, error) {
	params := slack.GetConversationRepliesParameters{ChannelID: chat.ID, Timestamp: id, Limit: 1}
	page, err := ask(ctx, p.api, "conversations.replies", replies(&params))
	if err == nil && len(page) == 0 {
		err = errors.New("slack: the message is not there")
	}
	if err != nil {
		return "", err
	}
	return page[0].Text, nil
}

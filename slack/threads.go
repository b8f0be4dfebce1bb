package slack

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"oneclaw/bridge/chats"
)

const (
	// lookupTimeout is how long the acceptance of a message may wait for the look-up of a thread.
	lookupTimeout = 1500 * time.Millisecond
	// joinedAge is how long it is cached that the bot participates in a thread, absentAge that it does
	// not: another process of the bot may have answered there.
	joinedAge = 24 * time.Hour
	absentAge = time.Minute
	// ignoredAge is how long Slack may redeliver an event.
	ignoredAge = time.Hour
	// Bounds of the search of a thread for the bot, from its beginning.
	threadPage  = 200
	threadPages = 5
)

// thread has the known properties of a thread.
type thread struct {
	// opener is the user who opened it.
	opener string
	// joined is set if the bot participates: it was mentioned there or has written.
	joined bool
	// lookedUp is set if Slack was asked.
	lookedUp bool
}

// join records that the bot participates in a thread. If there are other processes, it also stores that
// before it returns, because the next message there may reach one of them.
func (p *platform) join(ctx context.Context, chat chats.Chat, opener string) {
	if chat.Thread == "" {
		return
	}
	known, _ := p.threads.Get(chat)
	p.progress.Touch(chat)
	opener = cmp.Or(opener, known.opener)
	p.threads.Put(chat, thread{opener: opener, joined: true, lookedUp: known.lookedUp}, joinedAge)
	if p.isLeader == nil || known.joined && known.opener == opener {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	if err := p.progress.Join(ctx, chat, opener); err != nil {
		p.log.Warn("another process may miss messages in a thread", "chat", chat.String(), "err", err)
	}
}

// knownThread returns a thread without asking Slack: from this process, or from another process of the
// bot, which may have answered there since.
func (p *platform) knownThread(ctx context.Context, chat chats.Chat) (known thread, ok bool) {
	known, ok = p.threads.Get(chat)
	if p.isLeader == nil || known.joined || chat.Thread == "" {
		return known, ok
	}
	opener, joined, err := p.progress.Joined(ctx, chat)
	if err != nil {
		p.log.Warn("cannot determine whether another process participates in a thread", "chat", chat.String(), "err", err)
	}
	if !joined {
		return known, ok
	}
	known = thread{opener: cmp.Or(known.opener, opener), joined: true, lookedUp: known.lookedUp}
	p.threads.Put(chat, known, joinedAge)
	return known, true
}

// lookUpThread looks up a thread. If Slack permanently refuses, the bot does not participate. An error
// means that a retry may succeed.
func (p *platform) lookUpThread(ctx context.Context, me identity, chat chats.Chat) (thread, error) {
	if known, ok := p.knownThread(ctx, chat); ok && (known.lookedUp || known.opener != "") {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := searchThread(ctx, p.api, me, chat)
	known, _ := p.threads.Get(chat)
	if err != nil {
		var ce *callError
		if !errors.As(err, &ce) || ce.code == "" || isTransient(ce) {
			if known.joined {
				return known, nil // only the opener is unknown
			}
			return thread{}, err
		}
		p.log.Warn("thread not readable: only mentions are answered there", "chat", chat.String(), "err", err)
	}
	found.lookedUp, found.joined = true, found.joined || known.joined
	age := absentAge
	if found.joined {
		age = joinedAge
	}
	p.threads.Put(chat, found, age)
	return found, nil
}

// searchThread reads up to threadPages pages of a thread, until it finds the bot there.
func searchThread(ctx context.Context, api *client, me identity, chat chats.Chat) (thread, error) {
	var found thread
	q := messageQuery{channel: chat.ID, thread: chat.Thread, limit: threadPage}
	for range threadPages {
		page, err := api.readMessages(ctx, &q)
		if err != nil {
			return found, err
		}
		for _, m := range page {
			if m.TS == chat.Thread {
				found.opener = m.User
				found.joined = me.isMentioned(m.Text) || slices.Contains(m.ReplyUsers, me.user)
			}
			found.joined = found.joined || me.isAuthor(m.User, m.BotID)
		}
		if found.joined || q.cursor == "" {
			break
		}
	}
	return found, nil
}

func (s identity) isAuthor(user, bot string) bool {
	return user != "" && user == s.user || bot != "" && bot == s.bot
}

// isOwn reports whether a user is the bot.
func (s identity) isOwn(user string) bool { return s.isAuthor(user, "") }

// isTransient reports whether a refused call may succeed later.
func isTransient(ce *callError) bool {
	switch ce.code {
	case "":
		return ce.status != 0
	case "ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout",
		"team_added_to_org", "accesslimited":
		return true
	}
	return ce.status >= http.StatusInternalServerError
}

// Shown returns the text of a message as Slack stores it.
func (p *platform) Shown(ctx context.Context, chat chats.Chat, id string) (string, error) {
	page, err := p.api.readMessages(ctx, &messageQuery{channel: chat.ID, thread: id, limit: 1})
	if err == nil && len(page) == 0 {
		err = errors.New("slack: the message is not there")
	}
	if err != nil {
		return "", err
	}
	return page[0].Text, nil
}

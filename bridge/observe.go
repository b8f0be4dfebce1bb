package bridge

import (
	"context"
	"fmt"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/privacy"
	"oneclaw/bridge/queue"
	"oneclaw/internal/wording"
)

// WantsAmbient implements [chats.AmbientInbox].
func (b *Bridge) WantsAmbient(chat chats.Chat) bool { return b.observer.WantsAmbient(chat) }

// Heard is what was said in the chat of a job and not to the bot, behind a message. Only
// a user who asks is shown it.
func (r turnHost) Heard(ctx context.Context, j *queue.Run, after string) []chats.Quoted {
	m := j.Message
	if m.Direct || m.Kind != chats.KindText || !r.observer.WantsAmbient(m.Chat) {
		return nil
	}
	chat := m.Chat
	if chat.Thread == m.ID {
		chat = chat.Whole() // its thread begins with it
	}
	list, err := r.observer.Recent(ctx, chat, after, func(user string) string {
		if namer, ok := r.platforms[chat.Platform].(chats.UserNamer); ok {
			return namer.UserName(ctx, user)
		}
		return user
	})
	if err != nil {
		r.log.Warn("what was said in a group cannot be shown", "job", j.Key(), "err", err)
	}
	return list
}

const observeUsage = "`/observe on` lets me remember what is said here and not to me, `/observe off` ends that. This is for the administrators of the group."

// observed is the announcement: everybody in the group has to know.
func observed() string {
	return fmt.Sprintf("From now on I listen along here: when somebody asks me, I am shown up to %d of the last messages that were not for me, "+
		"none older than %s. They start nothing, nobody can search them, and I forget them with /clear. "+
		"/observe off ends this. On Telegram I only hear everything as an administrator of the group or with my privacy mode off.",
		privacy.Shown, wording.Roughly(privacy.Age))
}

// observe switches on or off that the bot listens in a group.
func (b *Bridge) observe(ctx context.Context, j *queue.Run, args string) (string, error) {
	m := j.Message
	on := strings.EqualFold(strings.TrimSpace(args), "on")
	switch {
	case m.Direct:
		return "Only for groups: here I read everything anyway.", nil
	case !on && !strings.EqualFold(strings.TrimSpace(args), "off"):
		state := "I do not listen along here. "
		if b.observer.WantsAmbient(m.Chat) {
			state = "I listen along here. "
		}
		return state + observeUsage, nil
	case !b.administers(ctx, m):
		return "Sorry, only an administrator of this group can change that.", nil
	}
	changed, err := b.observer.SetEnabled(ctx, m.Chat, on, m.By())
	switch {
	case err != nil:
		return "", err
	case !on && changed:
		return "I listen along no more, and I have forgotten what I heard.", nil
	case !on:
		return "I do not listen along here.", nil
	case m.Chat.Thread == "":
		return observed(), nil // everybody sees it
	}
	if _, err := b.cards.Post(ctx, "observe/"+j.Key(), m.Chat.Whole(), interact.Card{Text: observed()}); err != nil {
		return "", err
	}
	return "I listen along in this group from now on, and I have said so to everybody.", nil
}

// administers reports whether the sender is an administrator: of the bot, or of the chat by
// the word of the platform.
func (r *services) administers(ctx context.Context, m chats.Message) bool {
	m.Direct, m.Opener = false, ""
	return r.stops.mayClear(ctx, m)
}

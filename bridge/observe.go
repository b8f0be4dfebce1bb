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

const observeUsage = "`/observe on` has me also read what is said here and not to me, and remember it for a day; `/observe off` ends that. This is for the administrators of the group."

// observeAnnouncement returns the announcement to the group that the bot now listens.
func observeAnnouncement() string {
	return fmt.Sprintf("I now also read messages here that are not for me. When you ask me something, I see up to %d of the last ones, none older than %s. They start nothing and cannot be searched, and /clear makes me forget them. /observe off ends this. On Telegram I see all messages only as an administrator of the group or with my privacy mode off.",
		privacy.MaxShown, wording.RoughDuration(privacy.MaxAge))
}

// listeningText says which messages of the shared chat of a message the bot answers and keeps.
func (c *commandRegistry) listeningText(m chats.Message) string {
	// Where users reply in threads, the bot takes part in every thread in which it gets a message.
	_, inThreads := c.platforms[m.Chat.Platform].(chats.ThreadReplier)
	inThread := inThreads && m.Chat.Thread != ""
	observed := c.observer.WantsAmbient(m.Chat)
	text := "Here I answer messages that mention me or reply to me, and commands."
	if inThread {
		text = "In this thread I answer every message."
	}
	switch {
	case observed:
		text += fmt.Sprintf(" I also keep the last messages of this group that are not for me, for %s; /observe off ends that.", wording.RoughDuration(privacy.MaxAge))
	case !inThread:
		text += " I store others only if a message to me refers to them."
	}
	return text
}

// observe turns listening in a group on or off.
func (b *Bridge) observe(ctx context.Context, j *queue.Run, args string) (string, error) {
	m := j.Message
	on := strings.EqualFold(strings.TrimSpace(args), "on")
	switch {
	case m.Direct:
		return "Only for groups: here I read everything anyway.", nil
	case !on && !strings.EqualFold(strings.TrimSpace(args), "off"):
		state := "I read only the messages here that are for me. "
		if b.observer.WantsAmbient(m.Chat) {
			state = "I also read messages here that are not for me. "
		}
		return state + observeUsage, nil
	case !b.adminChecker.isAdmin(ctx, m):
		return "Sorry, only an administrator of this group can change that.", nil
	}
	changed, err := b.observer.SetEnabled(ctx, m.Chat, on, m.SenderID(), m.Time)
	switch {
	case err != nil:
		return "", err
	case !on && changed:
		return "I no longer read messages here that are not for me, and I have forgotten those that I had read.", nil
	case !on:
		return "I read only the messages here that are for me.", nil
	case m.Chat.Thread == "":
		return observeAnnouncement(), nil // visible to the whole group
	}
	if _, err := b.cards.Post(ctx, "observe/"+j.Key(), m.Chat.WithoutThread(), interact.Card{Text: observeAnnouncement()}); err != nil {
		return "", err
	}
	return "I now also read messages in this group that are not for me, and I have told everyone.", nil
}

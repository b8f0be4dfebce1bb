package bridge

import (
	"errors"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/toolgroups"
)

// role returns what the sender of a message may do now.
func (b *Bridge) role(m chats.Message) toolgroups.Role { return b.people.Role(m.By()) }

// AdminChats returns the chats in which the bot is alone with its owner or with an
// administrator who was made one in a chat.
func (b *Bridge) AdminChats() []chats.Chat { return b.people.AdminChats() }

// errBarred cancels the turn of a removed user.
var errBarred = errors.New("bridge: its user was removed")

// barred reports whether the sender of a job may not talk to the bot now, whatever they could
// do when it was accepted.
func (b *Bridge) barred(j *jobs.Job) bool {
	if b.role(j.Message) > toolgroups.RoleStranger {
		return false
	}
	b.log.Warn("not answered: its user may not talk to the bot any more", "job", j.Key(), "user", j.By())
	return true
}

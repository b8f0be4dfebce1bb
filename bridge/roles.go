package bridge

import (
	"context"
	"errors"

	"oneclaw/agent"
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

// permit is the gate of a turn: a tool runs only while the sender may still use it,
// whatever they could do when the turn began.
func (b *Bridge) permit(m chats.Message) agent.Gate {
	return func(_ context.Context, _ toolgroups.Call, tool toolgroups.Tool) (agent.Decision, error) {
		if role := b.role(m); role == toolgroups.RoleStranger || role < tool.Role {
			return agent.Decision{Verdict: agent.Deny, Reason: "the user may not use this tool any more"}, nil
		}
		return agent.Decision{Verdict: agent.Allow}, nil
	}
}

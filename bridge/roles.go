package bridge

import (
	"context"
	"errors"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/toolgroups"
)

// role is what the sender of a message may do now.
func (b *Bridge) role(m chats.Message) toolgroups.Role { return b.people.Role(m.By()) }

// AdminChats returns the chats in which the bot is alone with its owner or with an
// administrator who was made one in a chat.
func (b *Bridge) AdminChats() []chats.Chat { return b.people.AdminChats() }

// errBarred cancels the turn of a removed user.
var errBarred = errors.New("bridge: its user was removed")

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

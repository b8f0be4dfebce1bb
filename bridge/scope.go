package bridge

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
	"oneclaw/internal/workspace"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// scopes returns on whose behalf tools run, and creates the workspaces.
type scopes struct {
	store          storage.Store
	people         *access.Registry
	dataDir        string
	quota, reserve int64 // see [Limits]
}

// of returns the scope of a turn.
func (s *scopes) of(j *queue.Run, log string) (toolgroups.Scope, error) {
	m := j.Message
	owner := m.Owner()
	folder := workspace.Folder(s.dataDir, owner)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return toolgroups.Scope{}, fmt.Errorf("make workspace: %w", err)
	}
	role := s.people.Role(m.By())
	task := turn.TaskOf(j)
	if task != nil && task.Hook != "" {
		role = min(role, toolgroups.RoleUser) // a task with data from outside
	}
	return toolgroups.Scope{
		User: m.By(), Role: role, Chat: m.Chat.String(), Direct: m.Direct,
		Owner: owner, Session: log, Workspace: folder, Scheduled: task != nil,
		Quota: s.quota, Reserve: s.reserve,
	}, nil
}

// current returns the scope of a job in the present conversation of its chat.
func (s *scopes) current(ctx context.Context, j *queue.Run) (toolgroups.Scope, error) {
	session, err := conversation.Current(ctx, s.store, j.Message.Chat)
	if err != nil {
		return toolgroups.Scope{}, err
	}
	return s.of(j, session.Log())
}

// admins checks for administrators of the bot and of chats.
type admins struct {
	platforms map[string]chats.Platform
	people    *access.Registry
	log       *slog.Logger
}

// isBotAdmin reports whether the sender of a message is an administrator of the bot.
func (a *admins) isBotAdmin(m chats.Message) bool {
	return a.people.Role(m.By()) >= toolgroups.RoleAdmin
}

// mayClear reports whether the sender may clear the chat of a message: in a direct chat its user; in a
// shared one configured admins, the user who began the thread, and the platform's administrators of the
// chat.
func (a *admins) mayClear(ctx context.Context, m chats.Message) bool {
	if m.Direct || a.isBotAdmin(m) || (m.Opener != "" && m.Opener == m.User) {
		return true
	}
	admins, ok := a.platforms[m.Chat.Platform].(chats.AdminChecker)
	if !ok {
		return false
	}
	is, err := admins.IsAdmin(ctx, m.Chat, m.User)
	if err != nil {
		a.log.Warn("administrators cannot be asked for", "chat", m.Chat.String(), "err", err)
	}
	return is && err == nil
}

// isAdmin reports whether the sender is an administrator of the bot, or, by the platform's word, of
// the chat.
func (a *admins) isAdmin(ctx context.Context, m chats.Message) bool {
	m.Direct, m.Opener = false, ""
	return a.mayClear(ctx, m)
}

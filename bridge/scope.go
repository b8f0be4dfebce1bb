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

// scopeResolver returns the scopes in which tools run, and creates the workspaces.
type scopeResolver struct {
	store          storage.Store
	people         *access.Registry
	dataDir        string
	quota, reserve int64 // see [Limits]
}

// forTurn returns the scope of a turn whose conversation has the given log.
func (s *scopeResolver) forTurn(j *queue.Run, log string) (toolgroups.Scope, error) {
	m := j.Message
	folder := workspace.OwnerDir(s.dataDir, j.FilesOwner())
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return toolgroups.Scope{}, fmt.Errorf("make workspace: %w", err)
	}
	task := turn.TaskOf(j)
	role, approvable := s.people.Role(m.SenderID()), toolgroups.RoleStranger
	if turn.IsUnasked(j) {
		// Nobody watches what the turn reads. A webhook's turn is begun by somebody outside.
		if task == nil || task.Hook == "" {
			approvable = role
		}
		role = min(role, toolgroups.RoleUser)
	}
	scope := toolgroups.Scope{
		User: m.SenderID(), Role: role, Approvable: approvable, Chat: m.Chat.String(), Direct: m.Direct,
		Owner: m.Owner(), Session: log, Workspace: folder, Message: j.Key(), Unasked: turn.IsUnasked(j), Scheduled: task != nil && !turn.IsBackground(j), Background: turn.IsBackground(j),
		Quota: s.quota, Reserve: s.reserve,
	}
	if task != nil {
		scope.Model, scope.Outsider = task.Model, task.Hook != ""
	}
	return scope, nil
}

// current returns the scope of a job in the current conversation of its chat.
func (s *scopeResolver) current(ctx context.Context, j *queue.Run) (toolgroups.Scope, error) {
	session, err := conversation.Current(ctx, s.store, j.Message.Chat)
	if err != nil {
		return toolgroups.Scope{}, err
	}
	return s.forTurn(j, session.Log())
}

// adminChecker checks whether users are administrators of the bot or of chats.
type adminChecker struct {
	platforms map[string]chats.Platform
	people    *access.Registry
	log       *slog.Logger
}

// isBotAdmin reports whether the sender of a message is an administrator of the bot.
func (a *adminChecker) isBotAdmin(m chats.Message) bool {
	return a.people.Role(m.SenderID()) >= toolgroups.RoleAdmin
}

// canClear reports whether the sender of a message may clear its chat. In a direct chat the user may. In
// a shared chat the bot's administrators, the user who began the thread, and the chat's administrators
// may.
func (a *adminChecker) canClear(ctx context.Context, m chats.Message) bool {
	if m.Direct || a.isBotAdmin(m) || (m.Opener != "" && m.Opener == m.User) {
		return true
	}
	admins, ok := a.platforms[m.Chat.Platform].(chats.AdminChecker)
	if !ok {
		return false
	}
	is, err := admins.IsAdmin(ctx, m.Chat, m.User)
	if err != nil {
		a.log.Warn("administrators of a chat cannot be determined", "chat", m.Chat.String(), "err", err)
	}
	return is && err == nil
}

// isAdmin reports whether the sender of a message is an administrator of the bot, or, according to the
// platform, of the chat.
func (a *adminChecker) isAdmin(ctx context.Context, m chats.Message) bool {
	m.Direct, m.Opener = false, ""
	return a.canClear(ctx, m)
}

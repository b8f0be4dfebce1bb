package bridge

import (
	"context"
	"fmt"
	"os"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/delivery"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/sessions"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
)

// scope says on whose behalf the tools of a turn run, and makes the workspace.
func (b *Bridge) scope(j *jobs.Job, session sessions.Session) (toolgroups.Scope, error) {
	m := j.Message
	owner := m.Owner()
	folder := workspace.Folder(b.cfg.DataDir, owner)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return toolgroups.Scope{}, fmt.Errorf("make workspace: %w", err)
	}
	return toolgroups.Scope{
		User: m.By(), Role: b.people.Role(m.By()), Chat: m.Chat.String(), Direct: m.Direct,
		Owner: owner, Session: session.Log(), Workspace: folder, Scheduled: j.Message.Kind == jobs.KindTask,
		Quota: b.cfg.Limits.WorkspaceQuota, Reserve: b.cfg.Limits.DiskReserve,
	}, nil
}

// refused answers a turn for which there is no budget: with a card where [Hooks]
// makes one, else with the notice.
func (b *Bridge) refused(ctx context.Context, j *jobs.Job, scope toolgroups.Scope, failure error, notice string) (string, error) {
	if j.Message.Kind == jobs.KindTask || b.cfg.Hooks.Refused == nil {
		return notice, nil
	}
	card, err := b.cfg.Hooks.Refused(ctx, scope, failure)
	if err != nil {
		b.log.Warn("nobody can be asked for more budget", "job", j.Key(), "err", err)
		return notice, nil
	}
	card.Text = delivery.Headed(j, card.Text)
	return b.desk.Answer(ctx, j, card)
}

// scopeOf is the scope of a job in the present conversation of its chat.
func (b *Bridge) scopeOf(ctx context.Context, j *jobs.Job) (toolgroups.Scope, error) {
	session, err := sessions.Current(ctx, b.store, j.Message.Chat)
	if err != nil {
		return toolgroups.Scope{}, err
	}
	return b.scope(j, session)
}

// role returns what the sender of a message may do now.
func (b *Bridge) role(m chats.Message) toolgroups.Role { return b.people.Role(m.By()) }

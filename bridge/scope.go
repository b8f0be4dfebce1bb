package bridge

import (
	"context"
	"fmt"
	"os"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
	"oneclaw/internal/wording"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
)

// turnHost is what is around turns.
type turnHost struct{ *services }

var _ turn.Host = turnHost{}

// Scope implements [turn.Host].
func (r turnHost) Scope(j *queue.Run, session conversation.Session) (toolgroups.Scope, error) {
	return r.scope(j, session)
}

// Show implements [turn.Host].
func (r turnHost) Show(ctx context.Context, key string, j *queue.Run, under, line string) error {
	_, err := r.cards.Post(ctx, key, j.Message.Chat, interact.Card{Of: j.Message.By(), ReplyTo: under, Text: line, Exact: true})
	return err
}

// scope says on whose behalf the tools of a turn run, and makes the workspace.
func (r *services) scope(j *queue.Run, session conversation.Session) (toolgroups.Scope, error) {
	m := j.Message
	owner := m.Owner()
	folder := workspace.Folder(r.cfg.DataDir, owner)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return toolgroups.Scope{}, fmt.Errorf("make workspace: %w", err)
	}
	role := r.people.Role(m.By())
	task := turn.TaskOf(j)
	if task != nil && task.Hook != "" {
		role = min(role, toolgroups.RoleUser) // what is done for a stranger's text
	}
	return toolgroups.Scope{
		User: m.By(), Role: role, Chat: m.Chat.String(), Direct: m.Direct,
		Owner: owner, Session: session.Log(), Workspace: folder, Scheduled: task != nil,
		Quota: r.cfg.Limits.WorkspaceQuota, Reserve: r.cfg.Limits.DiskReserve,
	}, nil
}

// Refused answers a turn for which there is no budget: with a card where [Hooks]
// makes one, else with the notice.
func (r turnHost) Refused(ctx context.Context, j *queue.Run, scope toolgroups.Scope, failure error, notice string) (string, error) {
	if turn.TaskOf(j) != nil || r.cfg.Hooks.Refused == nil {
		return notice, nil
	}
	card, err := r.cfg.Hooks.Refused(ctx, scope, failure)
	if err != nil {
		r.log.Warn("nobody can be asked for more budget", "job", j.Key(), "err", err)
		return notice, nil
	}
	card.Text = outbox.WithHeading(j, card.Text)
	return r.cards.Answer(ctx, j, card)
}

// Report implements [turn.Host]. That administrators were told is said once it is on record, and who
// they are to those who were let in.
func (r turnHost) Report(ctx context.Context, j *queue.Run, failure, remedy string) string {
	user := j.Message.By()
	if r.people.Role(user) >= toolgroups.RoleAdmin {
		return remedy
	}
	told := 0
	if report := r.cfg.Hooks.Report; report != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
		defer cancel()
		var err error
		key := "failure/" + queue.Hash(remedy) + "/" + r.cfg.Now().UTC().Format("2006-01-02T15")
		if told, err = report(ctx, key, failure+" "+remedy); err != nil {
			r.log.Warn("administrators were not told of a failure", "job", j.Key(), "err", err)
		}
	}
	if told == 0 {
		return "Whoever runs me finds the reason in the log."
	}
	name, known := "an administrator", false
	for _, one := range r.people.Everybody() {
		if one.Role >= toolgroups.RoleOwner && one.Name != "" {
			name = wording.Escape(one.Name)
		}
		known = known || one.User == user && one.Role >= toolgroups.RoleUser
	}
	if !known {
		name = "an administrator"
	}
	return "I've told " + name + "."
}

func (r *services) scopeOf(ctx context.Context, j *queue.Run) (toolgroups.Scope, error) {
	session, err := conversation.Current(ctx, r.store, j.Message.Chat)
	if err != nil {
		return toolgroups.Scope{}, err
	}
	return r.scope(j, session)
}

func (r *services) role(m chats.Message) toolgroups.Role { return r.people.Role(m.By()) }

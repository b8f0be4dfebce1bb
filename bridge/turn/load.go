package turn

import (
	"context"
	"slices"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/toolgroups"
)

// Load adds a call of load_tool_group and its result to the conversation of a job, as if the model had
// made it, in one write; it does nothing for a loaded group. It returns why the group could not be
// loaded.
func (t *Runner) Load(ctx context.Context, j *queue.Run, scope toolgroups.Scope) (refused string, err error) {
	h, err := t.Cache.Take(ctx, scope.Session)
	if err != nil {
		return "", err
	}
	defer func() {
		if err == nil {
			t.Cache.Put(h)
		}
	}()
	round, loaded, err := t.Round(ctx, scope)
	if err != nil || slices.Contains(loaded, j.Message.Text) {
		return "", err
	}
	messages, fault := agent.LoadByHand(ctx, round, scope, j.Message.Text)
	if fault != nil {
		return fault.Message, nil
	}
	if h.Last == 0 {
		if err := t.List(ctx, j, scope); err != nil {
			return "", err
		}
	}
	for i := range messages {
		messages[i].Time = t.cfg.Now()
	}
	if !j.Message.Direct {
		messages[0].Sender, messages[0].By = j.Message.UserName, j.Message.By()
		h.NoteAuthor(&j.Job)
	}
	h.Staged = messages[:1]
	return "", t.append(context.WithoutCancel(ctx), j, h, messages[1:]...)
}

// Round returns what the next request of a conversation would offer its model, and the groups that it
// has loaded.
func (t *Runner) Round(ctx context.Context, scope toolgroups.Scope) (*toolgroups.Round, []string, error) {
	loaded, err := conversation.LoadedGroups(ctx, t.cfg.Store, scope.Session)
	if err != nil {
		return nil, nil, err
	}
	facts := toolgroups.Facts{Scope: scope, Recorded: t.recordedRouting(ctx, scope.Session)}
	if t.cfg.Profile != nil {
		persona, err := t.cfg.Profile(ctx, scope, ForMessage)
		if err != nil {
			t.cfg.Log.Warn("tools shown without the limits of a model", "session", scope.Session, "err", err)
		}
		model := agent.ProfileOf(persona.Model)
		facts.Model, facts.ContextTokens, facts.MaxTools, facts.Native = model.Name, model.ContextTokens, model.MaxTools, model.Native
	}
	return toolgroups.NewSet(t.cfg.Tools, loaded).Route(t.cfg.Router, facts), loaded, nil
}

// recordedRouting returns the mode of the newest reply of a conversation; empty if it has none.
func (t *Runner) recordedRouting(ctx context.Context, log string) string {
	for m, err := range conversation.RecentMessages(ctx, t.cfg.Store, log) {
		if err == nil && (m.Routing != "" || m.Usage != nil) {
			return m.Routing // as the agent reads it
		}
	}
	return ""
}

package turn

import (
	"context"
	"slices"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/toolgroups"
)

// LoadGroup adds a call to load_tool_group and its result to the conversation of a job, as if the model
// had made the call. If the group is loaded already, it does nothing. refused says why the group cannot
// be loaded.
func (t *Runner) LoadGroup(ctx context.Context, j *queue.Run, scope toolgroups.Scope, group string) (refused string, err error) {
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
	if err != nil || slices.Contains(loaded, group) {
		return "", err
	}
	messages, fault := agent.LoadByHand(ctx, round, scope, group)
	if fault != nil {
		return fault.Message, nil
	}
	if h.Last == 0 {
		if err := t.addToList(ctx, j, scope); err != nil {
			return "", err
		}
	}
	for i := range messages {
		messages[i].Time = t.cfg.Now()
	}
	t.noteSender(&messages[0], j, h)
	h.Staged = messages[:1]
	return "", t.appendMessages(context.WithoutCancel(ctx), j, h, messages[1:]...)
}

// Round returns the tools that the next request in a conversation would offer the model, and the groups
// that the conversation has loaded.
func (t *Runner) Round(ctx context.Context, scope toolgroups.Scope) (*toolgroups.Round, []string, error) {
	loaded, err := conversation.LoadedGroups(ctx, t.cfg.Store, scope.Session)
	if err != nil {
		return nil, nil, err
	}
	facts := toolgroups.RouteInput{Scope: scope}
	if t.cfg.Profile != nil {
		persona, err := t.cfg.Profile(ctx, scope, ForMessage)
		if err != nil {
			t.cfg.Log.Warn("the limits of the model are unknown, tools are shown without them", "session", scope.Session, "err", err)
		}
		model := agent.ProfileOf(persona.Model)
		facts.ContextTokens, facts.MaxTools = model.ContextTokens, model.MaxTools
	}
	return toolgroups.NewSet(t.toolsFor(scope), loaded).Route(t.cfg.Router, facts), loaded, nil
}

// TakesTools reports whether the model that answers in a scope is sent tools.
func (t *Runner) TakesTools(ctx context.Context, scope toolgroups.Scope) bool {
	if t.cfg.Profile == nil {
		return true
	}
	persona, err := t.cfg.Profile(ctx, scope, ForMessage)
	return err != nil || !agent.ProfileOf(persona.Model).NoTools
}

// toolsFor returns the function that returns the current tools of turns in a scope.
func (t *Runner) toolsFor(scope toolgroups.Scope) func() *toolgroups.Registry {
	if !scope.Scheduled && !scope.Background {
		return t.cfg.Tools
	}
	return func() *toolgroups.Registry { return t.cfg.Tools().ForTasks() }
}

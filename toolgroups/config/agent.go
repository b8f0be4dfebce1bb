package config

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oneclaw/internal/settings"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

type createAgentArgs struct {
	Name         string `json:"name"`
	Description  string `json:"description"`
	SystemPrompt string `json:"system_prompt"`
}

// createAgent stores an agent that belongs to the owner of the chat. No conversation switches to it.
func (f *Tools) createAgent(ctx context.Context, call toolgroups.Call, in createAgentArgs) (toolgroups.Result, error) {
	a, err := f.cfg.Settings.Agents.Add(ctx, settings.Agent{
		Name: in.Name, Description: in.Description, Prompt: in.SystemPrompt, Owner: call.Owner, Author: call.User, Outside: call.HoldsOthers,
		Unshown: !call.Approved && exceedsLine(call),
	})
	if err != nil {
		failed := toolgroups.CodeExecution // the store may have failed behind the write
		if _, refused := errors.AsType[*settings.Error](err); refused {
			failed = codeCreationFailed
		}
		return toolgroups.Result{}, toolError(ctx, failed, err)
	}
	line := fmt.Sprintf("I made the agent %s (%s)", wording.Quote(call.MaskedLine(a.Name), maxAnnouncedName), a.ID)
	if a.Description != "" {
		line += ", described as " + wording.Quote(call.MaskedLine(a.Description), maxAnnouncedDescription)
	}
	line += ". Its instructions begin: " + wording.Quote(call.MaskedLine(a.Prompt), maxAnnouncedPrompt)
	return toolgroups.Result{
		Text: fmt.Sprintf("Agent '%s' was created with the id %s. The conversation goes on as it was; the user can switch to the new agent with /agent %s.",
			a.Name, a.ID, a.ID),
		Announced: []toolgroups.Announcement{{Text: line, Undo: toolgroups.UndoData(createdAgent{a.ID, call.User})}},
	}, nil
}

// exceedsLine reports whether the line of a new agent would not show all of its texts.
func exceedsLine(call toolgroups.Call) bool {
	return toolgroups.ExceedsLine(call, func(in createAgentArgs) bool {
		return wording.QuotesWhole(in.Name, maxAnnouncedName) && wording.QuotesWhole(in.Description, maxAnnouncedDescription) &&
			wording.QuotesWhole(in.SystemPrompt, maxAnnouncedPrompt)
	})
}

// createdAgent is the data that undoes the creation of an agent.
type createdAgent struct {
	ID string `json:"id"`
	By string `json:"by"`
}

// undoCreateAgent deletes a new agent, for the user who had it made and for administrators.
func (f *Tools) undoCreateAgent(ctx context.Context, scope toolgroups.Scope, data json.RawMessage) error {
	var made createdAgent
	if err := json.Unmarshal(data, &made); err != nil {
		return fmt.Errorf("undo the creation of an agent: %w", err)
	}
	if scope.User != made.By && scope.Role < toolgroups.RoleAdmin {
		return toolgroups.Errorf(toolgroups.CodeDenied, "Only the person who had this agent made, or an administrator, can do that.")
	}
	_, err := f.cfg.Settings.Agents.Delete(ctx, made.ID)
	if refusal, is := errors.AsType[*settings.Error](err); is && refusal.Reason == settings.NotFound {
		return nil // it is deleted already
	}
	return err
}

const (
	// maxPromptExcerpt bounds what a list shows of a prompt, in characters.
	maxPromptExcerpt = 100
	// maxAnnouncedName, maxAnnouncedDescription and maxAnnouncedPrompt bound what the line of a new agent shows, in
	// characters.
	maxAnnouncedName, maxAnnouncedDescription, maxAnnouncedPrompt = 100, 200, 600
)

// listAgents shows in a shared chat, where others read along, no agents that belong elsewhere.
func (f *Tools) listAgents(ctx context.Context, call toolgroups.Call, _ noArgs) (string, error) {
	agents, err := f.cfg.Settings.Agents.List(ctx)
	if err != nil {
		return "", err
	}
	agents = slices.DeleteFunc(agents, func(a settings.Agent) bool { return !call.Direct && a.Owner != "" && a.Owner != call.Owner })
	var b strings.Builder
	fmt.Fprintf(&b, "%d agents:", len(agents))
	for _, a := range agents {
		fmt.Fprintf(&b, "\n- %s\n  id: %s", a.Name, a.ID)
		if a.BuiltIn {
			b.WriteString(" (built in)")
		}
		if a.Owner != "" {
			fmt.Fprintf(&b, ", of %s", a.Owner)
		}
		if a.Description != "" {
			b.WriteString("\n  description: " + singleLine(a.Description))
		}
		b.WriteString("\n  prompt: " + wording.Clip(singleLine(a.Prompt), maxPromptExcerpt))
		if a.PreferredModel.Provider != "" || a.PreferredModel.Model != "" {
			fmt.Fprintf(&b, "\n  preferred provider: %s, model: %s", cmp.Or(a.PreferredModel.Provider, "none"), cmp.Or(a.PreferredModel.Model, "none"))
		}
	}
	return b.String(), nil
}

func singleLine(s string) string { return strings.Join(strings.Fields(s), " ") }

type updateAgentArgs struct {
	ID                string  `json:"agent_id"`
	Name              *string `json:"name"`
	Description       *string `json:"description"`
	SystemPrompt      *string `json:"system_prompt"`
	PreferredProvider *string `json:"preferred_provider_id"`
	PreferredModel    *string `json:"preferred_model_id"`
	Effort            *string `json:"effort"`
}

func (in updateAgentArgs) apply(a *settings.Agent) {
	toolgroups.Assign(&a.Name, in.Name)
	toolgroups.Assign(&a.Description, in.Description)
	toolgroups.Assign(&a.Prompt, in.SystemPrompt)
	toolgroups.Assign(&a.PreferredModel.Provider, in.PreferredProvider)
	toolgroups.Assign(&a.PreferredModel.Model, in.PreferredModel)
	toolgroups.Assign(&a.Effort, in.Effort)
}

func (f *Tools) updateAgent(ctx context.Context, call toolgroups.Call, in updateAgentArgs) (string, error) {
	if err := f.checkPreference(ctx, in); err != nil {
		return "", err
	}
	before, after, err := f.cfg.Settings.Agents.Change(ctx, in.ID, func(a *settings.Agent) {
		before := *a
		in.apply(a)
		a.Outside = call.HoldsOthers && (a.Name != before.Name || a.Description != before.Description || a.Prompt != before.Prompt)
		a.Unshown = a.Outside && (!call.Approved || call.User != a.Author) // a change has no line, and its card another chat
	})
	if err != nil {
		return "", err
	}
	var changed []string
	for _, field := range []struct{ name, from, to string }{
		{"name", before.Name, after.Name},
		{"description", before.Description, after.Description},
		{"system_prompt", before.Prompt, after.Prompt},
		{"preferred_provider_id", before.PreferredModel.Provider, after.PreferredModel.Provider},
		{"preferred_model_id", before.PreferredModel.Model, after.PreferredModel.Model},
		{"effort", before.Effort, after.Effort},
	} {
		if field.from != field.to {
			changed = append(changed, field.name)
		}
	}
	if len(changed) == 0 {
		return fmt.Sprintf("Nothing about agent '%s' was changed: it is already like that.", after.Name), nil
	}
	return fmt.Sprintf("Agent '%s' was changed: %s.", after.Name, strings.Join(changed, ", ")), nil
}

// checkPreference returns an error for an unknown provider or model, which would otherwise be silently
// ignored.
func (f *Tools) checkPreference(ctx context.Context, in updateAgentArgs) error {
	if in.PreferredProvider == nil && in.PreferredModel == nil {
		return nil
	}
	a, err := f.cfg.Settings.Agents.Get(ctx, in.ID)
	if err != nil || a.BuiltIn {
		return err
	}
	in.apply(&a)
	if a.PreferredModel.Provider == "" {
		return nil
	}
	if a.PreferredModel.Model == "" {
		_, err = f.cfg.Settings.Providers.Get(ctx, a.PreferredModel.Provider)
		return err
	}
	_, err = f.cfg.Settings.Models.Get(ctx, a.PreferredModel)
	return err
}

type agentIDArgs struct {
	ID string `json:"agent_id"`
}

func (f *Tools) deleteAgent(ctx context.Context, _ toolgroups.Call, in agentIDArgs) (string, error) {
	a, err := f.cfg.Settings.Agents.Delete(ctx, in.ID)
	return fmt.Sprintf("Agent '%s' was deleted. Chats that used it go back to the default agent.", a.Name), err
}

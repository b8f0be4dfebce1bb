package config

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"oneclaw/internal/settings"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

type createAgent struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Prompt      string `json:"system_prompt"`
}

// createAgent stores an agent that belongs to the owner of the chat. It changes no conversation.
func (f *Family) createAgent(ctx context.Context, call toolgroups.Call, in createAgent) (string, error) {
	a, err := f.cfg.Settings.Agents.Add(ctx, settings.Agent{
		Name: in.Name, Description: in.Description, Prompt: in.Prompt, Owner: call.Owner,
	})
	return fmt.Sprintf("Agent '%s' was created with the id %s. The conversation goes on as it was; the user can switch to the new agent with /agent %s.",
		a.Name, a.ID, a.ID), err
}

// maxExcerpt bounds a prompt in the list, in characters.
const maxExcerpt = 100

func (f *Family) listAgents(ctx context.Context, _ toolgroups.Call, _ none) (string, error) {
	agents, err := f.cfg.Settings.Agents.List(ctx)
	if err != nil {
		return "", err
	}
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
		b.WriteString("\n  prompt: " + wording.Clip(singleLine(a.Prompt), maxExcerpt))
		if a.Prefers.Provider != "" || a.Prefers.Model != "" {
			fmt.Fprintf(&b, "\n  preferred provider: %s, model: %s", cmp.Or(a.Prefers.Provider, "none"), cmp.Or(a.Prefers.Model, "none"))
		}
	}
	return b.String(), nil
}

func singleLine(s string) string { return strings.Join(strings.Fields(s), " ") }

type updateAgent struct {
	ID          string  `json:"agent_id"`
	Name        *string `json:"name"`
	Description *string `json:"description"`
	Prompt      *string `json:"system_prompt"`
	Provider    *string `json:"preferred_provider_id"`
	Model       *string `json:"preferred_model_id"`
	Effort      *string `json:"effort"`
}

func (in updateAgent) apply(a *settings.Agent) {
	toolgroups.Assign(&a.Name, in.Name)
	toolgroups.Assign(&a.Description, in.Description)
	toolgroups.Assign(&a.Prompt, in.Prompt)
	toolgroups.Assign(&a.Prefers.Provider, in.Provider)
	toolgroups.Assign(&a.Prefers.Model, in.Model)
	toolgroups.Assign(&a.Effort, in.Effort)
}

func (f *Family) updateAgent(ctx context.Context, _ toolgroups.Call, in updateAgent) (string, error) {
	if err := f.checkPreference(ctx, in); err != nil {
		return "", err
	}
	before, after, err := f.cfg.Settings.Agents.Change(ctx, in.ID, in.apply)
	if err != nil {
		return "", err
	}
	var changed []string
	for _, field := range []struct{ name, from, to string }{
		{"name", before.Name, after.Name},
		{"description", before.Description, after.Description},
		{"system_prompt", before.Prompt, after.Prompt},
		{"preferred_provider_id", before.Prefers.Provider, after.Prefers.Provider},
		{"preferred_model_id", before.Prefers.Model, after.Prefers.Model},
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

// checkPreference refuses an unknown model, which would otherwise be ignored silently.
func (f *Family) checkPreference(ctx context.Context, in updateAgent) error {
	if in.Provider == nil && in.Model == nil {
		return nil
	}
	a, err := f.cfg.Settings.Agents.Get(ctx, in.ID)
	if err != nil || a.BuiltIn {
		return err
	}
	in.apply(&a)
	if a.Prefers.Provider == "" {
		return nil
	}
	if a.Prefers.Model == "" {
		_, err = f.cfg.Settings.Providers.Get(ctx, a.Prefers.Provider)
		return err
	}
	_, err = f.cfg.Settings.Models.Get(ctx, a.Prefers)
	return err
}

type agentID struct {
	ID string `json:"agent_id"`
}

func (f *Family) deleteAgent(ctx context.Context, _ toolgroups.Call, in agentID) (string, error) {
	a, err := f.cfg.Settings.Agents.Delete(ctx, in.ID)
	return fmt.Sprintf("Agent '%s' was deleted. Chats that used it go back to the default agent.", a.Name), err
}

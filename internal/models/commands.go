package models

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/internal/settings"
)

// Commands are the commands in a chat that choose what answers there.
func (m *Models) Commands() []bridge.Command {
	return []bridge.Command{
		{CommandInfo: chats.CommandInfo{Name: "agent", Description: "Show the agents, or switch to one"}, Run: m.agentCommand},
		{CommandInfo: chats.CommandInfo{Name: "model", Description: "Show the models, or switch to one"}, Run: m.modelCommand},
	}
}

func (m *Models) agentCommand(ctx context.Context, call bridge.CommandCall) (string, error) {
	agents, err := m.Settings.Agents.For(ctx, call.Owner)
	if err != nil {
		return "", err
	}
	wanted := strings.TrimSpace(call.Args)
	if wanted == "" {
		return m.listAgents(ctx, call, agents)
	}
	for _, a := range agents {
		if strings.EqualFold(a.Name, wanted) || a.ID == wanted {
			if err := call.Author.Record(ctx, "agent", a.Name); err != nil {
				return "", err
			}
			if err := m.Settings.Chats.SetAgent(ctx, call.Chat, call.Owner, a.ID); err != nil {
				return refusal(err)
			}
			return fmt.Sprintf("**%s** answers here from now on.", a.Name), nil
		}
	}
	return fmt.Sprintf("I know no agent named %q. /agent lists them.", wanted), nil
}

func (m *Models) listAgents(ctx context.Context, call bridge.CommandCall, agents []settings.Agent) (string, error) {
	answer, err := m.Settings.Chats.Resolve(ctx, call.Chat, call.Owner)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, a := range agents {
		mark := "○"
		if a.ID == answer.Agent.ID {
			mark = "●"
		}
		fmt.Fprintf(&text, "%s **%s**", mark, a.Name)
		if a.Description != "" {
			text.WriteString(" – " + a.Description)
		}
		text.WriteString("\n\n")
	}
	text.WriteString("● answers here. `/agent NAME` switches; ask me to create an agent if you want another.")
	return text.String(), nil
}

func (m *Models) modelCommand(ctx context.Context, call bridge.CommandCall) (string, error) {
	wanted := strings.TrimSpace(call.Args)
	if wanted == "" {
		return m.listModels(ctx, call)
	}
	if strings.EqualFold(wanted, "default") {
		if err := call.Author.Record(ctx, "model", "default"); err != nil {
			return "", err
		}
		if err := m.Settings.Chats.SetModel(ctx, call.Chat, settings.Ref{}); err != nil {
			return refusal(err)
		}
		return "The default model answers here again.", nil
	}
	if effort, ok := strings.CutPrefix(wanted, "effort"); ok && (effort == "" || effort[0] == ' ') {
		return m.setEffort(ctx, call, strings.ToLower(strings.TrimSpace(effort)))
	}
	ref, err := settings.ParseRef(wanted)
	if err != nil {
		return "Name a model as provider/model; /model lists them.", nil //nolint:nilerr // it is told to the person
	}
	if err := call.Author.Record(ctx, "model", ref.String()); err != nil {
		return "", err
	}
	if err := m.Settings.Chats.SetModel(ctx, call.Chat, ref); err != nil {
		return refusal(err)
	}
	return fmt.Sprintf("`%s` answers here from now on. `/model default` takes that back.", ref), nil
}

// setEffort says how hard models are to think in a chat.
func (m *Models) setEffort(ctx context.Context, call bridge.CommandCall, effort string) (string, error) {
	if effort == "default" {
		effort = ""
	}
	if err := call.Author.Record(ctx, "model", "effort "+effort); err != nil {
		return "", err
	}
	if err := m.Settings.Chats.SetEffort(ctx, call.Chat, effort); err != nil {
		return refusal(err)
	}
	if effort == "" {
		return "Models think here as hard as they do by themselves, or as the agent says.", nil
	}
	return fmt.Sprintf("Models think here with **%s** effort from now on, where they can be told so. `/model effort default` takes that back.", effort), nil
}

// maxListed bounds the models of a provider that a chat is shown.
const maxListed = 20

func (m *Models) listModels(ctx context.Context, call bridge.CommandCall) (string, error) {
	answer, err := m.Settings.Chats.Resolve(ctx, call.Chat, call.Owner)
	if err != nil {
		return "", err
	}
	providers, err := m.Settings.Providers.List(ctx)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if len(answer.Routes) > 0 {
		first := answer.Routes[0]
		fmt.Fprintf(&text, "Model: `%s/%s`", first.Provider.ID, first.Model.ID)
		if client, err := m.client(ctx, first, false); err == nil {
			m.ask(ctx, client)
			fmt.Fprintf(&text, " (%s)", Known(client.Facts()))
		}
		text.WriteString("\n\n")
	}
	for _, p := range providers {
		if !p.Active {
			continue
		}
		all, err := m.Settings.Models.List(ctx, p.ID)
		if err != nil {
			return "", err
		}
		for i, model := range all {
			if i == maxListed {
				fmt.Fprintf(&text, "- … and %d more of %s\n", len(all)-maxListed, p.Name)
				break
			}
			fmt.Fprintf(&text, "- `%s/%s`\n", p.ID, model.ID)
		}
	}
	if answer.Effort != "" {
		fmt.Fprintf(&text, "\nEffort: %s.\n", answer.Effort)
	}
	text.WriteString("\n`/model PROVIDER/MODEL` switches, `/model default` takes it back. `/model effort low` (none to max) says how hard to think.")
	return text.String(), nil
}

// refusal tells a person what the settings refuse; anything else is tried again.
func refusal(err error) (string, error) {
	if refused, ok := errors.AsType[*settings.Error](err); ok {
		return refused.Message, nil
	}
	return "", err
}

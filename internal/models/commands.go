package models

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/turn"
	"oneclaw/internal/settings"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// Commands returns the chat commands for choosing the model and the agent.
func (m *Models) Commands() []bridge.Command {
	return []bridge.Command{
		{CommandInfo: chats.CommandInfo{Name: "agent", Description: "Show the agents, or switch to one"}, RunCard: m.agentCommand},
		{CommandInfo: chats.CommandInfo{Name: "model", Description: "Show the models, or switch to one"}, RunCard: m.modelCommand},
		{
			CommandInfo: chats.CommandInfo{Name: turn.DeepCommand, Description: "Ask the strong model one question", NeedsThread: true},
			Hidden:      m.ByKind.Deep == "", TakesMessage: m.ByKind.Deep != "", Run: m.deepCommand,
		},
	}
}

// deepCommand answers /deep if there is no question, or if no model is set for it.
func (m *Models) deepCommand(_ context.Context, call bridge.CommandCall) (string, error) {
	switch {
	case m.ByKind.Deep != "":
		return fmt.Sprintf("Write your question behind it: `/deep Why …?` asks `%s` this one time.", m.ByKind.Deep), nil
	case call.Role >= toolgroups.RoleAdmin:
		return "There is no strong model yet: name one in the setting `models.by_kind.deep`, for example `preset/gpt-5.5`. Without /deep I answer with the model of this chat.", nil
	}
	return "There is no strong model here. Send it without /deep, and I answer with the model of this chat.", nil
}

// agentCommand answers /agent with a card, as [bridge.AsCard] does: it shows words of those who made the agents.
func (m *Models) agentCommand(ctx context.Context, call bridge.CommandCall) (card interact.Card, err error) {
	agents, err := m.Settings.Agents.ListFor(ctx, call.Owner)
	if err != nil {
		return card, err
	}
	for _, a := range agents {
		if a.Author != "" {
			card.AlsoQuoted = append(card.AlsoQuoted, a.Author)
		}
	}
	card.Text, err = m.listOrSwitch(ctx, call, agents)
	return card, err
}

func (m *Models) listOrSwitch(ctx context.Context, call bridge.CommandCall, agents []settings.Agent) (string, error) {
	wanted := strings.TrimSpace(call.Args)
	if wanted == "" {
		return m.listAgents(ctx, call, agents)
	}
	found := agentsNamed(agents, wanted)
	if len(found) != 1 {
		if len(found) == 0 {
			return fmt.Sprintf("I know no agent named %q. /agent lists them.", wanted), nil
		}
		list, err := m.listAgents(ctx, call, found)
		return "Several agents have this name. Name the one you mean by its id.\n\n" + list, err
	}
	a := found[0]
	if err := call.Author.Record(ctx, "agent", fmt.Sprintf("%s (%s)", a.Name, a.ID)); err != nil {
		return "", err
	}
	if err := m.Settings.Chats.SetAgent(ctx, call.Chat, call.Owner, a.ID); err != nil {
		return refusalText(err)
	}
	return m.describeNewAgent(a, call.Scope), nil
}

// agentsNamed returns the agent with an id, or else all with a name.
func agentsNamed(agents []settings.Agent, wanted string) (found []settings.Agent) {
	for _, a := range agents {
		switch {
		case a.ID == wanted:
			return []settings.Agent{a}
		case strings.EqualFold(a.Name, wanted):
			found = append(found, a)
		}
	}
	return found
}

// labelOf names an agent so that no other one can be meant: several can have one name, or the id of another as their
// name. The built-in ones are those without an id.
func labelOf(a settings.Agent) string {
	name := "**" + wording.EscapeRevealed(wording.Clip(a.Name, maxShown)) + "**"
	if a.BuiltIn {
		return name
	}
	return name + " (" + wording.InlineCode(a.ID) + ")"
}

// maxShown bounds what is shown of an agent's description or prompt, in characters.
const maxShown = 200

// describeNewAgent says which agent answers from now on. In a shared chat everybody learns who wrote its prompt.
func (m *Models) describeNewAgent(a settings.Agent, scope toolgroups.Scope) string {
	text := labelOf(a) + " answers here from now on."
	if scope.Direct || a.Owner == "" {
		return text
	}
	by := "Somebody"
	if m.NameOf != nil && a.Author != "" {
		if name := m.NameOf(a.Author); name != "" {
			by = wording.EscapeRevealed(wording.Quote(name, maxShown))
		}
	}
	return text + fmt.Sprintf(" %s made it. Its instructions begin: %s", by, wording.EscapeRevealed(wording.Quote(a.Prompt, maxShown)))
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
		text.WriteString(mark + " " + labelOf(a))
		if a.Description != "" {
			text.WriteString(" – " + wording.EscapeRevealed(wording.Quote(a.Description, maxShown)))
		}
		text.WriteString("\n\n")
	}
	text.WriteString("● answers here. `/agent NAME` switches; ask me to create an agent if you want another.")
	return text.String(), nil
}

// Card is the kind of the card that /model shows.
const Card = "model"

// modelCommand answers /model with a card if it has no arguments, or else switches the model.
func (m *Models) modelCommand(ctx context.Context, call bridge.CommandCall) (interact.Card, error) {
	if strings.TrimSpace(call.Args) == "" {
		return m.modelCard(ctx, call.Scope)
	}
	text, err := m.switchModel(ctx, call)
	return interact.Card{Text: text}, err
}

// HandlePress handles a press of a button on the card.
func (m *Models) HandlePress(ctx context.Context, press interact.Press) (interact.Result, error) {
	if press.Expired {
		return interact.Result{Text: press.Card.Text}, nil
	}
	if _, err := m.switchModel(ctx, bridge.CommandCall{Scope: press.Scope, Author: press.Author, Args: press.Choice}); err != nil {
		return interact.Result{}, err
	}
	card, err := m.modelCard(ctx, press.Scope)
	return interact.Result{Text: card.Text, Choices: interact.NonNilRows(card.Choices)}, err
}

// switchModel runs /model with arguments, and returns the answer.
func (m *Models) switchModel(ctx context.Context, call bridge.CommandCall) (string, error) {
	wanted := strings.TrimSpace(call.Args)
	if strings.EqualFold(wanted, "default") {
		if err := call.Author.Record(ctx, "model", "default"); err != nil {
			return "", err
		}
		if err := m.Settings.Chats.SetModel(ctx, call.Chat, settings.Ref{}); err != nil {
			return refusalText(err)
		}
		return "The default model answers here again.", nil
	}
	if effort, ok := strings.CutPrefix(wanted, "effort"); ok && (effort == "" || effort[0] == ' ') {
		return m.setEffort(ctx, call, strings.ToLower(strings.TrimSpace(effort)))
	}
	ref, known, _, err := m.findOffered(ctx, wanted)
	if err != nil {
		return "", err
	}
	if !known {
		return fmt.Sprintf("There is no model %s here. /model lists them.", wording.InlineCode(wording.OneLine(wanted, maxNamed))), nil
	}
	if err := call.Author.Record(ctx, "model", ref.String()); err != nil {
		return "", err
	}
	if err := m.Settings.Chats.SetModel(ctx, call.Chat, ref); err != nil {
		return refusalText(err)
	}
	return wording.InlineCode(displayName(ref)) + " answers here from now on. `/model default` takes that back.", nil
}

// findOffered returns the model that a user names, and all models.
func (m *Models) findOffered(ctx context.Context, name string) (ref settings.Ref, known bool, all []settings.Ref, err error) {
	if all, err = m.listOffered(ctx); err != nil {
		return ref, false, nil, err
	}
	i := slices.IndexFunc(all, func(ref settings.Ref) bool { return name == displayName(ref) || name == ref.String() })
	if i < 0 {
		i = slices.IndexFunc(all, func(ref settings.Ref) bool { return name == ref.Model })
	}
	if i < 0 {
		return ref, false, all, nil
	}
	return all[i], true, all, nil
}

// maxForTask bounds the models that the error of FindForTask lists.
const maxForTask = 10

// FindForTask returns the full name of the model that a background task asks for. If there is none, the
// error, which is written for the model that starts the task, lists some models.
func (m *Models) FindForTask(ctx context.Context, name string) (string, error) {
	ref, known, all, err := m.findOffered(ctx, name)
	if err != nil || known {
		return ref.String(), err
	}
	var names []string
	for _, ref := range all[:min(len(all), maxForTask)] {
		names = append(names, displayName(ref))
	}
	return "", toolgroups.Errorf(toolgroups.CodeInvalid, "There is no model '%s' here. Leave 'model' out, or name one of: %s. Nothing was started.", wording.OneLine(name, maxNamed), wording.JoinOr(names, "none"))
}

// displayName returns a model's name for users, without the provider if it is the program's own.
func displayName(ref settings.Ref) string {
	if ref.Provider == settings.PresetID {
		return ref.Model
	}
	return ref.String()
}

// listOffered lists the models of all active providers, the program's own first.
func (m *Models) listOffered(ctx context.Context) ([]settings.Ref, error) {
	providers, err := m.Settings.Providers.List(ctx)
	if err != nil {
		return nil, err
	}
	var own, others []settings.Ref
	for _, p := range providers {
		if !p.Active {
			continue
		}
		all, err := m.Settings.Models.List(ctx, p.ID)
		if err != nil {
			return nil, err
		}
		for _, model := range all {
			ref := settings.Ref{Provider: p.ID, Model: model.ID}
			if p.Preset {
				own = append(own, ref)
			} else {
				others = append(others, ref)
			}
		}
	}
	return append(own, others...), nil
}

// setEffort sets the reasoning effort in a chat.
func (m *Models) setEffort(ctx context.Context, call bridge.CommandCall, effort string) (string, error) {
	if effort == "default" {
		effort = ""
	}
	if err := call.Author.Record(ctx, "model", "effort "+effort); err != nil {
		return "", err
	}
	if err := m.Settings.Chats.SetEffort(ctx, call.Chat, effort); err != nil {
		return refusalText(err)
	}
	if effort == "" {
		return "Models think here with their default effort again, or with that of the agent.", nil
	}
	return fmt.Sprintf("Models now think here with **%s** effort, or the nearest that they have. `/model effort default` undoes that.", effort), nil
}

const (
	// maxButtons bounds the models with a button, maxListed the other models that are listed.
	maxButtons = 8
	maxListed  = 40
	// maxNamed bounds an unknown name that is repeated in an answer, in characters.
	maxNamed = 60
)

// modelCard returns a card with the model of a chat and buttons for other models.
func (m *Models) modelCard(ctx context.Context, scope toolgroups.Scope) (interact.Card, error) {
	answer, err := m.Settings.Chats.Resolve(ctx, scope.Chat, scope.Owner)
	if err != nil {
		return interact.Card{}, err
	}
	others, err := m.listOffered(ctx)
	if err != nil {
		return interact.Card{}, err
	}
	text := "No model answers here."
	if len(answer.Routes) > 0 {
		first := answer.Routes[0]
		ref := settings.Ref{Provider: first.Provider.ID, Model: first.Model.ID}
		others = slices.DeleteFunc(others, func(other settings.Ref) bool { return other == ref })
		text = "Model: " + wording.InlineCode(displayName(ref))
		if client, err := m.newClient(ctx, first, false); err == nil {
			m.refreshFacts(ctx, client)
			if known := shortFacts(client.Facts()); known != "" {
				text += " (" + known + ")"
			}
		}
		text += "."
	}
	if answer.Effort != "" {
		text += " Effort: " + answer.Effort + "."
	}
	card := interact.Card{Kind: Card}
	for _, ref := range others[:min(len(others), maxButtons)] {
		card.Choices = append(card.Choices, []interact.Choice{{Label: wording.Clip(displayName(ref), interact.MaxLabel), Value: ref.String()}})
	}
	if more := others[len(card.Choices):]; len(more) > 0 {
		var names []string
		for _, ref := range more[:min(len(more), maxListed)] {
			names = append(names, wording.InlineCode(displayName(ref)))
		}
		text += "\n\nAlso: " + strings.Join(names, ", ")
		if n := len(more) - len(names); n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		text += "."
	}
	card.Text = text + "\n\n`/model NAME` switches, `/model default` takes it back, `/model effort low` (none to max) says how hard to think."
	return card, nil
}

// refusalText returns the text of a refusal by the settings; other errors are returned as they are.
func refusalText(err error) (string, error) {
	if refused, ok := errors.AsType[*settings.Error](err); ok {
		return refused.Message, nil
	}
	return "", err
}

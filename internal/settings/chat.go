package settings

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
)

// Choice is a chat's choice of agent, model, effort and voice. Empty fields mean the defaults.
type Choice struct {
	Agent string `json:"agent,omitempty"`
	Model Ref    `json:"model,omitzero"`
	// Effort is the reasoning effort of models in the chat.
	Effort string `json:"effort,omitempty"`
	// Voice says which answers are spoken: [VoiceOn], [VoiceOff] or [VoiceAuto], the default.
	Voice string `json:"voice,omitempty"`
}

// The values of [Choice.Voice].
const (
	VoiceOn  = "on"
	VoiceOff = "off"
	// VoiceAuto speaks the answers to spoken messages.
	VoiceAuto = "auto"
)

// VoiceChoices returns the values of [Choice.Voice].
func VoiceChoices() []string { return []string{VoiceOn, VoiceOff, VoiceAuto} }

// efforts are the valid reasoning efforts, as returned by agent.Efforts.
var efforts = [...]string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

func checkEffort(effort string) error {
	if effort == "" || slices.Contains(efforts[:], effort) {
		return nil
	}
	return refuse(Invalid, "The effort must be one of %s, or empty to leave it to the model.", strings.Join(efforts[:], ", "))
}

// Chats stores the choices of chats.
type Chats struct {
	*records
	providers Providers
	models    Models
	agents    Agents
	values    Values
}

func chatKey(chat string) (string, error) {
	if chat == "" || len(chat) > maxKeyLength {
		return "", refuse(Invalid, "This chat cannot be named.")
	}
	return chatPrefix + chat, nil
}

// Get returns the choice of a chat; the zero value if there is none.
func (s Chats) Get(ctx context.Context, chat string) (Choice, error) {
	key, err := chatKey(chat)
	if err != nil {
		return Choice{}, err
	}
	choice, _, err := get[Choice](ctx, s.records, key)
	return choice, err
}

// SetAgent makes a chat use an agent that its owner may use; "" resets the choice.
func (s Chats) SetAgent(ctx context.Context, chat, owner, agent string) error {
	if agent != "" {
		a, err := s.agents.Get(ctx, agent)
		if err != nil {
			return err
		}
		if !a.usableBy(owner) {
			return agentNotFound(agent)
		}
	}
	return s.updateChoice(ctx, chat, func(c *Choice) { c.Agent = agent })
}

// SetModel makes a chat use a model; the zero value resets the choice.
func (s Chats) SetModel(ctx context.Context, chat string, ref Ref) error {
	if ref != (Ref{}) {
		if _, err := s.route(ctx, ref); err != nil {
			return err
		}
	}
	return s.updateChoice(ctx, chat, func(c *Choice) { c.Model = ref })
}

// SetEffort sets the reasoning effort in a chat; "" resets the choice.
func (s Chats) SetEffort(ctx context.Context, chat, effort string) error {
	if err := checkEffort(effort); err != nil {
		return err
	}
	return s.updateChoice(ctx, chat, func(c *Choice) { c.Effort = effort })
}

// SetVoice sets which answers are spoken in a chat; "" resets the choice.
func (s Chats) SetVoice(ctx context.Context, chat, voice string) error {
	if voice != "" && !slices.Contains(VoiceChoices(), voice) {
		return refuse(Invalid, "The voice must be one of %s.", strings.Join(VoiceChoices(), ", "))
	}
	return s.updateChoice(ctx, chat, func(c *Choice) { c.Voice = voice })
}

func (s Chats) updateChoice(ctx context.Context, chat string, f func(*Choice)) error {
	key, err := chatKey(chat)
	if err != nil {
		return err
	}
	return update(ctx, s.records, key, func(c *Choice, _ bool) error {
		f(c)
		return nil
	})
}

// Move moves the choice of a chat, and the agents of its owner, to the chat that continues it. A choice
// that the new chat already has is kept.
func (s Chats) Move(ctx context.Context, from, fromOwner, to, toOwner string) error {
	agents, err := s.agents.List(ctx)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if fromOwner == "" || a.Owner != fromOwner {
			continue
		}
		err := update(ctx, s.records, agentPrefix+a.ID, func(value *Agent, exists bool) error {
			if !exists {
				return agentNotFound(a.ID) // deleted meanwhile
			}
			value.Owner = toOwner
			return nil
		})
		if err != nil && !Is(err, NotFound) {
			return err
		}
	}
	choice, err := s.Get(ctx, from)
	if err != nil || choice == (Choice{}) {
		return err
	}
	err = s.updateChoice(ctx, to, func(c *Choice) {
		if *c == (Choice{}) {
			*c = choice
		}
	})
	if err != nil {
		return err
	}
	return s.remove(ctx, chatPrefix+from)
}

// Forget deletes the choices of a chat and its threads, all agents of an owner, and the owner's name as the
// author of others.
func (s Chats) Forget(ctx context.Context, chat, owner string) error {
	agents, err := s.agents.List(ctx)
	if err != nil {
		return err
	}
	for _, a := range agents {
		switch {
		case a.Owner == owner:
			err = s.remove(ctx, agentPrefix+a.ID)
		case a.Author == owner:
			err = update(ctx, s.records, agentPrefix+a.ID, func(value *Agent, exists bool) error {
				if value.Author = ""; !exists {
					return agentNotFound(a.ID) // deleted meanwhile
				}
				return nil
			})
		}
		if err != nil && !Is(err, NotFound) {
			return err
		}
	}
	chosen, err := s.ListChoices(ctx, chat)
	for name := range chosen {
		err = errors.Join(err, s.remove(ctx, chatPrefix+name))
	}
	return err
}

// ListChoices returns the choices of a chat and its threads, by the chat's or thread's name.
func (s Chats) ListChoices(ctx context.Context, chat string) (map[string]Choice, error) {
	all, err := list[Choice](ctx, s.records, chatPrefix)
	maps.DeleteFunc(all, func(name string, _ Choice) bool { return name != chat && !strings.HasPrefix(name, chat+":") })
	return all, err
}

// Route is a usable model with its provider.
type Route struct {
	Provider Provider
	Model    Model
}

// Resolution is the agent, effort and models with which the next turn of a chat is answered.
type Resolution struct {
	Agent Agent
	// Effort is the reasoning effort of the chat, or of its agent.
	Effort string
	// Routes are the models to try, in order: the chat's choice, the agent's preference, the default,
	// the program's own; if all are unusable, any other. Unusable models are left out.
	Routes []Route
}

// Resolve returns the agent, effort and models for the next turn of a chat. It skips choices that no
// longer exist, and agents that owner may not use.
func (s Chats) Resolve(ctx context.Context, chat, owner string) (Resolution, error) {
	choice, err := s.Get(ctx, chat)
	if err != nil {
		return Resolution{}, err
	}
	agent, err := s.values.Get(ctx, SettingDefaultAgent)
	if err != nil {
		return Resolution{}, err
	}
	model, err := s.values.Get(ctx, SettingDefaultModel)
	if err != nil {
		return Resolution{}, err
	}
	var answer Resolution
	if answer.Agent, err = s.firstUsableAgent(ctx, owner, choice.Agent, agent); err != nil {
		return Resolution{}, err
	}
	answer.Effort = cmp.Or(choice.Effort, answer.Agent.Effort)
	byDefault, _ := ParseRef(model) // the setting was validated; the zero value if it is empty
	refs := []Ref{choice.Model, answer.Agent.PreferredModel, byDefault}
	if s.cfg.Preset.Type != "" {
		refs = append(refs, Ref{PresetID, s.cfg.Preset.Model})
	}
	for i, ref := range refs {
		if ref.Provider == "" || ref.Model == "" || slices.Contains(refs[:i], ref) {
			continue
		}
		route, err := s.route(ctx, ref)
		if refusal := (*Error)(nil); errors.As(err, &refusal) {
			s.log.Debug("skipping an unusable model", "chat", chat, "model", ref, "reason", refusal.Message)
			continue
		}
		if err != nil {
			return Resolution{}, err
		}
		answer.Routes = append(answer.Routes, route)
	}
	if answer.Routes == nil {
		answer.Routes, err = s.anyRoute(ctx)
	}
	return answer, err
}

// anyRoute returns the first model that can be asked, for a chat that nothing else answers.
func (s Chats) anyRoute(ctx context.Context) ([]Route, error) {
	all, err := s.providers.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		models, err := s.models.listModels(ctx, p.ID)
		if err != nil {
			return nil, err
		}
		if p.Active && p.HasKey && len(models) > 0 {
			return []Route{{p, models[0]}}, nil
		}
	}
	return nil, nil
}

// firstUsableAgent returns the first agent that exists and that owner may use, or else the default one.
func (s Chats) firstUsableAgent(ctx context.Context, owner string, ids ...string) (Agent, error) {
	for _, id := range append(ids, s.cfg.Agents[0].ID) {
		if id == "" {
			continue
		}
		a, err := s.agents.Get(ctx, id)
		switch {
		case err == nil && a.usableBy(owner):
			return a, nil
		case err != nil && !Is(err, NotFound):
			return Agent{}, err
		}
	}
	return Agent{}, agentNotFound(cmp.Or(ids...))
}

// Route returns a model with its provider, if the provider is usable. The provider need not list the
// model.
func (s Chats) Route(ctx context.Context, ref Ref) (Route, error) {
	route, err := s.route(ctx, ref)
	if Is(err, NotFound) && route.Provider.ID != "" {
		route.Model, err = Model{Provider: ref.Provider, ID: ref.Model, Name: ref.Model, ContextTokens: ContextTokens(ref.Model)}, nil
	}
	return route, err
}

// route returns a listed model with its provider, if the provider is active and has a key.
func (s Chats) route(ctx context.Context, ref Ref) (Route, error) {
	p, err := s.providers.Get(ctx, ref.Provider)
	if err != nil {
		return Route{}, err
	}
	if !p.Active {
		return Route{}, refuse(Invalid, "Provider '%s' is not active.", p.Name)
	}
	if !p.HasKey {
		return Route{}, refuse(Invalid, "Provider '%s' has no API key.", p.Name)
	}
	m, err := s.models.Get(ctx, ref)
	return Route{p, m}, err
}

package settings

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"oneclaw/storage"
)

// Bounds of an agent's fields.
const (
	// maxTemperature is the highest temperature that providers accept.
	maxTemperature = 2.0
	// maxIterations is the highest limit of rounds; 0 means the program's own.
	maxIterations = 199
)

// Agent is a persona: a prompt and preferences.
type Agent struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Prompt      string `json:"prompt"`
	// PreferredModel is tried before the default model. If it is incomplete, it is stored but has no
	// effect.
	PreferredModel Ref `json:"prefers,omitzero"`
	// Temperature, if not nil, is the temperature of the agent's requests.
	Temperature *float64 `json:"temperature,omitempty"`
	// Effort is the reasoning effort; empty leaves it to the models.
	Effort string `json:"effort,omitempty"`
	// MaxIterations bounds the rounds of a turn; 0 means the program's own limit.
	MaxIterations int `json:"max_iterations,omitempty"`
	// Owner is the user or chat for which the agent was created; if empty, everyone may use the agent.
	Owner string `json:"owner,omitempty"`
	// Author is the user who had the agent made, as platform:id; empty after they were forgotten. Outside says
	// that it was made, or its texts changed, in a conversation that held words of others, and Unshown that neither a
	// line nor a card showed Author all of them then.
	Author  string `json:"by,omitempty"`
	Outside bool   `json:"outside,omitempty"`
	Unshown bool   `json:"unshown,omitempty"`
	// BuiltIn is set for agents that come with the program, which cannot be changed.
	BuiltIn bool      `json:"-"`
	Created time.Time `json:"created,omitzero"`
}

func (a *Agent) check() error {
	if err := checkName("name", a.Name); err != nil {
		return err
	}
	switch n := utf8.RuneCountInString(a.Prompt); {
	case strings.TrimSpace(a.Prompt) == "":
		return refuse(Invalid, "The system prompt is blank.")
	case n > maxPrompt:
		return refuse(Invalid, "The system prompt has %d characters, at most %d are possible.", n, maxPrompt)
	}
	if n := utf8.RuneCountInString(a.Description); n > maxPrompt/50 {
		return refuse(Invalid, "The description has %d characters, at most %d are possible.", n, maxPrompt/50)
	}
	if t := a.Temperature; t != nil && !(*t >= 0 && *t <= maxTemperature) {
		return refuse(Invalid, "The temperature must lie between 0 and %g.", maxTemperature)
	}
	if err := checkEffort(a.Effort); err != nil {
		return err
	}
	if a.MaxIterations < 0 || a.MaxIterations > maxIterations {
		return refuse(Invalid, "The limit of iterations must lie between 1 and %d, or be 0 for none of its own.", maxIterations)
	}
	return nil
}

// IsOthers reports whether the prompt may be the words of others than a user, in a direct chat with them or in
// a shared one.
func (a *Agent) IsOthers(user string, direct bool) bool {
	return a.Outside || a.Owner != "" && !direct && a.Author != user
}

// WasShownTo reports whether a user was shown all of an agent's texts when it was made or changed.
func (a *Agent) WasShownTo(user string) bool { return a.Author == user && !a.Unshown }

// Agents stores agents, and lists them together with the built-in ones.
type Agents struct{ *records }

func (s Agents) builtIn(id string) (Agent, bool) {
	for _, a := range s.cfg.Agents {
		if a.ID == id {
			a.BuiltIn = true
			return a, true
		}
	}
	return Agent{}, false
}

func agentNotFound(id string) error {
	return refuse(NotFound, "There is no agent '%s'. list_agents shows those there are.", shorten(id))
}

// Get returns the agent with an id. If there is none, or the stored one is invalid, the error is an
// [*Error] with the reason [NotFound].
func (s Agents) Get(ctx context.Context, id string) (Agent, error) {
	if a, ok := s.builtIn(id); ok {
		return a, nil
	}
	if !isValidID(id) {
		return Agent{}, agentNotFound(id)
	}
	a, exists, err := get[Agent](ctx, s.records, agentPrefix+id)
	if err != nil {
		return Agent{}, err
	}
	if !exists || !s.logIfInvalid(agentPrefix+id, a.check()) {
		return Agent{}, agentNotFound(id)
	}
	a.ID = id
	return a, nil
}

// List returns all agents, the built-in ones first, then by name.
func (s Agents) List(ctx context.Context) ([]Agent, error) {
	stored, err := list[Agent](ctx, s.records, agentPrefix)
	if err != nil {
		return nil, err
	}
	var all []Agent
	for _, a := range s.cfg.Agents {
		a.BuiltIn = true
		delete(stored, a.ID)
		all = append(all, a)
	}
	for id, a := range stored {
		a.ID = id
		stored[id] = a
	}
	maps.DeleteFunc(stored, func(id string, a Agent) bool { return !s.logIfInvalid(agentPrefix+id, a.check()) })
	return append(all, sortByName(stored, func(a Agent) (name, id string) { return a.Name, a.ID })...), nil
}

// ListFor returns the agents that an owner may use.
func (s Agents) ListFor(ctx context.Context, owner string) ([]Agent, error) {
	all, err := s.List(ctx)
	return slices.DeleteFunc(all, func(a Agent) bool { return !a.usableBy(owner) }), err
}

func (a *Agent) usableBy(owner string) bool { return a.BuiltIn || a.Owner == "" || a.Owner == owner }

// Add stores a new agent and returns it with its id. Names need not be unique.
func (s Agents) Add(ctx context.Context, a Agent) (Agent, error) {
	a.ID, a.BuiltIn, a.Created = newID("agent"), false, s.cfg.Now().UTC()
	a.Name, a.Description = strings.TrimSpace(a.Name), strings.TrimSpace(a.Description)
	if err := a.check(); err != nil {
		return Agent{}, err
	}
	all, err := s.List(ctx)
	if err != nil {
		return Agent{}, err
	}
	own := slices.DeleteFunc(all, func(o Agent) bool { return o.BuiltIn || o.Owner != a.Owner })
	if len(own) >= MaxAgents {
		return Agent{}, refuse(Full, "There are %d agents already, no more are possible. Delete one first.", len(own))
	}
	return a, s.put(ctx, agentPrefix+a.ID, a, storage.Absent)
}

// Change changes an agent with f, checks it, and stores it. f may be called more than once. It cannot
// change the id, the owner, the author and the time of creation, nor take Outside and Unshown back.
func (s Agents) Change(ctx context.Context, id string, f func(a *Agent)) (before, after Agent, err error) {
	if before, err = s.Get(ctx, id); err != nil {
		return before, before, err
	}
	if before.BuiltIn {
		return before, before, refuse(Protected, "Agent '%s' is built in and cannot be changed. create_agent makes one of your own.", before.Name)
	}
	err = update(ctx, s.records, agentPrefix+id, func(value *Agent, exists bool) error {
		if !exists {
			return agentNotFound(id)
		}
		value.ID = id
		before, after = *value, *value
		f(&after)
		after.ID, after.Owner, after.Created, after.BuiltIn = id, before.Owner, before.Created, false
		after.Author, after.Outside, after.Unshown = before.Author, before.Outside || after.Outside, before.Unshown || after.Unshown
		after.Name, after.Description = strings.TrimSpace(after.Name), strings.TrimSpace(after.Description)
		*value = after
		return after.check()
	})
	return before, after, err
}

// Delete deletes an agent. Chats that use the agent return to the default agent.
func (s Agents) Delete(ctx context.Context, id string) (Agent, error) {
	a, err := s.Get(ctx, id)
	if err != nil {
		return a, err
	}
	if a.BuiltIn {
		return a, refuse(Protected, "Agent '%s' is built in and cannot be deleted.", a.Name)
	}
	return a, s.remove(ctx, agentPrefix+id)
}

// Package eval replays conversations that have feedback with another model, routing or prompt, and
// reports the differences. Tools return recorded results, so they have no effect.
package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/internal/bill"
	"oneclaw/internal/budget"
	"oneclaw/internal/learning"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// Config configures a [Player].
type Config struct {
	// Model is the model to test. Name is its name at the provider.
	Model agent.Model
	Name  string
	// Registry has the program's tools. None of them is run.
	Registry *toolgroups.Registry
	// Routing, Search and Prices configure a [search.Router].
	Routing search.Routing
	Search  search.Config
	Prices  func(model string) search.Prices
	// Prompt is the system prompt of every conversation.
	Prompt string
	// Effort is the reasoning effort; empty leaves it to the model.
	Effort string
	// DollarPrice returns the price of a model, and false if it is unknown.
	DollarPrice func(model string) (budget.Price, bool)
	// Budget bounds the cost of all cases, in dollars. If no price is known, a million tokens count as a
	// dollar.
	Budget float64
	// Now is the clock.
	Now func() time.Time
}

// Player runs cases. It must not be used concurrently.
type Player struct {
	cfg      Config
	agent    *agent.Agent
	router   toolgroups.Router
	registry *toolgroups.Registry
	model    *budgetedModel
	results  *bill.Results // of the current case
}

// New makes a player.
func New(cfg Config) (*Player, error) {
	if cfg.Model == nil || cfg.Registry == nil {
		return nil, errors.New("eval: no model or no registry")
	}
	p := &Player{cfg: cfg, agent: agent.New(agent.Config{Now: cfg.Now}), model: newBudgetedModel(cfg)}
	run := func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
		return p.results.Run(ctx, call)
	}
	var err error
	if p.registry, err = bill.NewStandInRegistry(cfg.Registry.Core(), cfg.Registry.Groups(), func(t *toolgroups.Tool) {
		t.Run, t.ChecksArguments = run, true
	}); err != nil {
		return nil, fmt.Errorf("eval: %w", err)
	}
	if p.router, err = search.NewRouter(search.RouterConfig{Routing: cfg.Routing, Config: cfg.Search, Prices: cfg.Prices}); err != nil {
		return nil, fmt.Errorf("eval: %w", err)
	}
	return p, nil
}

// Side is one of the two compared answers.
type Side struct {
	Model   string `json:"model,omitempty"`
	Routing string `json:"routing,omitempty"`
	// Groups are the groups that are loaded at the end.
	Groups []string       `json:"groups,omitempty"`
	Answer string         `json:"answer"`
	Used   learning.Usage `json:"used"`
}

// Result is a case with its differences.
type Result struct {
	ID       string `json:"id"`
	Question string `json:"question"`
	Good     int    `json:"good,omitempty"`
	Bad      int    `json:"bad,omitempty"`
	Was      Side   `json:"was"`
	Now      Side   `json:"now"`
	// Same, Missing and New are calls of tools with their arguments: those in both answers, only in
	// the recorded one, and only in the new one. Calls that find tools are left out.
	Same    []string `json:"same,omitempty"`
	Missing []string `json:"missing,omitempty"`
	New     []string `json:"new,omitempty"`
	// Unrecorded counts the new calls without a recorded result.
	Unrecorded int `json:"unrecorded,omitempty"`
	// Gone are the recorded tools that no longer exist.
	Gone []string `json:"gone,omitempty"`
	// Unshown counts messages that arrived during the recorded turn and that the model was not shown,
	// because it answered earlier.
	Unshown int `json:"unshown,omitempty"`
	// Error explains why there is no answer now.
	Error string `json:"error,omitempty"`
}

// Play runs a case. A model's failure to answer is in the result. An error ends the whole run: it is
// [ErrBudget], a refused key, or the end of ctx.
func (p *Player) Play(ctx context.Context, c learning.Case) (Result, error) {
	r := Result{ID: c.Seen.ID, Question: c.Question(), Good: c.Outcome.Good, Bad: c.Outcome.Bad, Was: Side{
		Model: c.Outcome.Model, Routing: c.Outcome.Routing, Groups: loadedGroups(&c), Answer: c.Answer(), Used: c.Outcome.Used,
	}}
	// The results of the turn come before those of earlier turns.
	p.results = bill.NewResults(slices.Concat(bill.RecordedCalls(c.Outcome.Messages), bill.RecordedCalls(c.Seen.Messages))...)
	late := steering{c.Outcome.Messages}
	var mu sync.Mutex
	set := toolgroups.NewSet(func() *toolgroups.Registry { return p.registry }, c.Seen.Groups)
	person := c.Seen.Person
	turn := agent.Turn{
		Prompt: p.cfg.Prompt, History: slices.Clip(c.Seen.Messages), Incomplete: c.Seen.Incomplete, Set: set, Router: p.router, CacheKey: c.Seen.ID, Effort: p.cfg.Effort,
		Scope: toolgroups.Scope{User: person, Chat: c.Seen.Chat, Direct: c.Seen.Direct, Owner: person, Session: c.Seen.ID, Role: toolgroups.RoleOwner},
		Model: p.model,
		Steer: late.next,
		Observe: func(e agent.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Request != nil {
				r.Now.Routing = e.Request.Routing
			}
		},
	}
	var calls []agent.Call
	var failure error
	for m, err := range p.agent.Run(ctx, turn) {
		if err != nil {
			failure = err
			break
		}
		if m.Role != agent.RoleAssistant {
			continue
		}
		calls = append(calls, m.Calls...)
		r.Now.Model = m.Model
		if m.Usage != nil {
			r.Now.Used.Add(learning.UsageOf(*m.Usage, p.cfg.Name, p.cfg.DollarPrice))
		}
		if m.Final {
			r.Now.Answer = m.Text
		}
	}
	r.Now.Groups, r.Unrecorded, r.Unshown = set.Loaded(), p.results.Unrecorded(), late.count()
	p.compare(&r, &c, calls)
	err := p.runError(ctx, &r, failure)
	return r, err
}

// runError records a case's failure in the result. It returns an error if the failure ends the whole
// run.
func (p *Player) runError(ctx context.Context, r *Result, failure error) error {
	if failure == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.Error = failure.Error()
	model, ok := errors.AsType[*agent.ModelError](failure)
	switch {
	case ok && model.Kind == agent.KindBudget:
		return ErrBudget
	case ok && model.Kind == agent.KindAuth:
		return failure
	}
	return nil
}

// compare fills in the differences between the calls.
func (p *Player) compare(r *Result, c *learning.Case, now []agent.Call) {
	var was []agent.Call
	for _, m := range c.Outcome.Messages {
		was = append(was, m.Calls...)
	}
	before := encodeCalls(was)
	for _, call := range encodeCalls(now) {
		if i := slices.Index(before, call); i >= 0 {
			r.Same, before = append(r.Same, call), slices.Delete(before, i, i+1)
		} else {
			r.New = append(r.New, call)
		}
	}
	r.Missing = before
	for _, call := range was {
		name := call.EffectiveTool()
		if _, ok := p.registry.Tool(name); !ok && !bill.FindsTools(name) && !slices.Contains(r.Gone, name) {
			r.Gone = append(r.Gone, name)
		}
	}
}

// encodeCalls formats calls, except those that find tools.
func encodeCalls(calls []agent.Call) []string {
	var all []string
	for _, call := range calls {
		if !bill.FindsTools(call.EffectiveTool()) {
			all = append(all, bill.FormatCall(call.EffectiveTool(), call.EffectiveArguments()))
		}
	}
	return all
}

// loadedGroups returns the groups that were loaded at the end of a recorded turn.
func loadedGroups(c *learning.Case) []string {
	groups := slices.Clone(c.Seen.Groups)
	for _, name := range agent.RestoreGroups(slices.Values(c.Outcome.Messages)) {
		if !slices.Contains(groups, name) {
			groups = append(groups, name)
		}
	}
	return groups
}

// steering has the messages that users wrote during a recorded turn.
type steering struct{ rest []agent.Message }

// next returns the messages of the next round.
func (s *steering) next(context.Context) (messages []agent.Message, unasked bool, _ error) {
	for replies := 0; len(s.rest) > 0; s.rest = s.rest[1:] {
		switch s.rest[0].Role {
		case agent.RoleAssistant:
			if replies++; replies > 1 {
				return messages, false, nil
			}
		case agent.RoleUser:
			messages = append(messages, s.rest[0])
		}
	}
	return messages, false, nil
}

// count returns the number of messages that are left.
func (s *steering) count() (n int) {
	for _, m := range s.rest {
		if m.Role == agent.RoleUser {
			n++
		}
	}
	return n
}

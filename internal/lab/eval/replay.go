// Package eval replays conversations that have feedback with another model, routing or prompt, and
// reports the differences. Tools return recorded results, so they have no effect.
package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
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

// CodeUnrecorded is the error code of a call without a recorded result.
const CodeUnrecorded = "unrecorded"

const unrecordedText = "This call is not on record. This conversation is replayed for a test, with the results that tools gave when it took place: " +
	"nothing was run, and nothing has changed. Go on with what you have, or say in your answer what you would have done."

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
	// Budget bounds the cost of all cases, in dollars; see [Player.DescribeLimit].
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
	tracker  *budgetTracker
	recorded *recordedResults // of the current case
}

// New makes a player.
func New(cfg Config) (*Player, error) {
	if cfg.Model == nil || cfg.Registry == nil {
		return nil, errors.New("eval: no model or no registry")
	}
	p := &Player{cfg: cfg, agent: agent.New(agent.Config{Now: cfg.Now}), tracker: newBudgetTracker(cfg)}
	run := func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) { return p.recorded.run(call) }
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
	p.recorded = newRecordedResults(&c)
	set := toolgroups.NewSet(func() *toolgroups.Registry { return p.registry }, c.Seen.Groups)
	person := c.Seen.Person
	turn := agent.Turn{
		Prompt: p.cfg.Prompt, Incomplete: c.Seen.Incomplete, Set: set, Router: p.router, CacheKey: c.Seen.ID, Effort: p.cfg.Effort,
		Scope: toolgroups.Scope{User: person, Chat: c.Seen.Chat, Direct: c.Seen.Direct, Owner: person, Session: c.Seen.ID, Role: toolgroups.RoleOwner},
		Model: budgetedModel{p.cfg.Model, p.tracker},
		Steer: p.recorded.steer,
		Observe: func(e agent.Event) {
			if e.Request != nil {
				p.recorded.setRouting(e.Request.Routing)
			}
		},
	}
	for _, m := range c.Seen.Messages {
		turn.History = append(turn.History, m.ToAgent())
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
	r.Now.Groups, r.Now.Routing = set.Loaded(), p.recorded.routing
	p.compare(&r, &c, calls)
	return r, p.runError(ctx, &r, failure)
}

// runError returns a case's failure if it ends the whole run, and nil otherwise.
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
		for _, call := range m.Calls {
			was = append(was, call.ToAgent())
		}
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
		if _, ok := p.registry.Tool(name); !ok && !isFinder(name) && !slices.Contains(r.Gone, name) {
			r.Gone = append(r.Gone, name)
		}
	}
	r.Unrecorded, r.Unshown = p.recorded.unrecorded, len(p.recorded.lateMessages)
}

// isFinder reports whether a tool only finds other tools, which each routing does in its own way.
func isFinder(name string) bool { return name == toolgroups.LoadToolGroup || toolgroups.Reserved(name) }

// encodeCalls encodes calls as texts that are equal if the calls are.
func encodeCalls(calls []agent.Call) []string {
	var all []string
	for _, call := range calls {
		if isFinder(call.EffectiveTool()) {
			continue
		}
		text := call.EffectiveArguments()
		if data, err := toolgroups.EncodeJSON(decodeArguments(text)); err == nil {
			text = string(data)
		}
		all = append(all, call.EffectiveTool()+" "+text)
	}
	return all
}

// loadedGroups returns the groups that were loaded at the end of a recorded turn.
func loadedGroups(c *learning.Case) []string {
	groups := slices.Clone(c.Seen.Groups)
	for _, name := range agent.RestoreGroups(func(yield func(agent.Message) bool) {
		for _, m := range c.Outcome.Messages {
			if !yield(m.ToAgent()) {
				return
			}
		}
	}) {
		if !slices.Contains(groups, name) {
			groups = append(groups, name)
		}
	}
	return groups
}

// decodeArguments decodes the arguments of a call. Invalid JSON is returned as a string.
func decodeArguments(arguments string) any {
	var v any
	switch {
	case arguments == "":
		return map[string]any{}
	case json.Unmarshal([]byte(arguments), &v) != nil:
		return arguments
	}
	return v
}

// recordedResults has the recorded results of a case.
type recordedResults struct {
	mu sync.Mutex
	// turn has the calls of the turn. Each is used once before any is used again, and before those in
	// history.
	turn, history []*recordedCall
	unrecorded    int
	// lateMessages are the messages that arrived during the turn, lateRounds after how many rounds.
	lateMessages []agent.Message
	lateRounds   []int
	round        int
	routing      string
}

type recordedCall struct {
	tool      string
	arguments any
	result    learning.Message
	used      bool
}

func newRecordedResults(c *learning.Case) *recordedResults {
	t := &recordedResults{turn: recordedCalls(c.Outcome.Messages), history: recordedCalls(c.Seen.Messages)}
	rounds := 0
	for _, m := range c.Outcome.Messages {
		switch m.Role {
		case agent.RoleAssistant:
			rounds++
		case agent.RoleUser:
			t.lateMessages, t.lateRounds = append(t.lateMessages, m.ToAgent()), append(t.lateRounds, rounds)
		}
	}
	return t
}

// recordedCalls returns the calls that have a result.
func recordedCalls(messages []learning.Message) (all []*recordedCall) {
	open := map[string]*recordedCall{}
	for _, m := range messages {
		if m.Role == agent.RoleAssistant {
			clear(open)
		}
		for _, c := range m.Calls {
			call := c.ToAgent()
			open[c.ID] = &recordedCall{tool: call.EffectiveTool(), arguments: decodeArguments(call.EffectiveArguments())}
		}
		if one := open[m.CallID]; m.Role == agent.RoleTool && one != nil {
			one.result = m
			all = append(all, one)
			delete(open, m.CallID)
		}
	}
	return all
}

// run returns the recorded result of the same call.
func (t *recordedResults) run(call toolgroups.Call) (toolgroups.Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	arguments := decodeArguments(string(call.Arguments))
	var found *recordedCall
	for _, one := range slices.Concat(t.turn, t.history) {
		if one.tool != call.Name || !reflect.DeepEqual(one.arguments, arguments) {
			continue
		}
		if found == nil {
			found = one
		}
		if !one.used {
			found = one
			break
		}
	}
	if found == nil {
		t.unrecorded++
		return toolgroups.Result{}, toolgroups.Errorf(CodeUnrecorded, unrecordedText)
	}
	found.used = true
	if found.result.Code != "" {
		return toolgroups.Result{}, toolgroups.Errorf(found.result.Code, "%s", found.result.Text)
	}
	return toolgroups.Result{Text: found.result.Text}, nil
}

// steer returns the messages that users wrote during the round.
func (t *recordedResults) steer(context.Context) (messages []agent.Message, unasked bool, _ error) {
	for t.round++; len(t.lateMessages) > 0 && t.lateRounds[0] <= t.round; t.lateMessages, t.lateRounds = t.lateMessages[1:], t.lateRounds[1:] {
		messages = append(messages, t.lateMessages[0])
	}
	return messages, false, nil
}

func (t *recordedResults) setRouting(routing string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.routing = routing
}

package bill

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"

	"oneclaw/agent"
	"oneclaw/agent/anthropic"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// recording has the requests of a conversation under one routing.
type recording struct {
	mode     search.Routing // the routing used
	requests []request
	log      []agent.Message
}

type playback struct {
	player *player
	agent  *agent.Agent
	client client
	prompt string
	router toolgroups.Router

	toolbox *toolbox
	results *Results
}

// client is a model with a profile.
type client interface {
	agent.Model
	Profile() agent.Profile
}

// providerClient is a client that appears as another provider, with its model name and context size.
type providerClient struct {
	client
	provider Provider
}

// Profile returns the client's profile with the provider's model and context.
func (s providerClient) Profile() agent.Profile {
	p := s.client.Profile()
	p.Name, p.ContextTokens = s.provider.Model, s.provider.Context
	return p
}

func (b *Bill) play(ctx context.Context, c Conversation, mode search.Routing, table Provider) (recording, error) {
	s, err := b.newPlayback(c, mode, table.MessagesAPI)
	if err != nil {
		return recording{}, err
	}
	var history []agent.Message
	for i, turn := range c.Turns {
		s.player.turn, s.player.step = i, 0
		s.player.elapsed += turn.After
		history = append(history, agent.Message{Role: agent.RoleUser, Text: turn.User, Time: s.player.now()})
		set := toolgroups.NewSet(func() *toolgroups.Registry { return s.toolbox.registry }, agent.RestoreGroups(slices.Values(history)))
		for m, err := range s.agent.Run(ctx, agent.Turn{
			Prompt: s.prompt, History: slices.Clone(history), Set: set, Router: s.router, CacheKey: c.Name,
			Scope: toolgroups.Scope{User: "telegram:1", Chat: "telegram:1", Direct: true, Owner: "telegram:1", Session: c.Name, Role: toolgroups.RoleOwner},
			Model: providerClient{s.client, table}, MaxRounds: math.MaxInt, // the conversation has an end
		}) {
			if c.Recorded && turn.Answer == "" && s.endsAsRecorded(err) {
				s.player.err = nil
				break
			}
			if err != nil {
				return recording{}, fmt.Errorf("bill: %s by %s, turn %d: %w", c.Name, mode, i+1, errors.Join(s.player.err, err))
			}
			history = append(history, m)
		}
	}
	if left := s.results.unused(); len(left) > 0 && !c.Recorded {
		return recording{}, fmt.Errorf("bill: %s by %s: %d calls were never run, the first is of %s", c.Name, mode, len(left), left[0].Tool)
	}
	rec := recording{mode: mode, requests: s.player.requests, log: history}
	if mode == search.RoutingAuto {
		for _, m := range slices.Backward(history) {
			if m.Role == agent.RoleAssistant {
				rec.mode = search.RecordedRouting(m.Routing)
				break
			}
		}
	}
	return rec, nil
}

// endsAsRecorded reports whether an error is that of a recorded turn without an answer: its steps are at
// an end, or the agent has stopped it because its calls had failed too often.
func (s *playback) endsAsRecorded(err error) bool {
	failure, ok := errors.AsType[*agent.ModelError](err)
	return ok && failure.Kind == agent.KindRounds || errors.Is(s.player.err, errNoAnswer)
}

// toolbox has the tools for playing conversations, one at a time.
type toolbox struct {
	registry *toolgroups.Registry
	groups   map[string]string // by tool
	// run is the function of every tool in the current conversation.
	run func(context.Context, toolgroups.Call) (toolgroups.Result, error)
}

// toolbox returns the tools of the program, optionally with those of the servers.
func (b *Bill) toolbox(servers bool) (*toolbox, error) {
	if known, ok := b.toolboxes[servers]; ok {
		return known, nil
	}
	k := &toolbox{groups: map[string]string{}}
	run := func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) { return k.run(ctx, call) }
	groups := b.cfg.Registry.Groups()
	if servers {
		groups = append(groups, b.servers...)
	}
	for _, g := range groups {
		for i := range g.Tools {
			k.groups[g.Tools[i].Name] = g.Name
		}
	}
	var err error
	if k.registry, err = NewStandInRegistry(b.cfg.Registry.Core(), groups, func(t *toolgroups.Tool) { t.Run = run }); err != nil {
		return nil, fmt.Errorf("bill: %w", err)
	}
	b.toolboxes[servers] = k
	return k, nil
}

func (b *Bill) newPlayback(c Conversation, mode search.Routing, messages bool) (*playback, error) {
	var calls []Call
	for _, turn := range c.Turns {
		calls = turn.appendCalls(calls)
	}
	s := &playback{prompt: b.cfg.Prompt, player: &player{conversation: c, meter: b.meter, claudeTools: map[string]claudeTool{}}, results: NewResults(calls...)}
	var err error
	if s.toolbox, err = b.toolbox(c.WithServers); err != nil {
		return nil, err
	}
	s.toolbox.run, s.player.groups = s.results.Run, s.toolbox.groups
	if s.router, err = search.NewRouter(search.RouterConfig{Routing: mode, Config: b.cfg.ToolSearch, Prices: b.cfg.Prices}); err != nil {
		return nil, fmt.Errorf("bill: %w", err)
	}
	s.agent = agent.New(agent.Config{Now: s.player.now})
	through := &http.Client{Transport: s.player}
	if messages {
		// The encoder knows this name's features.
		s.client, err = anthropic.New(anthropic.Config{BaseURL: "http://bill.invalid", APIKey: "none", Model: "claude-sonnet-5", Retry: provider.Retry{MaxAttempts: 1}, HTTPClient: through})
	} else {
		s.client, err = openai.New(openai.Config{BaseURL: "http://bill.invalid/v1", Model: "scripted", Retry: provider.Retry{MaxAttempts: 1}, HTTPClient: through})
	}
	return s, err
}

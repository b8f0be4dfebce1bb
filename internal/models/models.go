// Package models finds the language model that answers a turn, and lets users choose it.
package models

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/agent/anthropic"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	"oneclaw/bridge/turn"
	"oneclaw/internal/budget"
	"oneclaw/internal/settings"
	"oneclaw/internal/telemetry"
	"oneclaw/toolgroups"
)

// Config configures [Models].
type Config struct {
	// Own is the program's own model.
	Own Own
	// ByKind are the models of some kinds of work.
	ByKind   ByKind
	Settings *settings.Settings
	Vault    *settings.Vault
	// HTTP sends the requests; see [Transport].
	HTTP   *http.Client
	Ledger *budget.Ledger
	// Guest returns a user's own daily limit besides the common ones; nil for none.
	Guest   func(scope toolgroups.Scope) budget.Limit
	Metrics *telemetry.Metrics // nil without metrics
	Traces  *telemetry.Tracer  // nil without tracing
	Logger  *slog.Logger
}

// ByKind names the models of some kinds of work, each as provider_id/model_id. Empty means the model of
// the chat, which also stands in where the named one fails.
type ByKind struct {
	// Deep answers a message that begins with /deep; no other model stands in for it.
	Deep string `yaml:"deep" env:"ONECLAW_MODELS_DEEP"`
	// Schedules and Webhooks run the tasks that these begin.
	Schedules string `yaml:"schedules" env:"ONECLAW_MODELS_SCHEDULES"`
	Webhooks  string `yaml:"webhooks" env:"ONECLAW_MODELS_WEBHOOKS"`
	// Summaries writes the summaries of conversations that have grown too long.
	Summaries string `yaml:"summaries" env:"ONECLAW_MODELS_SUMMARIES"`
}

// of returns the model of the turns for a purpose.
func (k ByKind) of(purpose turn.Purpose) string {
	switch purpose {
	case turn.ForDeep:
		return k.Deep
	case turn.ForSchedule:
		return k.Schedules
	case turn.ForWebhook:
		return k.Webhooks
	case turn.ForMessage:
	}
	return ""
}

// Validate returns an error that names the first setting that is no name of a model.
func (k ByKind) Validate() error {
	for _, one := range []struct{ name, model string }{{"deep", k.Deep}, {"schedules", k.Schedules}, {"webhooks", k.Webhooks}, {"summaries", k.Summaries}} {
		if _, err := settings.ParseRef(one.model); one.model != "" && err != nil {
			return fmt.Errorf("models.by_kind.%s: %w", one.name, err)
		}
	}
	return nil
}

// Models finds the models of each turn: the chat's choice, its agent's preference, the default,
// the program's own, tried in this order if one fails.
type Models struct {
	Config

	outages *agent.Outages
	// known and claude cache what is learnt about models.
	known  *openai.Known
	claude *anthropic.Known
}

// Client is a model behind one of the APIs.
type Client interface {
	agent.Model
	// Profile returns what is known about the model now.
	Profile() agent.Profile
	// Facts returns the same with its sources.
	Facts() provider.Facts
	// Learn asks the provider about the model, unless it has recently.
	Learn(ctx context.Context) error
	// Ask returns the facts behind Learn.
	Ask(ctx context.Context) (provider.Facts, error)
}

// New returns the models.
func New(cfg Config) *Models {
	return &Models{Config: cfg, known: openai.NewKnown(), claude: anthropic.NewKnown(), outages: agent.NewOutages()}
}

// payer returns whom a turn is charged to.
func (m *Models) payer(scope toolgroups.Scope) budget.Payer {
	payer := budget.Payer{User: scope.User, Chat: scope.Chat}
	if m.Guest != nil {
		payer.Limit = m.Guest(scope)
	}
	return payer
}

// Charge charges the calls of another model to the user of a turn.
func (m *Models) Charge(scope toolgroups.Scope, model agent.Model, name string) agent.Model {
	return m.Ledger.Model(m.traced(model, settings.TypeOpenAI, name), m.payer(scope), string(settings.TypeOpenAI), name)
}

// traced adds tracing to a model, if enabled.
func (m *Models) traced(model agent.Model, provider settings.Type, name string) agent.Model {
	return m.Traces.Model(model, string(provider), name, func(u agent.Usage) (float64, bool) {
		cost, known := m.Ledger.Cost(string(provider), name, u)
		return float64(cost) / float64(budget.Dollar), known
	})
}

// Patience with a model that has a successor: it should not be tried for minutes first.
const (
	attemptsBeforeNext = 2
	waitBeforeNext     = 5 * time.Second
)

// Persona implements turn.Settings.Profile.
func (m *Models) Persona(ctx context.Context, scope toolgroups.Scope, purpose turn.Purpose) (turn.Profile, error) {
	answer, err := m.Settings.Chats.Resolve(ctx, scope.Chat, scope.Owner)
	if err != nil {
		return turn.Profile{}, fmt.Errorf("find the model of the turn: %w", err)
	}
	persona := turn.Profile{
		Prompt: answer.Agent.Prompt, Temperature: answer.Agent.Temperature, MaxRounds: answer.Agent.MaxIterations,
		Effort: answer.Effort,
	}
	routes := answer.Routes
	if purpose == turn.ForDeep {
		deep, err := m.route(ctx, m.ByKind.Deep)
		if err != nil {
			return persona, &agent.ModelError{
				Kind: agent.KindAuth, Err: fmt.Errorf("the model of /deep cannot be asked: %w", err),
				Remedy: fmt.Sprintf("The model of /deep, `%s`, cannot be asked: %v Check models.by_kind.deep.", m.ByKind.Deep, err),
			}
		}
		routes = []settings.Route{deep} // a weaker one is not what was asked for
	} else {
		routes = m.preferring(ctx, m.ByKind.of(purpose), routes)
	}
	if persona.Model, err = m.failover(ctx, scope, routes); err != nil || m.ByKind.Summaries == "" {
		return persona, err
	}
	persona.Summarizer, err = m.failover(ctx, scope, m.preferring(ctx, m.ByKind.Summaries, answer.Routes))
	return persona, err
}

// route returns the model with a name; an empty one is an error. Its provider may not list it.
func (m *Models) route(ctx context.Context, name string) (settings.Route, error) {
	ref, err := settings.ParseRef(name)
	if err != nil {
		return settings.Route{}, err
	}
	return m.Settings.Chats.Route(ctx, ref)
}

// preferring puts the model with a name, if it is not empty, in front of the others.
func (m *Models) preferring(ctx context.Context, name string, others []settings.Route) []settings.Route {
	if name == "" {
		return others
	}
	first, err := m.route(ctx, name)
	if err != nil {
		m.Logger.Warn("model of models.by_kind left out", "model", name, "err", err)
		return others
	}
	same := func(r settings.Route) bool { return r.Provider.ID == first.Provider.ID && r.Model.ID == first.Model.ID }
	return append([]settings.Route{first}, slices.DeleteFunc(slices.Clone(others), same)...)
}

// failover returns a model that asks those of the routes in their order.
func (m *Models) failover(ctx context.Context, scope toolgroups.Scope, routes []settings.Route) (agent.Model, error) {
	var candidates []agent.Candidate
	for i, route := range routes {
		client, err := m.client(ctx, route, i < len(routes)-1)
		if err != nil {
			m.Logger.Warn("model left out", "model", route.Model.ID, "provider", route.Provider.ID, "err", err)
			continue
		}
		if i == 0 {
			m.ask(ctx, client)
		}
		payer := m.payer(scope)
		candidates = append(candidates, agent.Candidate{
			Name: route.Provider.ID + "/" + route.Model.ID, KeyRemedy: keyRemedy(route.Provider),
			Model: m.Ledger.Model(m.traced(m.Metrics.Model(client, route.Provider.ID+"/"+route.Model.ID), route.Provider.Type, route.Model.ID),
				payer, string(route.Provider.Type), route.Model.ID),
		})
	}
	if len(candidates) == 0 {
		return nil, &agent.ModelError{
			Kind: agent.KindAuth, Err: errors.New("no model can be asked: see the providers and their keys"),
			Remedy: "No model is available: each provider is switched off or has no key. `oneclaw provider key ID` stores one.",
		}
	}
	return agent.NewFailover(agent.FailoverConfig{Candidates: candidates, Outages: m.outages, Logger: m.Logger})
}

// keyRemedy says which provider refuses its key, and where to set it.
func keyRemedy(p settings.Provider) string {
	if !p.Preset {
		return fmt.Sprintf("The provider `%s` rejects the key: `oneclaw provider key %s` stores another.", p.ID, p.ID)
	}
	name := "The model's server"
	if u, err := url.Parse(p.BaseURL); err == nil && u.Host != "" {
		name = u.Host
	}
	return name + " rejects the key: check OPENAI_API_KEY."
}

// ask learns about a model from its provider, which is done rarely.
func (m *Models) ask(ctx context.Context, client Client) {
	if err := client.Learn(ctx); err != nil && ctx.Err() == nil {
		m.Logger.Info("the provider does not say what its model can do", "model", client.Profile().Name, "err", err)
	}
}

func (m *Models) client(ctx context.Context, route settings.Route, hasSuccessor bool) (Client, error) {
	cfg, err := m.config(ctx, route.Provider)
	if err != nil {
		return nil, err
	}
	cfg.Model, cfg.ContextTokens = route.Model.ID, route.Model.ContextTokens
	if route.Provider.Preset && route.Model.ID == m.Own.Name {
		m.Own.apply(&cfg)
	}
	if hasSuccessor {
		cfg.Retry = provider.Retry{MaxAttempts: attemptsBeforeNext, MaxWait: waitBeforeNext}
	}
	if messages(cfg) {
		return claude(cfg, m.claude)
	}
	return openai.New(cfg)
}

// APIMessages is Anthropic's own API, besides those of agent/openai.
const APIMessages = "messages"

// messages reports whether a model uses the Messages API: its provider is Anthropic by type or
// address, or the operator says so.
func messages(cfg openai.Config) bool {
	u, err := url.Parse(cfg.BaseURL)
	return cfg.API == APIMessages ||
		cfg.API == "" && (cfg.Dialect == openai.DialectAnthropic || err == nil && strings.EqualFold(u.Hostname(), "api.anthropic.com"))
}

// claude makes a client of the Messages API.
func claude(cfg openai.Config, known *anthropic.Known) (Client, error) {
	return anthropic.New(anthropic.Config{
		BaseURL: cfg.BaseURL, APIKey: cfg.APIKey, Model: cfg.Model, HTTPClient: cfg.HTTPClient, Retry: cfg.Retry, Known: known,
		ContextTokens: cfg.ContextTokens, Set: cfg.Set, Effort: cfg.Effort, FirstByte: cfg.FirstByte, Logger: cfg.Logger,
	})
}

func (m *Models) config(ctx context.Context, p settings.Provider) (openai.Config, error) {
	key, err := m.Vault.Key(ctx, p)
	if err != nil {
		return openai.Config{}, err
	}
	cfg := openai.Config{BaseURL: p.BaseURL, APIKey: key, HTTPClient: m.HTTP, Logger: m.Logger, Known: m.known, FirstByte: m.Own.FirstByteTimeout}
	if !p.Preset {
		cfg.Dialect = openai.Dialect(strings.ToLower(string(p.Type)))
	}
	return cfg, nil
}

// List lists the models of a provider.
func (m *Models) List(ctx context.Context, p settings.Provider) ([]settings.Model, error) {
	cfg, err := m.config(ctx, p)
	if err != nil {
		return nil, err
	}
	infos, err := openai.ListModels(ctx, cfg)
	if err != nil {
		return nil, err
	}
	var found []settings.Model
	for _, info := range infos {
		found = append(found, settings.Model{Provider: p.ID, ID: info.ID, Name: info.Name, ContextTokens: info.ContextTokens})
	}
	return found, nil
}

// Transport returns a transport that keeps as many connections to a model as there are active
// chats.
func Transport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 256
	transport.MaxIdleConns = 256
	return transport
}

// Package models finds the language model that answers a turn, and lets users choose it. It also has the
// clients of the models that transcribe recordings, speak answers, make pictures, and embed texts.
package models

import (
	"cmp"
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
	Own OwnModel
	// ByKind names the models for some kinds of work.
	ByKind   ByKind
	Settings *settings.Settings
	Vault    *settings.Vault
	// HTTPClient sends the requests; see [NewTransport].
	HTTPClient *http.Client
	Ledger     *budget.Ledger
	// GuestLimit returns a user's own daily limit, in addition to the common ones; nil means none.
	GuestLimit func(user string) budget.Limit
	// NameOf returns the name of a user; nil means that none is known.
	NameOf  func(user string) string
	Metrics *telemetry.Metrics // nil without metrics
	Traces  *telemetry.Tracer  // nil without tracing
	Logger  *slog.Logger
}

// ByKind names the models for some kinds of work, each as provider_id/model_id. Empty means the model of
// the chat, which is also the fallback if the named model fails.
type ByKind struct {
	// Deep answers messages that begin with /deep. It has no fallback. If it is empty, there is no /deep.
	Deep string `yaml:"deep" env:"ONECLAW_MODELS_DEEP"`
	// Schedules and Webhooks answer the tasks that schedules and webhooks start.
	Schedules string `yaml:"schedules" env:"ONECLAW_MODELS_SCHEDULES"`
	Webhooks  string `yaml:"webhooks" env:"ONECLAW_MODELS_WEBHOOKS"`
	// Background answers background tasks.
	Background string `yaml:"background" env:"ONECLAW_MODELS_BACKGROUND"`
	// Summaries summarizes conversations that have grown too long.
	Summaries string `yaml:"summaries" env:"ONECLAW_MODELS_SUMMARIES"`
}

// modelFor returns the name of the model for turns with a purpose; "" means the chat's model.
func (k ByKind) modelFor(purpose turn.Purpose) string {
	switch purpose {
	case turn.ForDeep:
		return k.Deep
	case turn.ForSchedule:
		return k.Schedules
	case turn.ForWebhook:
		return k.Webhooks
	case turn.ForBackground:
		return k.Background
	case turn.ForMessage:
	}
	return ""
}

// Validate returns an error for the first setting that is not a valid name of a model.
func (k ByKind) Validate() error {
	for _, one := range k.kinds() {
		if _, err := settings.ParseRef(one.model); one.model != "" && err != nil {
			return fmt.Errorf("models.by_kind.%s: %w", one.kind, err)
		}
	}
	return nil
}

// Models finds the models for each turn: the chat's choice, its agent's preference, the default, and the
// program's own. If one fails, the next is tried.
type Models struct {
	Config

	outages *agent.Outages
	// openaiCache and anthropicCache hold what is known about models, for all clients.
	openaiCache    *openai.ModelCache
	anthropicCache *anthropic.ModelCache
}

// Client is a client for one model over one of the APIs.
type Client interface {
	agent.Model
	// Profile returns what is currently known about the model.
	Profile() agent.Profile
	// Facts returns what is currently known about the model, with the sources.
	Facts() provider.Facts
	// RefreshFacts asks the provider about the model, unless it was asked recently.
	RefreshFacts(ctx context.Context) error
	// CurrentFacts calls RefreshFacts and returns the facts.
	CurrentFacts(ctx context.Context) (provider.Facts, error)
}

// New returns the models. It sends no requests.
func New(cfg Config) *Models {
	return &Models{Config: cfg, openaiCache: openai.NewModelCache(), anthropicCache: anthropic.NewModelCache(), outages: agent.NewOutages()}
}

// Payer returns the payer that a turn is charged to.
func (m *Models) Payer(scope toolgroups.Scope) budget.Payer {
	payer := budget.Payer{User: scope.User, Chat: scope.Chat}
	if m.GuestLimit != nil {
		payer.Limit = m.GuestLimit(scope.User)
	}
	return payer
}

// Charge returns a model that charges the calls of another model to the user of a turn.
func (m *Models) Charge(scope toolgroups.Scope, model agent.Model, name string) agent.Model {
	return m.Ledger.Model(m.withTracing(model, settings.TypeOpenAI, name), m.Payer(scope), string(settings.TypeOpenAI), name)
}

// withTracing adds tracing to a model, if tracing is enabled.
func (m *Models) withTracing(model agent.Model, provider settings.Type, name string) agent.Model {
	return m.Traces.WrapModel(model, string(provider), name, func(u agent.Usage) (float64, bool) {
		cost, known := m.Ledger.Cost(string(provider), name, u)
		return float64(cost) / float64(budget.Dollar), known
	})
}

// Bounds of the retries of a model that has a fallback, so that the fallback is tried soon.
const (
	attemptsBeforeNext = 2
	waitBeforeNext     = 5 * time.Second
)

// Profile implements turn.Settings.Profile.
func (m *Models) Profile(ctx context.Context, scope toolgroups.Scope, purpose turn.Purpose) (turn.Profile, error) {
	answer, err := m.Settings.Chats.Resolve(ctx, scope.Chat, scope.Owner)
	if err != nil {
		return turn.Profile{}, fmt.Errorf("find the model of the turn: %w", err)
	}
	charges := m.Ledger.NewTurn()
	persona := turn.Profile{
		Charges: charges,
		Prompt:  answer.Agent.Prompt, Temperature: answer.Agent.Temperature, MaxRounds: answer.Agent.MaxIterations,
		Effort: answer.Effort, PromptOthers: answer.Agent.IsOthers(scope.User, scope.Direct), PromptShown: true,
	}
	if persona.PromptOthers {
		persona.PromptShown, persona.PromptOutside = answer.Agent.WasShownTo(scope.User), []string{answer.Agent.Prompt}
	}
	routes, name := answer.Routes, cmp.Or(scope.Model, m.ByKind.modelFor(purpose))
	if purpose == turn.ForDeep {
		deep, err := m.findRoute(ctx, name)
		if err != nil {
			return persona, &agent.ModelError{
				Kind: agent.KindAuth, Err: fmt.Errorf("the model of /deep cannot be asked: %w", err),
				Remedy: fmt.Sprintf("The model of /deep, `%s`, cannot be asked: %v Check models.by_kind.deep.", name, err),
			}
		}
		// If the chat's model cannot be asked, the strong one still can.
		if usual, err := m.newFailover(ctx, scope, answer.Routes, charges); err == nil {
			persona.ChatModel = usual
		}
		routes = []settings.Route{deep} // no fallback: the user asked for the strong model
	} else {
		routes = m.prefer(ctx, name, routes)
	}
	if persona.Model, err = m.newFailover(ctx, scope, routes, charges); err != nil || m.ByKind.Summaries == "" {
		return persona, err
	}
	persona.Summarizer, err = m.newFailover(ctx, scope, m.prefer(ctx, m.ByKind.Summaries, answer.Routes), charges)
	return persona, err
}

// findRoute returns the named model, even if its provider does not list it. An empty name is an error.
func (m *Models) findRoute(ctx context.Context, name string) (settings.Route, error) {
	ref, err := settings.ParseRef(name)
	if err != nil {
		return settings.Route{}, err
	}
	return m.Settings.Chats.Route(ctx, ref)
}

// prefer puts the named model in front of the others. An empty name changes nothing.
func (m *Models) prefer(ctx context.Context, name string, others []settings.Route) []settings.Route {
	if name == "" {
		return others
	}
	first, err := m.findRoute(ctx, name)
	if err != nil {
		m.Logger.Warn("model of models.by_kind, or of a background task, left out", "model", name, "err", err)
		return others
	}
	same := func(r settings.Route) bool { return r.Provider.ID == first.Provider.ID && r.Model.ID == first.Model.ID }
	return append([]settings.Route{first}, slices.DeleteFunc(slices.Clone(others), same)...)
}

// newFailover returns a model that tries the models of the routes in order.
func (m *Models) newFailover(ctx context.Context, scope toolgroups.Scope, routes []settings.Route, charges *budget.TurnCharges) (agent.Model, error) {
	var candidates []agent.Candidate
	for i, route := range routes {
		client, err := m.newClient(ctx, route, i < len(routes)-1)
		if err != nil {
			m.Logger.Warn("model left out", "model", route.Model.ID, "provider", route.Provider.ID, "err", err)
			continue
		}
		if i == 0 {
			m.refreshFacts(ctx, client)
		}
		payer := m.Payer(scope)
		candidates = append(candidates, agent.Candidate{
			Name: route.Provider.ID + "/" + route.Model.ID, KeyRemedy: keyRemedy(route.Provider),
			Model: charges.Model(m.withTracing(m.Metrics.WrapModel(client, route.Provider.ID+"/"+route.Model.ID), route.Provider.Type, route.Model.ID),
				payer, string(route.Provider.Type), route.Model.ID),
		})
	}
	if len(candidates) == 0 {
		return nil, &agent.ModelError{
			Kind: agent.KindAuth, Err: errors.New("no model can be asked: see the providers and their keys"),
			Remedy: noModelRemedy,
		}
	}
	return agent.NewFailover(agent.FailoverConfig{Candidates: candidates, Outages: m.outages, Logger: m.Logger})
}

// noModelRemedy says what to do if no provider can be asked.
const noModelRemedy = "No model is available: each provider is switched off or has no key. `oneclaw provider on ID` switches one on (the one of the settings is `preset`), `oneclaw provider key ID` stores a key."

// keyRemedy returns a text that says which provider refuses its key, and how to set another.
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

// refreshFacts asks the provider about a model, unless it was asked recently, and logs errors.
func (m *Models) refreshFacts(ctx context.Context, client Client) {
	if err := client.RefreshFacts(ctx); err != nil && ctx.Err() == nil {
		m.Logger.Info("cannot fetch facts about the model from its provider", "model", client.Profile().Name, "err", err)
	}
}

func (m *Models) newClient(ctx context.Context, route settings.Route, hasSuccessor bool) (Client, error) {
	cfg, err := m.clientConfig(ctx, route.Provider)
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
	if usesMessagesAPI(cfg) {
		return newAnthropic(cfg, m.anthropicCache)
	}
	return openai.New(cfg)
}

// APIMessages selects Anthropic's own API; package agent/openai has the other values.
const APIMessages = "messages"

// usesMessagesAPI reports whether to call a model over the Messages API, because its provider is
// Anthropic by type or address, or because the operator has set so.
func usesMessagesAPI(cfg openai.Config) bool {
	u, err := url.Parse(cfg.BaseURL)
	return cfg.API == APIMessages ||
		cfg.API == "" && (cfg.Dialect == openai.DialectAnthropic || err == nil && strings.EqualFold(u.Hostname(), "api.anthropic.com"))
}

// newAnthropic returns a client for the Messages API.
func newAnthropic(cfg openai.Config, known *anthropic.ModelCache) (Client, error) {
	return anthropic.New(anthropic.Config{
		BaseURL: cfg.BaseURL, APIKey: cfg.APIKey, Model: cfg.Model, HTTPClient: cfg.HTTPClient, Retry: cfg.Retry, ModelCache: known,
		ContextTokens: cfg.ContextTokens, Settings: cfg.Settings, Effort: cfg.Effort, FirstByteTimeout: cfg.FirstByteTimeout, Logger: cfg.Logger,
	})
}

func (m *Models) clientConfig(ctx context.Context, p settings.Provider) (openai.Config, error) {
	key, err := m.Vault.Key(ctx, p)
	if err != nil {
		return openai.Config{}, err
	}
	cfg := openai.Config{BaseURL: p.BaseURL, APIKey: key, HTTPClient: m.HTTPClient, Logger: m.Logger, ModelCache: m.openaiCache, FirstByteTimeout: m.Own.FirstByteTimeout}
	if !p.Preset {
		cfg.Dialect = openai.Dialect(strings.ToLower(string(p.Type)))
	}
	return cfg, nil
}

// List lists the models of a provider.
func (m *Models) List(ctx context.Context, p settings.Provider) ([]settings.Model, error) {
	cfg, err := m.clientConfig(ctx, p)
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

// NewTransport returns a transport that keeps enough idle connections to a model for many active
// chats.
func NewTransport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 256
	transport.MaxIdleConns = 256
	return transport
}

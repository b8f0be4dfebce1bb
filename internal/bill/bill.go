package bill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oneclaw/internal/budget"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// Provider is a provider's model with its billing rules.
type Provider struct {
	// Name is its name in the output. Model is a model that has its prices.
	Name, Model string
	// Context is the size of the model's context in tokens, 0 if unknown.
	Context int
	// MessagesAPI is set if it is called through Anthropic's Messages API.
	MessagesAPI bool
	Cache
}

// Lifetimes of unused cache entries. Anthropic documents five minutes. OpenAI keeps entries for a
// day up to gpt-5.5, and for at least half an hour from gpt-5.6 on (openai-openapi, August 2026).
// The value for Gemini is assumed.
const (
	fiveMinutes = 5 * time.Minute
	tenMinutes  = 10 * time.Minute
	halfHour    = 30 * time.Minute
	day         = 24 * time.Hour
)

// Providers returns the providers to compare, with the prices that the routing "auto" uses. The
// function context returns the size of a model's context.
func Providers(prices func(model string) search.Prices, context func(model string) int) []Provider {
	all := providerTable()
	for i := range all {
		all[i].Prices = prices(all[i].Model)
		all[i].Context = context(all[i].Model)
	}
	return all
}

// providerTable returns the providers without prices.
func providerTable() []Provider {
	return []Provider{
		{Name: "no cache", Model: "local-model"},
		{Name: "gpt-4o", Model: "gpt-4o", Cache: Cache{Step: 128, TTL: day}},
		{Name: "gpt-4.1", Model: "gpt-4.1", Cache: Cache{Step: 128, TTL: day}},
		{Name: "gpt-5", Model: "gpt-5-mini", Cache: Cache{Step: 128, TTL: day}},
		{Name: "gpt-5.6", Model: "gpt-5.6", Cache: Cache{WholeRequests: true, TTL: halfHour}},
		{Name: "Claude", Model: "claude-sonnet-5", MessagesAPI: true, Cache: Cache{MarkedOnly: true, Lookback: 20, TTL: fiveMinutes}},
		{Name: "Claude, OpenRouter", Model: "anthropic/claude-sonnet-5", Cache: Cache{WholeRequests: true, Lookback: 20, TTL: fiveMinutes}},
		{Name: "Gemini 2.5", Model: "gemini-2.5-flash", Cache: Cache{TTL: tenMinutes}},
		{Name: "Gemini 3", Model: "gemini-3.8-flash", Cache: Cache{TTL: tenMinutes}},
		{Name: "DeepSeek", Model: "deepseek-v4-flash", Cache: Cache{WholeRequests: true}},
	}
}

// Config configures a [Bill].
type Config struct {
	// Registry has the program's tools. None of them is run.
	Registry *toolgroups.Registry
	// Prompt is the system prompt of every conversation: agent prompt and skills.
	Prompt string
	// ToolSearch is the block tools.tool_search. The zero value means its defaults.
	ToolSearch search.Config
	// Prices returns the prices that the routing "auto" uses. Providers are the ones to compare.
	Prices    func(model string) search.Prices
	Providers []Provider
	// Routings are the routings to compare. Nil means all but [search.RoutingThreshold], which
	// always equals one of the others.
	Routings []search.Routing
	// Model is the program's own model, which is compared with those that answered a recorded conversation.
	// Routing is the routing of that comparison; empty means [search.RoutingGroups].
	Model   string
	Routing search.Routing
	// DollarPrice returns the price of a model, and false if it is unknown.
	DollarPrice func(model string) (budget.Price, bool)
	// OnOmitted is called with the number of calls that are left out of a recorded conversation
	// because their tools no longer exist. It must be set if recorded conversations are compared.
	OnOmitted func(calls int)
}

// Bill compares the routings. It must not be used concurrently.
type Bill struct {
	cfg     Config
	servers []toolgroups.Group
	meter   *meter
	// toolboxes are the tools, by whether they include those of the servers.
	toolboxes map[bool]*toolbox
}

// New makes a bill.
func New(cfg Config) (*Bill, error) {
	if cfg.Registry == nil || len(cfg.Providers) == 0 {
		return nil, errors.New("bill: no registry or no price tables")
	}
	if cfg.Routings == nil {
		cfg.Routings = slices.DeleteFunc(search.Routings(), func(r search.Routing) bool { return r == search.RoutingThreshold })
	}
	b := &Bill{cfg: cfg, toolboxes: map[bool]*toolbox{}}
	var err error
	if b.servers, err = ServerGroups(); err != nil {
		return nil, err
	}
	b.meter, err = newMeter()
	return b, err
}

// Line is the cost of a conversation under one routing with one provider.
type Line struct {
	Conversation string         `json:"conversation"`
	Provider     string         `json:"table"`
	Model        string         `json:"model"`
	Routing      search.Routing `json:"routing"`
	// UsedRouting is the routing that was used: for "auto", the chosen one.
	UsedRouting search.Routing `json:"routed"`
	Cost
	// USD is the cost of input and output in dollars; 0 if unknown.
	USD float64 `json:"usd,omitempty"`
}

// Compare plays a conversation under every routing and returns its cost at every provider, ordered
// by provider and then by routing.
func (b *Bill) Compare(ctx context.Context, c Conversation) ([]Line, error) {
	c, left := b.dropUnknownCalls(c)
	if left > 0 {
		b.cfg.OnOmitted(left)
	}
	var lines []Line
	played := map[recordingKey]recording{}
	for _, table := range b.cfg.Providers {
		for _, routing := range b.cfg.Routings {
			f := table.recordingKey(routing)
			if _, ok := played[f]; ok || routing == search.RoutingAuto {
				continue
			}
			plain := table
			plain.Context = 0
			rec, err := b.play(ctx, c, routing, plain)
			if err != nil {
				return nil, err
			}
			played[f] = rec
		}
		auto, err := b.playAuto(ctx, c, table, played)
		if err != nil {
			return nil, err
		}
		for _, routing := range b.cfg.Routings {
			rec := played[table.recordingKey(routing)]
			if routing == search.RoutingAuto {
				rec = auto
			}
			cost, err := b.meter.cost(ctx, rec.requests, table.Cache)
			if err != nil {
				return nil, fmt.Errorf("%s by %s: %w", c.Name, routing, err)
			}
			lines = append(lines, Line{
				Conversation: c.Name, Provider: table.Name, Model: table.Model, Routing: routing, UsedRouting: rec.mode, Cost: cost,
				USD: b.dollars(table, cost),
			})
		}
	}
	return lines, nil
}

// playAuto plays a conversation with the routing that "auto" chooses for a provider. It first plays
// two turns. If their requests equal those of the chosen routing, all others do too. One turn is
// not enough, as the first request may be shorter than later ones.
func (b *Bill) playAuto(ctx context.Context, c Conversation, table Provider, played map[recordingKey]recording) (recording, error) {
	beginning := c
	beginning.Turns = c.Turns[:min(2, len(c.Turns))]
	first, err := b.play(ctx, beginning, search.RoutingAuto, table)
	if err != nil {
		return first, err
	}
	rec := played[table.recordingKey(first.mode)]
	if len(first.requests) <= len(rec.requests) && slices.EqualFunc(first.requests, rec.requests[:len(first.requests)], func(a, b request) bool {
		return slices.Equal(a.segments, b.segments)
	}) {
		return rec, nil
	}
	return b.play(ctx, c, search.RoutingAuto, table)
}

// recordingKey has the properties that a recording depends on.
type recordingKey struct {
	routing     search.Routing
	messagesAPI bool
	// noCache is set if the provider has no cache. maxAge is how long it keeps a prompt: old results
	// are dropped once the cache is cold.
	noCache bool
	maxAge  time.Duration
}

func (t Provider) recordingKey(routing search.Routing) recordingKey {
	return recordingKey{routing, t.MessagesAPI, t.Read >= 1, t.MaxAge}
}

// dollars returns a cost in dollars, or 0 if the price is unknown.
func (b *Bill) dollars(t Provider, c Cost) float64 {
	p, ok := b.cfg.DollarPrice(t.Model)
	if !ok {
		return 0
	}
	return p.Cost(budget.Tokens{
		Input: int64(c.Input), Cached: int64(c.Read), Written: int64(c.Written), WrittenForHour: int64(c.WrittenForHour), Output: int64(c.Output),
	}).Float()
}

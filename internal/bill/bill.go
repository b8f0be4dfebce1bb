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

// Table is a provider's model with its billing rules.
type Table struct {
	// Name is its name in tables, Model a model that has its prices.
	Name, Model string
	// Context is the size of the model's context in tokens, 0 if unknown.
	Context int
	// Messages says that it uses Anthropic's own API.
	Messages bool
	Cache
}

// How long caches keep unused entries: Anthropic's documented five minutes; OpenAI's day up to
// gpt-5.5, and the minimum of half an hour from gpt-5.6 on (openai-openapi, August 2026); for
// Gemini assumed.
const (
	fiveMinutes = 5 * time.Minute
	tenMinutes  = 10 * time.Minute
	halfHour    = 30 * time.Minute
	day         = 24 * time.Hour
)

// Tables returns the providers to compare, with the prices that the routing "auto" uses. context
// returns the size of a model's context.
func Tables(prices func(model string) search.Prices, context func(model string) int) []Table {
	all := []Table{
		{Name: "no cache", Model: "local-model"},
		{Name: "gpt-4o", Model: "gpt-4o", Cache: Cache{Min: 1024, Step: 128, Lives: day}},
		{Name: "gpt-4.1", Model: "gpt-4.1", Cache: Cache{Min: 1024, Step: 128, Lives: day}},
		{Name: "gpt-5", Model: "gpt-5-mini", Cache: Cache{Min: 1024, Step: 128, Lives: day}},
		{Name: "gpt-5.6", Model: "gpt-5.6", Cache: Cache{Min: 1024, Whole: true, Lives: halfHour}},
		{Name: "Claude", Model: "claude-sonnet-5", Messages: true, Cache: Cache{Min: 1024, Marks: true, Back: 20, Lives: fiveMinutes}},
		{Name: "Claude, OpenRouter", Model: "anthropic/claude-sonnet-5", Cache: Cache{Min: 1024, Whole: true, Back: 20, Lives: fiveMinutes}},
		{Name: "Gemini 2.5", Model: "gemini-2.5-flash", Cache: Cache{Min: 2048, Lives: tenMinutes}},
		{Name: "Gemini 3", Model: "gemini-3.8-flash", Cache: Cache{Min: 4096, Lives: tenMinutes}},
		{Name: "DeepSeek", Model: "deepseek-v4-flash", Cache: Cache{Whole: true}},
	}
	for i := range all {
		all[i].Prices = prices(all[i].Model)
		all[i].Context = context(all[i].Model)
	}
	return all
}

// Config configures a [Bill].
type Config struct {
	// Registry has the tools of the program, which are not run.
	Registry *toolgroups.Registry
	// Prompt begins every conversation: agent prompt and skills.
	Prompt string
	// ToolSearch is the block tools.tool_search. The zero value means its defaults.
	ToolSearch search.Config
	// Prices are for the routing "auto", Tables are the providers to compare.
	Prices func(model string) search.Prices
	Tables []Table
	// Routings are compared; nil means all but [search.RoutingThreshold], which always equals one
	// of the others.
	Routings []search.Routing
	// Money returns the prices of a model, if known.
	Money func(model string) (budget.Price, bool)
	// Left, if not nil, is called with the number of calls of a recorded conversation that are left
	// out because their tools no longer exist.
	Left func(calls int)
}

// Bill compares the routings. It must not be used concurrently.
type Bill struct {
	cfg     Config
	servers []toolgroups.Group
	meter   *meter
	// catalogues are the tools without and with those of the servers.
	catalogues map[bool]*catalogue
}

// New makes a bill.
func New(cfg Config) (*Bill, error) {
	if cfg.Registry == nil || len(cfg.Tables) == 0 {
		return nil, errors.New("bill: no registry or no price tables")
	}
	if cfg.Routings == nil {
		cfg.Routings = slices.DeleteFunc(search.Routings(), func(r search.Routing) bool { return r == search.RoutingThreshold })
	}
	b := &Bill{cfg: cfg, catalogues: map[bool]*catalogue{}}
	var err error
	if b.servers, err = Servers(); err != nil {
		return nil, err
	}
	b.meter, err = newMeter()
	return b, err
}

// Line is the cost of a conversation under one routing with one provider.
type Line struct {
	Conversation string         `json:"conversation"`
	Table        string         `json:"table"`
	Model        string         `json:"model"`
	Routing      search.Routing `json:"routing"`
	// Routed is the routing used: for "auto" the one that it chose.
	Routed search.Routing `json:"routed"`
	Cost
	// USD is the cost of input and output in dollars; 0 if unknown.
	USD float64 `json:"usd,omitempty"`
}

// Compare plays a conversation under every routing and returns its cost with every provider: the
// tables in their order, and for each the routings in theirs.
func (b *Bill) Compare(ctx context.Context, c Conversation) ([]Line, error) {
	c, left := b.fit(c)
	if left > 0 {
		b.cfg.Left(left)
	}
	var lines []Line
	played := map[form]recording{}
	for _, table := range b.cfg.Tables {
		for _, routing := range b.cfg.Routings {
			f := table.form(routing)
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
		auto, err := b.auto(ctx, c, table, played)
		if err != nil {
			return nil, err
		}
		for _, routing := range b.cfg.Routings {
			rec := played[table.form(routing)]
			if routing == search.RoutingAuto {
				rec = auto
			}
			cost, err := b.meter.cost(ctx, rec.requests, table.Cache)
			if err != nil {
				return nil, fmt.Errorf("%s by %s: %w", c.Name, routing, err)
			}
			lines = append(lines, Line{
				Conversation: c.Name, Table: table.Name, Model: table.Model, Routing: routing, Routed: rec.mode, Cost: cost,
				USD: b.money(table, cost),
			})
		}
	}
	return lines, nil
}

// auto plays a conversation with the routing that "auto" chooses for a table. The first two
// turns tell: if their requests equal those of the chosen routing, so does the rest. The first
// request may be shorter than later ones.
func (b *Bill) auto(ctx context.Context, c Conversation, table Table, played map[form]recording) (recording, error) {
	beginning := c
	beginning.Turns = c.Turns[:min(2, len(c.Turns))]
	first, err := b.play(ctx, beginning, search.RoutingAuto, table)
	if err != nil {
		return first, err
	}
	rec := played[table.form(first.mode)]
	if len(first.requests) <= len(rec.requests) && slices.EqualFunc(first.requests, rec.requests[:len(first.requests)], func(a, b request) bool {
		return slices.Equal(a.segments, b.segments)
	}) {
		return rec, nil
	}
	return b.play(ctx, c, search.RoutingAuto, table)
}

// form is what a recording depends on.
type form struct {
	routing  search.Routing
	messages bool
	// none says that there is no cache; kept is how long it keeps a prompt, as old results are
	// dropped while it is cold.
	none bool
	kept time.Duration
}

func (t Table) form(routing search.Routing) form {
	return form{routing, t.Messages, t.Read >= 1, t.MaxAge}
}

// money returns a cost in dollars; 0 if unknown.
func (b *Bill) money(t Table, c Cost) float64 {
	p, ok := b.cfg.Money(t.Model)
	if !ok {
		return 0
	}
	return p.Of(budget.Tokens{
		Input: int64(c.Input), Cached: int64(c.Read), Written: int64(c.Written), Hour: int64(c.Hour), Output: int64(c.Output),
	}).Float()
}

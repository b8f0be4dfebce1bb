package bill

import (
	"context"
	"errors"
	"fmt"

	"oneclaw/internal/price"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// Table is a provider as far as the bill of a conversation goes.
type Table struct {
	// Name is what it is called in tables, Model a model that has its prices.
	Name, Model string
	// Context is the size of the model's context in tokens, 0 if unknown.
	Context int
	Cache
}

// Tables returns the providers that are compared, with the prices that the routing
// "auto" knows of their models. context says how large that of a model is.
func Tables(prices func(model string) search.Prices, context func(model string) int) []Table {
	all := []Table{
		{Name: "no cache", Model: "local-model"},
		{Name: "gpt-4o", Model: "gpt-4o", Cache: Cache{Min: 1024, Step: 128}},
		{Name: "gpt-4.1", Model: "gpt-4.1", Cache: Cache{Min: 1024, Step: 128}},
		{Name: "gpt-5", Model: "gpt-5-mini", Cache: Cache{Min: 1024, Step: 128}},
		{Name: "gpt-5.6", Model: "gpt-5.6", Cache: Cache{Min: 1024, Whole: true}},
		{Name: "Claude", Model: "claude-sonnet-5", Cache: Cache{Min: 1024, Whole: true, Back: 20}},
		{Name: "Gemini 2.5", Model: "gemini-2.5-flash", Cache: Cache{Min: 2048}},
		{Name: "Gemini 3", Model: "gemini-3.8-flash", Cache: Cache{Min: 4096}},
		{Name: "DeepSeek", Model: "deepseek-v4-flash", Cache: Cache{Whole: true}},
	}
	for i := range all {
		all[i].Prices = prices(all[i].Model)
		all[i].Context = context(all[i].Model)
	}
	return all
}

// Config is what a [Bill] is made of.
type Config struct {
	// Registry has the tools of the program. None of them is run.
	Registry *toolgroups.Registry
	// Prompt is what every conversation begins with: agent prompt and skills.
	Prompt string
	// ToolSearch is the block tools.tool_search. The zero value means its defaults.
	ToolSearch search.Config
	// Prices are what the routing "auto" decides by, Tables who is compared.
	Prices func(model string) search.Prices
	Tables []Table
	// Money says what the tokens of a model cost, where that is known.
	Money func(model string) (price.Price, bool)
	// Left is told how many calls of a recorded conversation are left out
	// because their tools are not there any more.
	Left func(calls int)
}

// Bill compares the routings. It is not for concurrent use.
type Bill struct {
	cfg     Config
	servers []toolgroups.Group
	meter   *meter
}

// New makes a bill.
func New(cfg Config) (*Bill, error) {
	if cfg.Registry == nil || len(cfg.Tables) == 0 {
		return nil, errors.New("bill: no registry or no price tables")
	}
	b := &Bill{cfg: cfg}
	var err error
	if b.servers, err = Servers(); err != nil {
		return nil, err
	}
	b.meter, err = newMeter()
	return b, err
}

// Line is what a conversation costs under one routing with one provider.
type Line struct {
	Conversation string         `json:"conversation"`
	Table        string         `json:"table"`
	Model        string         `json:"model"`
	Routing      search.Routing `json:"routing"`
	// Routed is what the routing came to: that of "auto" is what it decided.
	Routed search.Routing `json:"routed"`
	Cost
	// USD is what input and output cost in dollars; 0 if unknown.
	USD float64 `json:"usd,omitempty"`
}

// Compare plays a conversation under every routing and returns what it costs with
// every provider: the tables in their order, and for each the routings in theirs.
//
// What "auto" decides is found by playing the first turn with the model of the table;
// from there on it sends what the routing sends that it has decided for.
func (b *Bill) Compare(ctx context.Context, c Conversation) ([]Line, error) {
	c, left := b.fit(c)
	if left > 0 {
		b.cfg.Left(left)
	}
	var lines []Line
	played := map[search.Routing]recording{}
	for _, routing := range search.Routings() {
		if routing == search.RoutingAuto {
			continue
		}
		rec, err := b.play(ctx, c, routing, Table{Model: "any"})
		if err != nil {
			return nil, err
		}
		played[routing] = rec
	}
	for _, table := range b.cfg.Tables {
		beginning := c
		beginning.Turns = c.Turns[:1]
		first, err := b.play(ctx, beginning, search.RoutingAuto, table)
		if err != nil {
			return nil, err
		}
		for _, routing := range search.Routings() {
			rec := played[routing]
			if routing == search.RoutingAuto {
				rec = played[first.mode]
			}
			cost, err := b.meter.cost(rec.requests, table.Cache)
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

// money is what a cost comes to in dollars; 0 if nobody knows.
func (b *Bill) money(t Table, c Cost) float64 {
	p, ok := b.cfg.Money(t.Model)
	if !ok {
		return 0
	}
	return p.Of(price.Tokens{
		Input: int64(c.Input), Cached: int64(c.Read), Written: int64(c.Written), Output: int64(c.Output),
	}).Float()
}

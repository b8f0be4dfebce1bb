package bill

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"oneclaw/internal/budget"
	"oneclaw/toolgroups/search"
)

// ModelCost is what a recorded conversation costs if certain models answer it.
type ModelCost struct {
	// Name is [AsItWas], or the model that answers each turn and writes the summaries.
	Name string `json:"name"`
	Cost
	// Reread counts the tokens that a cache would have had if one model had answered all turns.
	Reread int `json:"reread"`
	// USD is the cost in dollars with the summaries; 0 if a price is unknown.
	USD float64 `json:"usd,omitempty"`
}

// AsItWas names the models that did answer.
const AsItWas = "as it was"

// CompareModels plays a recorded conversation with the models that answered its turns, and with each of them
// for all turns. Models share no cache, so a turn of another model reads the conversation anew. It returns
// nothing if there was only the program's own model.
func (b *Bill) CompareModels(ctx context.Context, c Conversation) ([]ModelCost, error) {
	c, _ = b.dropUnknownCalls(c)
	var models []string
	add := func(model string) {
		if model != "" && !slices.Contains(models, model) {
			models = append(models, model)
		}
	}
	if add(b.cfg.Model); c.Recorded {
		for _, turn := range c.Turns {
			add(turn.Model)
		}
		for _, s := range c.Summaries {
			add(s.Model)
		}
	}
	if len(models) < 2 {
		return nil, nil
	}
	was, known := ModelCost{Name: AsItWas}, true
	var all []ModelCost
	for _, model := range models {
		provider := b.providerOf(model)
		rec, err := b.play(ctx, c, cmp.Or(b.cfg.Routing, search.RoutingGroups), provider)
		if err != nil {
			return nil, err
		}
		one := ModelCost{Name: model}
		if one.Cost, err = b.meter.cost(ctx, rec.requests, provider.Cache); err != nil {
			return nil, fmt.Errorf("%s with %s: %w", c.Name, model, err)
		}
		answered := func(r request) bool { return c.Turns[r.turn].Model == model }
		alone, err := b.meter.cost(ctx, slices.DeleteFunc(slices.Clone(rec.requests), func(r request) bool { return !answered(r) }), provider.Cache)
		if err != nil {
			return nil, err
		}
		among, err := b.meter.costOf(ctx, rec.requests, provider.Cache, answered)
		if err != nil {
			return nil, err
		}
		was.add(alone)
		was.Reread += max(0, among.Read-alone.Read)
		one.USD = b.dollars(provider, one.Cost)
		usd := b.dollars(provider, alone)
		known = known && (usd > 0 || alone.Requests == 0)
		was.USD += usd
		for _, s := range c.Summaries {
			price, ok := b.cfg.DollarPrice(model)
			usd := price.Cost(budget.TokensOf(s.Usage)).Float()
			one.USD += usd
			if s.Model == model {
				was.USD, known = was.USD+usd, known && ok
			}
		}
		all = append(all, one)
	}
	if !known {
		was.USD = 0
	}
	return append([]ModelCost{was}, all...), nil
}

// add adds another cost.
func (c *Cost) add(o Cost) {
	c.Requests, c.Input, c.Read, c.Written = c.Requests+o.Requests, c.Input+o.Input, c.Read+o.Read, c.Written+o.Written
	c.WrittenForHour, c.Output, c.Billed = c.WrittenForHour+o.WrittenForHour, c.Output+o.Output, c.Billed+o.Billed
}

// providerOf returns the provider with the billing rules of a model: those of the known model of its
// family with the longest common beginning of the name. A model of no known family has no cache.
func (b *Bill) providerOf(model string) Provider {
	found := Provider{Name: model}
	best := 0
	for _, p := range providerTable() {
		family, _, _ := strings.Cut(p.Model, "-")
		if alike := len(commonPrefix(p.Model, model)); strings.HasPrefix(model, family) && alike > best {
			found.Cache, found.MessagesAPI, best = p.Cache, p.MessagesAPI, alike
		}
	}
	found.Model, found.Prices = model, b.cfg.Prices(model)
	return found
}

// WriteModels writes the costs as a table, in Markdown if markdown is set.
func WriteModels(w io.Writer, costs []ModelCost, markdown bool) error {
	if len(costs) == 0 {
		return nil
	}
	t := tables{markdown: markdown}
	t.WriteString("\nBy model, summaries included; models share no cache:\n\n")
	t.row(true, "models", "requests", "tokens in", "from the cache", "read anew", "tokens out", "cost")
	count := func(n int) string { return budget.FormatCount(int64(n)) }
	for _, c := range costs {
		usd := "not known"
		if c.USD > 0 {
			usd = fmt.Sprintf("$%.4f", c.USD)
		}
		t.row(false, c.Name, count(c.Requests), count(c.Input), count(c.Read), count(c.Reread), count(c.Output), usd)
	}
	return t.writeTo(w)
}

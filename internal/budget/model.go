package budget

import (
	"cmp"
	"context"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// Model returns a model whose calls are charged to a payer. Its price depends on the type of the
// provider and the model's name there. The error of a refused call wraps a *[Refusal].
func (l *Ledger) Model(inner agent.Model, payer Payer, provider, name string) agent.Model {
	m := &model{inner: inner, ledger: l, payer: payer, name: name}
	m.price, m.priced = l.cfg.Prices.Lookup(provider, name)
	return m
}

// Cost returns the cost of tokens, and whether the model's price is known.
func (l *Ledger) Cost(provider, name string, u agent.Usage) (USD, bool) {
	p, priced := l.cfg.Prices.Lookup(provider, name)
	return p.Cost(TokensOf(u)), priced
}

// TokensOf returns the tokens of a model call.
func TokensOf(u agent.Usage) Tokens {
	return Tokens{Input: int64(u.Input), Cached: int64(u.Cached), Written: int64(u.CacheWritten), WrittenForHour: int64(u.CacheWrittenHour), Output: int64(u.Output)}
}

type model struct {
	inner  agent.Model
	ledger *Ledger
	payer  Payer
	name   string
	price  Price
	priced bool
}

// Complete reserves the possible cost, calls the model, and settles the real usage.
func (m *model) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	id, limited, err := m.reserve(ctx, req)
	if err != nil {
		return agent.Reply{}, err
	}
	var used *Usage
	var calls []agent.Call
	// Also if the model panics: an unsettled reservation is held until it expires.
	defer func() { m.settle(id, limited, used, req.Tools, calls) }()
	reply, err := m.inner.Complete(ctx, req, onDelta)
	u := reply.Usage
	if err != nil && (u.Input+u.Output > 0 || ctx.Err() != nil) {
		used = m.usage(u, req) // the provider bills interrupted and filtered replies, too
	}
	if err == nil {
		if u.Input == 0 && u.Output == 0 { // a provider that reports nothing
			u.Output = agent.EstimateTokens([]agent.Message{{Text: reply.Text, Calls: reply.Calls}})
		}
		used, calls = m.usage(u, req), reply.Calls
	}
	return reply, err
}

// reserve reserves the possible cost of the call if there is any limit.
func (m *model) reserve(ctx context.Context, req agent.Request) (id string, limited bool, err error) {
	limits, err := m.ledger.admissionLimits(ctx, m.payer)
	if err != nil {
		return "", false, err
	}
	if limits == (Limits{}) {
		return "", false, nil
	}
	if !m.priced {
		m.ledger.warnUnpriced(m.name, limits)
	}
	input := int64(req.EstimateTokens())
	output := m.ledger.cfg.ReplyTokens + reasoningTokens(cmp.Or(req.Effort, agent.ProfileOf(m.inner).Effort))
	h := reservation{User: m.payer.User, Chat: m.payer.Chat, Limit: Limit{Tokens: input + output}}
	if m.priced {
		h.Money = m.price.Cost(Tokens{Input: input, Output: output})
	}
	id, err = m.ledger.reserve(ctx, limits, m.payer, h)
	return id, true, err
}

// reasoningTokens returns the assumed reasoning tokens for an effort.
func reasoningTokens(effort string) int64 {
	switch effort {
	case "", "none":
		return 0
	case "minimal", "low":
		return 2000
	case "medium":
		return 6000
	}
	return 16_000
}

// warnUnpriced logs once that a limit in dollars does not bound a model without a price.
func (l *Ledger) warnUnpriced(name string, limits Limits) {
	for _, k := range kinds() {
		if limits.forKind(k).Money > 0 {
			if _, told := l.warnedModels.LoadOrStore(name, true); !told {
				l.log.Warn("a budget in dollars does not bound this model, because its price is not known: set it under prices",
					"model", name)
			}
			return
		}
	}
}

// usage returns the usage of a reply. If the provider reports none, it is estimated, so that no
// call is free.
func (m *model) usage(u agent.Usage, req agent.Request) *Usage {
	t := TokensOf(u)
	if t.Input == 0 {
		t.Input = int64(req.EstimateTokens())
	}
	s := usageOf(t, m.price, m.priced)
	if req.AllTokens > 0 { // the tokens of a recording are those of no tools
		s.ToolTokens, s.AllToolTokens = int64(req.ToolTokens), int64(req.AllTokens)
	}
	return &s
}

func (m *model) settle(id string, limited bool, used *Usage, tools []toolgroups.Tool, calls []agent.Call) {
	if used == nil {
		m.ledger.settle(id, m.payer, limited, nil)
		return
	}
	m.ledger.settle(id, m.payer, limited, used, m.shares(*used, tools, calls)...)
}

// Profile returns the profile of the model.
func (m *model) Profile() agent.Profile {
	p := agent.ProfileOf(m.inner)
	p.Name = cmp.Or(p.Name, m.name)
	return p
}

// lowerOf returns the smaller of two limits, where zero means no limit.
func (l Limit) lowerOf(other Limit) Limit {
	if other.Tokens > 0 && (l.Tokens == 0 || other.Tokens < l.Tokens) {
		l.Tokens = other.Tokens
	}
	if other.Money > 0 && (l.Money == 0 || other.Money < l.Money) {
		l.Money = other.Money
	}
	return l
}

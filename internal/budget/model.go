package budget

import (
	"cmp"
	"context"

	"oneclaw/agent"
)

// Model returns a model whose calls are charged to a payer, each before it returns. Its price depends on
// the type of the provider and the model's name there. The error of a refused call wraps a *[Refusal].
func (l *Ledger) Model(inner agent.Model, payer Payer, provider, name string) agent.Model {
	m := &model{inner: inner, ledger: l, payer: payer, name: name}
	m.price, m.priced = l.cfg.Prices.Lookup(provider, name)
	return m
}

// Model is [Ledger.Model] for a turn's model, whose charges are stored with the turn's messages.
func (t *TurnCharges) Model(inner agent.Model, payer Payer, provider, name string) agent.Model {
	m := t.ledger.Model(inner, payer, provider, name).(*model)
	m.turn = t
	return m
}

// Cost returns the cost of tokens, and whether the model's price is known.
func (l *Ledger) Cost(provider, name string, u agent.Usage) (USD, bool) {
	p, priced := l.cfg.Prices.Lookup(provider, name)
	return p.Cost(tokensOf(u)), priced
}

// tokensOf returns the tokens of a model call.
func tokensOf(u agent.Usage) Tokens {
	return Tokens{Input: int64(u.Input), Cached: int64(u.Cached), Written: int64(u.CacheWritten), WrittenForHour: int64(u.CacheWrittenHour), Output: int64(u.Output)}
}

type model struct {
	inner  agent.Model
	ledger *Ledger
	turn   *TurnCharges // nil if the calls have no turn
	payer  Payer
	name   string
	price  Price
	priced bool
}

// Complete reserves the possible cost, calls the model, and settles the real usage.
func (m *model) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	c, err := m.reserve(ctx, req)
	if err != nil {
		return agent.Reply{}, err
	}
	var used *Usage
	var shares []share
	replied := false
	defer func() { m.settle(ctx, c, used, replied, shares) }() // also if the model panics
	reply, err := m.inner.Complete(ctx, req, onDelta)
	u := reply.Usage
	if replied = err == nil; replied && u.Input == 0 && u.Output == 0 { // a provider that reports nothing
		u.Output = agent.EstimateTokens([]agent.Message{{Text: reply.Text, Calls: reply.Calls}})
	}
	if replied || u.Input+u.Output > 0 || ctx.Err() != nil { // the provider bills interrupted and filtered replies, too
		used = m.usage(u, req)
		shares = m.shares(*used, req.Tools, reply.Calls)
	}
	return reply, err
}

// reserve reserves the possible cost of the call.
func (m *model) reserve(ctx context.Context, req agent.Request) (*call, error) {
	limits, err := m.ledger.limitsOf(ctx, m.payer)
	if err != nil {
		return nil, err
	}
	if !m.priced {
		m.ledger.warnUnpriced(m.name, limits)
	}
	input := int64(req.EstimateTokens())
	output := m.ledger.cfg.ReplyTokens + reasoningTokens(cmp.Or(req.Effort, agent.ProfileOf(m.inner).Effort))
	possible := Limit{Tokens: input + output}
	if m.priced {
		possible.Money = m.price.Cost(Tokens{Input: input, Output: output})
	}
	return m.ledger.admit(ctx, limits, m.payer, possible)
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
	t := tokensOf(u)
	if t.Input == 0 {
		t.Input = int64(req.EstimateTokens())
	}
	s := usageOf(t, m.price, m.priced)
	if req.AllTokens > 0 { // the tokens of a recording are those of no tools
		s.ToolTokens, s.AllToolTokens = int64(req.ToolTokens), int64(req.AllTokens)
	}
	return &s
}

// settle replaces the reservation of a call by its charge; nil means that it costs nothing. The charge of a
// turn's reply is stored with the reply.
func (m *model) settle(ctx context.Context, c *call, used *Usage, replied bool, shares []share) {
	if used == nil {
		m.ledger.cancel(c)
		return
	}
	m.ledger.settle(c, m.ledger.today(), *used, shares...)
	if m.turn == nil || !replied {
		_ = m.ledger.store(ctx, c) // it is tried again
		return
	}
	m.turn.mu.Lock()
	defer m.turn.mu.Unlock()
	m.turn.calls = append(m.turn.calls, c)
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

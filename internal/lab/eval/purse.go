package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"oneclaw/agent"
	"oneclaw/internal/budget"
)

// ErrBudget ends a run whose budget does not allow the next request.
var ErrBudget = errors.New("eval: the limit of cost is reached")

// replyTokens are reserved for a reply in advance.
const replyTokens = 4000

// budgetTracker tracks the cost of a run.
type budgetTracker struct {
	price  budget.Price
	priced bool
	limit  budget.USD

	mu    sync.Mutex
	spent budget.USD
}

// unpriced is the price of a model without a known price: a dollar is a million tokens.
func unpriced() budget.Price { return budget.Price{Input: 1, CachedInput: 1, CacheWrite: 1, Output: 1} }

func newPurse(cfg Config) *budgetTracker {
	p := &budgetTracker{limit: budget.Dollars(cfg.Budget)}
	if p.price, p.priced = cfg.Money(cfg.Name); !p.priced {
		p.price = unpriced()
	}
	return p
}

// Limit describes the budget of the run.
func (p *Player) Limit() string {
	if p.purse.priced {
		return fmt.Sprintf("at most %s", p.purse.limit)
	}
	return fmt.Sprintf("at most %s tokens, since no price of %s is known", budget.Count(int64(p.cfg.Budget*1e6)), cmp.Or(p.cfg.Name, "the model"))
}

// Spent describes the cost of the run so far.
func (p *Player) Spent() string {
	p.purse.mu.Lock()
	defer p.purse.mu.Unlock()
	if p.purse.priced {
		return p.purse.spent.String()
	}
	return budget.Count(int64(p.purse.spent.Float()*1e6)) + " tokens"
}

// take reserves the most that a request can cost, and returns the function that settles it.
func (p *budgetTracker) take(input int) (settle func(agent.Usage), err error) {
	reserved := p.price.Of(budget.Tokens{Input: int64(input), Written: int64(input), Output: replyTokens})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spent+reserved > p.limit {
		return nil, &agent.ModelError{Kind: agent.KindBudget, Err: ErrBudget}
	}
	p.spent += reserved
	return func(u agent.Usage) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.spent += p.price.Of(budget.Tokens{Input: int64(u.Input), Cached: int64(u.Cached), Written: int64(u.Written), Output: int64(u.Output)}) - reserved
	}, nil
}

// counted is a model whose requests are charged to a purse.
type counted struct {
	agent.Model

	purse *budgetTracker
}

// Profile returns the profile of the model.
func (c counted) Profile() agent.Profile { return agent.ProfileOf(c.Model) }

// Complete implements [agent.Model].
func (c counted) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	settle, err := c.purse.take(agent.EstimateTokens(req.Messages) + req.ToolTokens + len(req.System)/4)
	if err != nil {
		return agent.Reply{}, err
	}
	reply, err := c.Model.Complete(ctx, req, onDelta)
	if err != nil {
		return reply, err // an interrupted request may be billed: keep the reservation
	}
	settle(reply.Usage)
	return reply, nil
}

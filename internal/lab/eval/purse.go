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

// ErrBudget is returned by a run whose budget does not allow the next request.
var ErrBudget = errors.New("eval: the cost limit is reached")

// replyTokens is the number of tokens reserved for a reply.
const replyTokens = 4000

// budgetTracker tracks the cost of a run.
type budgetTracker struct {
	price  budget.Price
	priced bool
	limit  budget.USD

	mu    sync.Mutex
	spent budget.USD
}

// fallbackPrice is the price of a model without a known price: a dollar per million tokens.
func fallbackPrice() budget.Price {
	return budget.Price{Input: 1, CachedInput: 1, CacheWrite: 1, Output: 1}
}

func newBudgetTracker(cfg Config) *budgetTracker {
	p := &budgetTracker{limit: budget.Dollars(cfg.Budget)}
	if p.price, p.priced = cfg.DollarPrice(cfg.Name); !p.priced {
		p.price = fallbackPrice()
	}
	return p
}

// DescribeLimit describes the budget of the run.
func (p *Player) DescribeLimit() string {
	if p.tracker.priced {
		return fmt.Sprintf("at most %s", p.tracker.limit)
	}
	return fmt.Sprintf("at most %s tokens, since no price of %s is known", budget.FormatCount(int64(p.cfg.Budget*1e6)), cmp.Or(p.cfg.Name, "the model"))
}

// DescribeSpent describes the cost of the run so far.
func (p *Player) DescribeSpent() string {
	p.tracker.mu.Lock()
	defer p.tracker.mu.Unlock()
	if p.tracker.priced {
		return p.tracker.spent.String()
	}
	return budget.FormatCount(int64(p.tracker.spent.Float()*1e6)) + " tokens"
}

// reserve reserves the most that a request can cost, and returns the function that settles it.
func (p *budgetTracker) reserve(input int) (settle func(agent.Usage), err error) {
	reserved := p.price.Cost(budget.Tokens{Input: int64(input), Written: int64(input), Output: replyTokens})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spent+reserved > p.limit {
		return nil, &agent.ModelError{Kind: agent.KindBudget, Err: ErrBudget}
	}
	p.spent += reserved
	return func(u agent.Usage) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.spent += p.price.Cost(budget.TokensOf(u)) - reserved
	}, nil
}

// budgetedModel is a model whose requests are charged to a budget.
type budgetedModel struct {
	agent.Model

	tracker *budgetTracker
}

// Profile returns the profile of the model.
func (c budgetedModel) Profile() agent.Profile { return agent.ProfileOf(c.Model) }

// Complete implements [agent.Model].
func (c budgetedModel) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	settle, err := c.tracker.reserve(agent.EstimateTokens(req.Messages) + req.ToolTokens + len(req.System)/4)
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

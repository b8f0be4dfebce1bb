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

// replyTokens is what is reserved for a reply before it is there.
const replyTokens = 4000

// purse keeps what a run may cost.
type purse struct {
	price  budget.Price
	priced bool
	limit  budget.USD

	mu    sync.Mutex
	spent budget.USD
}

// unpriced stands for the price of a model of which none is known: a dollar is a million tokens.
func unpriced() budget.Price { return budget.Price{Input: 1, CachedInput: 1, CacheWrite: 1, Output: 1} }

func newPurse(cfg Config) *purse {
	p := &purse{limit: budget.Dollars(cfg.Budget)}
	if p.price, p.priced = cfg.Money(cfg.Name); !p.priced {
		p.price = unpriced()
	}
	return p
}

// Limit says what the run may cost, in words.
func (p *Player) Limit() string {
	if p.purse.priced {
		return fmt.Sprintf("at most %s", p.purse.limit)
	}
	return fmt.Sprintf("at most %s tokens, since no price of %s is known", budget.Count(int64(p.cfg.Budget*1e6)), cmp.Or(p.cfg.Name, "the model"))
}

// Spent says what the run has cost until now, in words.
func (p *Player) Spent() string {
	p.purse.mu.Lock()
	defer p.purse.mu.Unlock()
	if p.purse.priced {
		return p.purse.spent.String()
	}
	return budget.Count(int64(p.purse.spent.Float()*1e6)) + " tokens"
}

// take reserves for a request what it costs at most, and returns how that is settled.
func (p *purse) take(input int) (settle func(agent.Usage), err error) {
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

// counted is a model whose requests are paid from a purse.
type counted struct {
	agent.Model

	purse *purse
}

// Profile is that of the model.
func (c counted) Profile() agent.Profile { return agent.ProfileOf(c.Model) }

// Complete implements [agent.Model].
func (c counted) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	settle, err := c.purse.take(agent.EstimateTokens(req.Messages) + req.ToolTokens + len(req.System)/4)
	if err != nil {
		return agent.Reply{}, err
	}
	reply, err := c.Model.Complete(ctx, req, onDelta)
	if err != nil {
		return reply, err // what is broken off may be billed: the reservation stays
	}
	settle(reply.Usage)
	return reply, nil
}

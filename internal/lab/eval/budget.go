package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"oneclaw/agent"
	"oneclaw/internal/budget"
)

// ErrBudget is returned by a run whose budget does not allow the next request.
var ErrBudget = errors.New("eval: the cost limit is reached")

// replyTokens is the number of tokens reserved for a reply.
const replyTokens = 4000

// budgetedModel is a model whose requests are charged to the budget of a run. A request is made only if
// the rest of the budget covers its estimated highest cost.
type budgetedModel struct {
	agent.Model

	name         string
	price        budget.Price
	priced       bool
	limit, spent budget.USD
}

func newBudgetedModel(cfg Config) *budgetedModel {
	m := &budgetedModel{Model: cfg.Model, name: cfg.Name, limit: budget.Dollars(cfg.Budget)}
	if m.price, m.priced = cfg.DollarPrice(cfg.Name); !m.priced {
		m.price = budget.Price{Input: 1, CachedInput: 1, CacheWrite: 1, Output: 1} // a dollar per million tokens
	}
	return m
}

// describeLimit describes the budget of the run.
func (m *budgetedModel) describeLimit() string {
	if m.priced {
		return fmt.Sprintf("at most %s", m.limit)
	}
	return fmt.Sprintf("at most %s, since no price of %s is known", m.describe(m.limit), cmp.Or(m.name, "the model"))
}

// describe describes a part of the budget, in tokens if no price is known.
func (m *budgetedModel) describe(amount budget.USD) string {
	if m.priced {
		return amount.String()
	}
	return budget.FormatCount(int64(amount.Float()*1e6)) + " tokens"
}

// Profile returns the profile of the model.
func (m *budgetedModel) Profile() agent.Profile { return agent.ProfileOf(m.Model) }

// Complete implements [agent.Model].
func (m *budgetedModel) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	input := int64(agent.EstimateTokens(req.Messages) + req.ToolTokens + len(req.System)/4)
	reserved := m.price.Cost(budget.Tokens{Input: input, Written: input, Output: replyTokens})
	if m.spent+reserved > m.limit {
		return agent.Reply{}, &agent.ModelError{Kind: agent.KindBudget, Err: ErrBudget}
	}
	m.spent += reserved
	reply, err := m.Model.Complete(ctx, req, onDelta)
	if err == nil { // an interrupted request may be billed: keep the reservation
		m.spent += m.price.Cost(budget.TokensOf(reply.Usage)) - reserved
	}
	return reply, err
}

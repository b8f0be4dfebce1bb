package budget

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"oneclaw/agent"
)

// Buy reserves the price of a search or similar if anything is limited. settle says whether the
// price was incurred, and has to be called. The error wraps a *[Refusal] if there is no budget
// left.
func (l *Ledger) Buy(ctx context.Context, payer Payer, cost USD) (settle func(had bool), err error) {
	if err := l.full(); err != nil {
		return nil, err
	}
	limits, err := l.cfg.Limits(ctx)
	if err != nil {
		return nil, fmt.Errorf("budget: read the limits: %w", err)
	}
	limits.User = limits.User.lower(payer.Limit)
	id, limited := "", limits != (Limits{})
	if limited {
		if id, err = l.hold(ctx, limits, payer, hold{User: payer.User, Chat: payer.Chat, Limit: Limit{Money: cost}}); err != nil {
			return nil, err
		}
	}
	return func(had bool) {
		var used *Sum
		if had {
			used = &Sum{Searches: 1, Money: cost}
		}
		l.settle(id, payer, limited, used)
	}, nil
}

// hold makes a reservation for a payer.
func (l *Ledger) hold(ctx context.Context, limits Limits, payer Payer, h hold) (id string, err error) {
	id = l.self + rand.Text()
	done := l.do(operation{}, func(ctx context.Context, b *accountBook, now time.Time) (bool, error) {
		if refusal := b.admit(ctx, limits, payer, now); refusal != nil {
			refusal.complete(b.day, now, l.cfg.Location())
			return false, refusal
		}
		h.Expires = now.Add(l.cfg.Hold)
		b.reserve(ctx, id, h, now)
		return true, nil
	})
	select {
	case err = <-done:
	case <-ctx.Done():
		// It may still be written; then release it at once.
		l.settle(id, payer, true, nil)
		return "", fmt.Errorf("budget: %w", context.Cause(ctx))
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		l.log.Info("no budget left", "account", refusal.Account.key(), "user", payer.User, "chat", payer.Chat)
		return "", &agent.ModelError{Kind: agent.KindBudget, Notice: refusal.Sentence(), Err: refusal}
	}
	if err != nil {
		l.settle(id, payer, true, nil) // the store may have accepted it
		return "", fmt.Errorf("budget: reserve: %w", err)
	}
	return id, nil
}

// settle replaces a reservation by the usage; no caller waits for it. Without limits, writes
// that users wait for come first. Besides the payer's accounts, shares are charged to accounts
// of their own.
func (l *Ledger) settle(id string, payer Payer, limited bool, used *Sum, shares ...share) {
	if id == "" && used == nil {
		return
	}
	op := operation{patient: true}
	if used != nil {
		op.used = *used
	}
	charge := func(c *charges) {
		if used == nil {
			return
		}
		for _, k := range kinds() {
			c.add(payer.account(k), *used)
		}
		for _, s := range shares {
			c.add(s.account, s.sum)
		}
	}
	if !limited {
		op.lazy = charge
	}
	l.do(op, func(ctx context.Context, b *accountBook, _ time.Time) (bool, error) {
		open := b.release(ctx, id)
		c := charges{Day: b.day}
		charge(&c)
		b.charge(ctx, c)
		return open || used != nil, nil
	})
}

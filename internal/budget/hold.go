package budget

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"oneclaw/agent"
)

// Buy reserves the price of a paid service, such as a search, if there is any limit. The caller
// must call settle and pass whether the price was incurred. The error wraps a *[Refusal] if there
// is no budget left.
func (l *Ledger) Buy(ctx context.Context, payer Payer, cost USD) (settle func(had bool), err error) {
	limits, err := l.admissionLimits(ctx, payer)
	if err != nil {
		return nil, err
	}
	id, limited := "", limits != (Limits{})
	if limited {
		if id, err = l.reserve(ctx, limits, payer, reservation{User: payer.User, Chat: payer.Chat, Limit: Limit{Money: cost}}); err != nil {
			return nil, err
		}
	}
	return func(had bool) {
		var used *Usage
		if had {
			used = &Usage{Searches: 1, Money: cost}
		}
		l.settle(id, payer, limited, used)
	}, nil
}

// reserve makes a reservation for a payer.
func (l *Ledger) reserve(ctx context.Context, limits Limits, payer Payer, h reservation) (id string, err error) {
	id = l.self + rand.Text()
	done := l.enqueue(operation{}, func(ctx context.Context, b *accountBook, now time.Time) (bool, error) {
		if refusal := b.admit(ctx, limits, payer, now); refusal != nil {
			refusal.setUntil(b.day, now, l.cfg.Location())
			return false, refusal
		}
		h.Expires = now.Add(l.cfg.ReservationTTL)
		b.reserve(ctx, id, h, now)
		return true, nil
	})
	select {
	case err = <-done:
	case <-ctx.Done():
		// The reservation may still be written: release it.
		l.settle(id, payer, true, nil)
		return "", fmt.Errorf("budget: %w", context.Cause(ctx))
	}
	if err == nil {
		return id, nil
	}
	if _, refused := errors.AsType[*Refusal](err); !refused {
		l.settle(id, payer, true, nil) // the store may have accepted it
	}
	return "", l.toModelError(err, payer)
}

// toModelError returns the error for a call that was not admitted.
func (l *Ledger) toModelError(err error, payer Payer) error {
	refusal, ok := errors.AsType[*Refusal](err)
	if !ok {
		return fmt.Errorf("budget: reserve: %w", err)
	}
	l.log.Info("no budget left", "account", refusal.Account.key(), "user", payer.User, "chat", payer.Chat)
	return &agent.ModelError{Kind: agent.KindBudget, Notice: refusal.UserText(), Err: refusal}
}

// settle replaces a reservation with the usage; nil releases it. Callers do not wait for the write,
// which without limits is delayed so that writes that users wait for come first. The shares are
// charged to their own accounts, in addition to the payer's.
func (l *Ledger) settle(id string, payer Payer, limited bool, used *Usage, shares ...share) {
	if id == "" && used == nil {
		return
	}
	op := operation{durable: true}
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
	l.enqueue(op, func(ctx context.Context, b *accountBook, _ time.Time) (bool, error) {
		open := b.release(ctx, id)
		c := charges{Day: b.day}
		charge(&c)
		b.charge(ctx, c)
		return open || used != nil, nil
	})
}

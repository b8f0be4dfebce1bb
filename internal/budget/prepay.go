package budget

import (
	"context"
	"fmt"
	"time"
)

// UsageOf returns the usage of one call of a model, with its price if that is known.
func (l *Ledger) UsageOf(provider, name string, t Tokens) Usage {
	price, priced := l.cfg.Prices.Lookup(provider, name)
	return usageOf(t, price, priced)
}

func usageOf(t Tokens, price Price, priced bool) Usage {
	u := Usage{Calls: 1, Input: t.Input, Cached: t.Cached, Written: t.Written, Output: t.Output, Money: price.Cost(t)}
	if !priced {
		u.Unpriced = 1
	}
	return u
}

// Prepay charges a payer for a call of a model before the call is made. Unlike a reservation, the charge
// remains if the program is killed during the call. The caller calls settle at most once, to replace the
// expected usage by the actual one; the zero value refunds everything. After midnight settle has no effect.
// The error wraps a *[Refusal] if there is no budget left.
func (l *Ledger) Prepay(ctx context.Context, payer Payer, model string, expected Usage) (settle func(actual Usage), err error) {
	limits, err := l.admissionLimits(ctx, payer)
	if err != nil {
		return nil, err
	}
	if expected.Unpriced > 0 {
		l.warnUnpriced(model, limits)
	}
	charged := "" // the day of the charge; only the goroutine that writes accesses it
	charge := func(ctx context.Context, b *accountBook, sum Usage) {
		c := charges{Day: b.day}
		for _, k := range kinds() {
			c.add(payer.account(k), sum)
		}
		c.add(Account{KindModel, clipName(model)}, sum)
		b.charge(ctx, c)
	}
	done := l.enqueue(operation{durable: true, used: expected}, func(ctx context.Context, b *accountBook, now time.Time) (bool, error) {
		if refusal := b.admit(ctx, limits, payer, now); refusal != nil {
			refusal.setUntil(b.day, now, l.cfg.Location())
			return false, refusal
		}
		charged = b.day
		charge(ctx, b, expected)
		return true, nil
	})
	settle = func(actual Usage) {
		l.enqueue(operation{durable: true}, func(ctx context.Context, b *accountBook, _ time.Time) (bool, error) {
			if b.day != charged {
				return false, nil
			}
			charge(ctx, b, actual.differenceFrom(expected))
			return true, nil
		})
	}
	select {
	case err = <-done:
	case <-ctx.Done():
		settle(Usage{}) // it may still be charged
		return nil, fmt.Errorf("budget: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, l.toModelError(err, payer)
	}
	return settle, nil
}

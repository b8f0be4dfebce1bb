package budget

import "context"

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

// Buy reserves the price of a paid service, such as a search. The caller must call settle and pass whether
// the price was incurred; the charge is stored when settle returns. The error wraps a *[Refusal] if there
// is no budget left.
func (l *Ledger) Buy(ctx context.Context, payer Payer, cost USD) (settle func(had bool), err error) {
	limits, err := l.limitsOf(ctx, payer)
	if err != nil {
		return nil, err
	}
	c, err := l.admit(ctx, limits, payer, Limit{Money: cost})
	if err != nil {
		return nil, err
	}
	return func(had bool) {
		if !had {
			l.cancel(c)
			return
		}
		l.settle(c, l.today(), Usage{Searches: 1, Money: cost})
		_ = l.store(ctx, c) // it is tried again
	}, nil
}

// Prepay charges a payer for a call of a model before the call is made, so that the call is paid even if
// the program is killed during it. The caller calls settle at most once, to replace the expected usage by
// the actual one; the zero value refunds everything. The error wraps a *[Refusal] if there is no budget
// left.
func (l *Ledger) Prepay(ctx context.Context, payer Payer, model string, expected Usage) (settle func(actual Usage), err error) {
	limits, err := l.limitsOf(ctx, payer)
	if err != nil {
		return nil, err
	}
	if expected.Unpriced > 0 {
		l.warnUnpriced(model, limits)
	}
	c, err := l.admit(ctx, limits, payer, Limit{Tokens: expected.Tokens(), Money: expected.Money})
	if err != nil {
		return nil, err
	}
	day, account := l.today(), Account{KindModel, clipName(model)}
	l.settle(c, day, expected, share{account, expected})
	settle = func(actual Usage) {
		correction, change := l.begin(payer, Limit{}), actual.minus(expected)
		l.settle(correction, day, change, share{account, change})
		_ = l.store(ctx, correction) // it is tried again
	}
	if err := l.store(ctx, c); err != nil {
		settle(Usage{}) // the charge may be stored, or will be
		return nil, err
	}
	return settle, nil
}

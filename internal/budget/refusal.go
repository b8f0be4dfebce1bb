package budget

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Refusal explains why a call was refused.
type Refusal struct {
	// Account is the account that has reached its limit.
	Account Account `json:"account"`
	// Spent is its usage, Limit its limit with all raises, and Base the limit without raises.
	Spent Usage `json:"spent"`
	Limit Limit `json:"limit"`
	Base  Limit `json:"base"`
	// IsMoney is true if the limit is in money, and false if it is in tokens.
	IsMoney bool `json:"money,omitempty"`
	// PartlyReserved is true if part of the budget is only reserved, for answers in progress.
	PartlyReserved bool `json:"held,omitempty"`
	// Until is when the account resets.
	Until time.Time `json:"until"`
}

// endOf returns when an account of a kind resets.
func (l *Ledger) endOf(k Kind) time.Time {
	day := l.cfg.Now().In(l.cfg.Location())
	if k == KindMonth {
		return time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, day.Location())
	}
	return time.Date(day.Year(), day.Month(), day.Day()+1, 0, 0, 0, 0, day.Location())
}

// Error returns the text for the log.
func (r *Refusal) Error() string {
	return fmt.Sprintf("budget: %s has used %s", r.Account.key(), r.spentOfLimit())
}

// spentOfLimit returns "spent of limit".
func (r *Refusal) spentOfLimit() string {
	if r.IsMoney {
		return fmt.Sprintf("%s of %s", r.Spent.Money, r.Limit.Money)
	}
	return fmt.Sprintf("%s of %s tokens", FormatCount(r.Spent.Tokens()), FormatCount(r.Limit.Tokens))
}

// UserText returns the answer to the refused user, in Markdown.
func (r *Refusal) UserText() string {
	who := map[Kind]string{KindUser: "you have", KindChat: "this chat has", kindTotal: "everybody together has", KindMonth: "everybody together has"}[r.Account.Kind]
	if r.PartlyReserved {
		return fmt.Sprintf("The rest of the budget is reserved for answers in progress (%s used %s). Please send this again in a minute.",
			who, r.spentOfLimit())
	}
	if r.Account.Kind == KindMonth {
		return fmt.Sprintf("This month's budget is used up: %s used %s. It is free again on %s.", who, r.spentOfLimit(), r.Until.Format("2 January"))
	}
	return fmt.Sprintf("Today's budget is used up: %s used %s. It is free again at %s.", who, r.spentOfLimit(), r.Until.Format("15:04 (MST)"))
}

// SuggestedRaise returns the raise that an administrator is offered: the limit without raises.
func (r *Refusal) SuggestedRaise() Limit {
	if r.IsMoney {
		return Limit{Money: r.Base.Money}
	}
	return Limit{Tokens: r.Base.Tokens}
}

// String formats the amounts.
func (l Limit) String() string {
	switch {
	case l.Money != 0 && l.Tokens != 0:
		return fmt.Sprintf("%s and %s tokens", l.Money, FormatCount(l.Tokens))
	case l.Money != 0:
		return l.Money.String()
	}
	return FormatCount(l.Tokens) + " tokens"
}

// Raise raises an account's limit until its day or month ends, and returns the new limit. base is the limit
// without raises, which may be a payer's own. A second raise with the same key has no effect. The raise is
// stored with the day.
func (l *Ledger) Raise(ctx context.Context, raise Raise, base Limit) (raised Limit, err error) {
	key := keyOf(l.today(), raise.Account)
	err = l.change(ctx, []string{key}, func(all sums) bool {
		account := all[key]
		known := slices.ContainsFunc(account.Raises, func(r Raise) bool { return r.Key != "" && r.Key == raise.Key })
		if !known {
			raise.Time = l.cfg.Now()
			account.Raises = append(account.Raises, raise)
		}
		raised = account.raise(base)
		return !known
	})
	if err != nil {
		return Limit{}, fmt.Errorf("budget: raise a limit: %w", err)
	}
	l.log.Info("budget raised", "account", raise.Account.key(), "by", raise.Amount.String(), "who", raise.User)
	return raised, nil
}

// AccountStatus is the usage of an account with its limit.
type AccountStatus struct {
	Account Account
	Spent   Usage
	Limit   Limit
}

// Report is the content of /usage.
type Report struct {
	// Until is when the next day begins.
	Until time.Time
	// User, Chat and Total are today's usage, Month is this month's.
	User, Chat, Total, Month AccountStatus
	// ChatTotal is the chat's total usage.
	ChatTotal Usage
}

// Report returns the accounts of a payer.
func (l *Ledger) Report(ctx context.Context, payer Payer) (Report, error) {
	limits, err := l.limitsOf(ctx, payer)
	if err != nil {
		return Report{}, err
	}
	if err := l.fold(ctx, chargesPrefix); err != nil { // so that lists of accounts show the same
		return Report{}, err
	}
	day := l.today()
	all, err := l.current(ctx, day, payer)
	if err != nil {
		return Report{}, err
	}
	line := func(k Kind) AccountStatus {
		a := payer.account(k)
		sum := all[keyOf(day, a)]
		return AccountStatus{Account: a, Spent: sum.Usage, Limit: sum.raise(limits.forKind(k))}
	}
	return Report{
		Until: l.endOf(KindUser), User: line(KindUser), Chat: line(KindChat), Total: line(kindTotal), Month: line(KindMonth),
		ChatTotal: all[chatTotalPrefix+payer.Chat].Usage,
	}, nil
}

package budget

import (
	"context"
	"errors"
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
	// Until is when the account resets. BeyondDay is true if that is more than a day away.
	Until     time.Time `json:"until"`
	BeyondDay bool      `json:"far,omitempty"`
}

// setUntil sets Until and BeyondDay, in the time zone of the accounts.
func (r *Refusal) setUntil(today string, now time.Time, zone *time.Location) {
	day, err := time.ParseInLocation(time.DateOnly, today, zone)
	if err != nil {
		day = now.In(zone)
	}
	r.Until = time.Date(day.Year(), day.Month(), day.Day()+1, 0, 0, 0, 0, zone)
	if r.Account.Kind == KindMonth {
		r.Until = time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, zone)
	}
	r.BeyondDay = r.Until.After(now.Add(25 * time.Hour)) // as long as a day may be
}

// Error returns the text for the log.
func (r *Refusal) Error() string {
	return fmt.Sprintf("budget: %s has used %s", r.Account.key(), r.SpentOfLimit())
}

// SpentOfLimit returns "spent of limit".
func (r *Refusal) SpentOfLimit() string {
	if r.IsMoney {
		return fmt.Sprintf("%s of %s", r.Spent.Money, r.Limit.Money)
	}
	return fmt.Sprintf("%s of %s tokens", FormatCount(r.Spent.Tokens()), FormatCount(r.Limit.Tokens))
}

// UserText returns the answer to the refused user, in Markdown.
func (r *Refusal) UserText() string {
	who := map[Kind]string{KindUser: "you have", KindChat: "this chat has", KindTotal: "everybody together has", KindMonth: "everybody together has"}[r.Account.Kind]
	if r.PartlyReserved {
		return fmt.Sprintf("The rest of the budget is reserved for answers in progress (%s used %s). Please send this again in a minute.",
			who, r.SpentOfLimit())
	}
	if r.Account.Kind == KindMonth {
		return fmt.Sprintf("This month's budget is used up: %s used %s. It is free again on %s.", who, r.SpentOfLimit(), r.Until.Format("2 January"))
	}
	until := r.Until.Format("15:04 (MST)")
	if r.BeyondDay {
		until += r.Until.Format(" on 2 January 2006")
	}
	return fmt.Sprintf("Today's budget is used up: %s used %s. It is free again at %s.", who, r.SpentOfLimit(), until)
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
func (l *Ledger) Raise(ctx context.Context, raise Raise, base Limit) (Limit, error) {
	raised := new(Limit)
	err := l.wait(ctx, l.enqueue(operation{}, func(ctx context.Context, b *accountBook, now time.Time) (changed bool, _ error) {
		account := b.account(ctx, raise.Account)
		same := func(r Raise) bool { return r.Key != "" && r.Key == raise.Key }
		if changed = !slices.ContainsFunc(account.Raises, same); changed {
			raise.Time = now
			account.Raises, account.changed = append(account.Raises, raise), true
		}
		*raised = b.addRaises(ctx, base, raise.Account)
		return changed, nil
	}))
	if err != nil {
		return Limit{}, err
	}
	l.log.Info("budget raised", "account", raise.Account.key(), "by", raise.Amount.String(), "who", raise.User)
	return *raised, nil
}

// Move moves the accounts of a chat and its threads to another. It may be repeated.
func (l *Ledger) Move(ctx context.Context, from, to string) error {
	return l.wait(ctx, l.enqueue(operation{}, func(ctx context.Context, b *accountBook, _ time.Time) (bool, error) {
		b.move(ctx, from, to)
		return true, nil
	}))
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
	limits, err := l.cfg.Limits(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("budget: read the limits: %w", err)
	}
	limits.User = limits.User.lowerOf(payer.Limit)
	r := new(Report)
	err = l.wait(ctx, l.enqueue(operation{}, func(ctx context.Context, b *accountBook, now time.Time) (bool, error) {
		line := func(k Kind) AccountStatus {
			a := payer.account(k)
			return AccountStatus{Account: a, Spent: b.account(ctx, a).Usage, Limit: b.limit(ctx, limits, a)}
		}
		var end Refusal
		end.setUntil(b.day, now, l.cfg.Location())
		*r = Report{
			Until: end.Until, User: line(KindUser), Chat: line(KindChat), Total: line(KindTotal), Month: line(KindMonth),
			ChatTotal: b.recordAt(ctx, chatTotalPrefix+payer.Chat).Usage,
		}
		return false, nil
	}))
	if err != nil {
		return Report{}, err
	}
	return *r, nil
}

func (l *Ledger) wait(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		if err != nil && !errors.Is(err, errClosed) {
			return fmt.Errorf("budget: %w", err)
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("budget: %w", context.Cause(ctx))
	}
}

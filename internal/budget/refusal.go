package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Refusal says why a call was refused.
type Refusal struct {
	// Account has reached its limit.
	Account Account `json:"account"`
	// Spent is its usage, Limit its limit with all raises, Base without.
	Spent Sum   `json:"spent"`
	Limit Limit `json:"limit"`
	Base  Limit `json:"base"`
	// Money is true for the limit of money, false for that of tokens.
	Money bool `json:"money,omitempty"`
	// Held is true if part of it is only reserved, for answers in progress.
	Held bool `json:"held,omitempty"`
	// Until is when the account resets; Far is true if that is not within a day.
	Until time.Time `json:"until"`
	Far   bool      `json:"far,omitempty"`
}

// complete sets Until, in the time zone of the accounts.
func (r *Refusal) complete(today string, now time.Time, zone *time.Location) {
	day, err := time.ParseInLocation(time.DateOnly, today, zone)
	if err != nil {
		day = now.In(zone)
	}
	r.Until = time.Date(day.Year(), day.Month(), day.Day()+1, 0, 0, 0, 0, zone)
	if r.Account.Kind == KindMonth {
		r.Until = time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, zone)
	}
	r.Far = r.Until.After(now.Add(25 * time.Hour)) // as long as a day may be
}

// Error is for the log.
func (r *Refusal) Error() string {
	return fmt.Sprintf("budget: %s has used %s", r.Account.key(), r.State())
}

// State returns "spent of limit".
func (r *Refusal) State() string {
	if r.Money {
		return fmt.Sprintf("%s of %s", r.Spent.Money, r.Limit.Money)
	}
	return fmt.Sprintf("%s of %s tokens", Count(r.Spent.Tokens()), Count(r.Limit.Tokens))
}

// Sentence is the answer to the refused user, in Markdown.
func (r *Refusal) Sentence() string {
	who := map[Kind]string{KindUser: "you have", KindChat: "this chat has", KindTotal: "everybody together has", KindMonth: "everybody together has"}[r.Account.Kind]
	if r.Held {
		return fmt.Sprintf("The rest of the budget is reserved for answers in progress (%s used %s). Please send this again in a minute.",
			who, r.State())
	}
	if r.Account.Kind == KindMonth {
		return fmt.Sprintf("This month's budget is used up: %s used %s. It is free again on %s.", who, r.State(), r.Until.Format("2 January"))
	}
	until := r.Until.Format("15:04 (MST)")
	if r.Far {
		until += r.Until.Format(" on 2 January 2006")
	}
	return fmt.Sprintf("Today's budget is used up: %s used %s. It is free again at %s.", who, r.State(), until)
}

// SuggestedRaise returns the raise that an administrator is offered: as much again.
func (r *Refusal) SuggestedRaise() Limit {
	if r.Money {
		return Limit{Money: r.Base.Money}
	}
	return Limit{Tokens: r.Base.Tokens}
}

// String formats the amounts.
func (l Limit) String() string {
	switch {
	case l.Money != 0 && l.Tokens != 0:
		return fmt.Sprintf("%s and %s tokens", l.Money, Count(l.Tokens))
	case l.Money != 0:
		return l.Money.String()
	}
	return Count(l.Tokens) + " tokens"
}

// Raise raises an account's limit until its day or month ends, and returns the new limit. The
// same raise again, by its key, has no effect. It is stored with the day.
func (l *Ledger) Raise(ctx context.Context, raise Raise) (Limit, error) {
	limits, err := l.cfg.Limits(ctx)
	if err != nil {
		return Limit{}, fmt.Errorf("budget: read the limits: %w", err)
	}
	raised := new(Limit)
	err = l.wait(ctx, l.do(operation{}, func(ctx context.Context, b *accountBook, now time.Time) (changed bool, _ error) {
		account := b.account(ctx, raise.Account)
		same := func(r Raise) bool { return r.Key != "" && r.Key == raise.Key }
		if changed = !slices.ContainsFunc(account.Raises, same); changed {
			raise.Time = now
			account.Raises, account.changed = append(account.Raises, raise), true
		}
		*raised = b.limit(ctx, limits, raise.Account)
		return changed, nil
	}))
	if err != nil {
		return Limit{}, err
	}
	l.log.Info("budget raised", "account", raise.Account.key(), "by", raise.By.String(), "who", raise.Who)
	return *raised, nil
}

// Move moves the accounts of a chat and its threads to another. It may be repeated.
func (l *Ledger) Move(ctx context.Context, from, to string) error {
	return l.wait(ctx, l.do(operation{}, func(ctx context.Context, b *accountBook, _ time.Time) (bool, error) {
		b.move(ctx, from, to)
		return true, nil
	}))
}

// Line is an account with its limit.
type Line struct {
	Account Account
	Spent   Sum
	Limit   Limit
}

// Report is the content of /usage.
type Report struct {
	// Until is when the next day begins.
	Until time.Time
	// User, Chat and Total are today's, Month this month's.
	User, Chat, Total, Month Line
	// ChatEver is the chat's total usage.
	ChatEver Sum
}

// Report returns the accounts of a payer.
func (l *Ledger) Report(ctx context.Context, payer Payer) (Report, error) {
	limits, err := l.cfg.Limits(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("budget: read the limits: %w", err)
	}
	r := new(Report)
	err = l.wait(ctx, l.do(operation{}, func(ctx context.Context, b *accountBook, now time.Time) (bool, error) {
		line := func(k Kind) Line {
			a := payer.account(k)
			return Line{Account: a, Spent: b.account(ctx, a).Sum, Limit: b.limit(ctx, limits, a)}
		}
		var end Refusal
		end.complete(b.day, now, l.cfg.Location())
		*r = Report{
			Until: end.Until, User: line(KindUser), Chat: line(KindChat), Total: line(KindTotal), Month: line(KindMonth),
			ChatEver: b.at(ctx, everKey+payer.Chat).Sum,
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

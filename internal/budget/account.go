package budget

import (
	"time"
)

// Sum is the usage of calls.
type Sum struct {
	Calls int64 `json:"calls,omitempty"`
	// Input counts all input tokens, of which Cached were read from the provider's cache and
	// Written written to it.
	Input   int64 `json:"input,omitempty"`
	Cached  int64 `json:"cached,omitempty"`
	Written int64 `json:"written,omitempty"`
	Output  int64 `json:"output,omitempty"`
	// Tools estimates what of Input was tools, All what all tools would have been.
	Tools int64 `json:"tools,omitempty"`
	All   int64 `json:"all,omitempty"`
	// Searches counts web searches.
	Searches int64 `json:"searches,omitempty"`
	// Money is the cost of the calls with a known price; Unpriced counts the others.
	Money    USD   `json:"money,omitempty"`
	Unpriced int64 `json:"unpriced,omitempty"`
}

// Tokens returns what counts against a limit of tokens: input, including cached, and output.
func (s Sum) Tokens() int64 { return s.Input + s.Output }

// Saved returns the estimated tokens of the tools that were not sent.
func (s Sum) Saved() int64 { return max(s.All-s.Tools, 0) }

func (s Sum) plus(t Sum) Sum {
	return Sum{
		Calls: s.Calls + t.Calls, Input: s.Input + t.Input, Cached: s.Cached + t.Cached, Written: s.Written + t.Written,
		Output: s.Output + t.Output, Tools: s.Tools + t.Tools, All: s.All + t.All,
		Searches: s.Searches + t.Searches, Money: s.Money + t.Money, Unpriced: s.Unpriced + t.Unpriced,
	}
}

// minus returns a sum without a part of it.
func (s Sum) minus(t Sum) Sum {
	return Sum{
		Calls: max(s.Calls-t.Calls, 0), Input: max(s.Input-t.Input, 0), Cached: max(s.Cached-t.Cached, 0), Written: max(s.Written-t.Written, 0),
		Output: max(s.Output-t.Output, 0), Tools: max(s.Tools-t.Tools, 0), All: max(s.All-t.All, 0),
		Searches: max(s.Searches-t.Searches, 0), Money: max(s.Money-t.Money, 0), Unpriced: max(s.Unpriced-t.Unpriced, 0),
	}
}

// Limit bounds an account; zero is no bound.
type Limit struct {
	Tokens int64 `json:"tokens,omitempty"`
	Money  USD   `json:"money,omitempty"`
}

// Limits are the limits of all accounts.
type Limits struct {
	// User, Chat and Total are daily limits: of each user, of each chat, of all.
	User, Chat, Total Limit
	// Month is the monthly limit of all.
	Month Limit
}

func (l Limits) of(k Kind) Limit {
	switch k {
	case KindUser:
		return l.User
	case KindChat:
		return l.Chat
	case KindTotal:
		return l.Total
	case KindMonth:
		return l.Month
	}
	return Limit{}
}

// Kind is the kind of an account.
type Kind string

// The kinds of accounts.
const (
	KindUser  Kind = "user"
	KindChat  Kind = "chat"
	KindTotal Kind = "total"
	KindMonth Kind = "month"
)

func kinds() []Kind { return []Kind{KindUser, KindChat, KindTotal, KindMonth} }

// Account is an account that calls are charged to. Name is the user (platform:id) or the chat;
// empty for the accounts of all.
type Account struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name,omitempty"`
}

// Whose describes the owner of the account; user is how to call a user.
func (a Account) Whose(user string) string {
	switch {
	case a.Kind == KindUser && a.Name == user:
		return "them"
	case a.Kind == KindUser:
		return a.Name
	case a.Kind == KindChat:
		return "that chat"
	}
	return "everybody together"
}

func (a Account) key() string { return string(a.Kind) + " " + a.Name }

// Payer says whom a call is charged to.
type Payer struct {
	// User is platform:id, Chat as in toolgroups.Scope.
	User string
	Chat string
	// Limit is the user's own daily limit if it is lower than the common one; zero for none.
	Limit Limit
}

func (p Payer) account(k Kind) Account {
	switch k {
	case KindUser:
		return Account{k, p.User}
	case KindChat:
		return Account{k, p.Chat}
	default:
		return Account{Kind: k}
	}
}

// Raise is an increase of one account's limit, until its day or month ends.
type Raise struct {
	Account Account   `json:"account"`
	By      Limit     `json:"by"`
	Who     string    `json:"who"`
	Time    time.Time `json:"time"`
	// Key identifies it: the same raise again has no effect.
	Key string `json:"key,omitempty"`
}

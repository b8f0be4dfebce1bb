package budget

import "time"

// Usage is the usage of some calls.
type Usage struct {
	Calls int64 `json:"calls,omitempty"`
	// Input counts all input tokens, of which Cached were read from the provider's cache and
	// Written written to it.
	Input   int64 `json:"input,omitempty"`
	Cached  int64 `json:"cached,omitempty"`
	Written int64 `json:"written,omitempty"`
	Output  int64 `json:"output,omitempty"`
	// ToolTokens estimates the part of Input that was tools, AllToolTokens the size of all tools.
	ToolTokens    int64 `json:"tools,omitempty"`
	AllToolTokens int64 `json:"all,omitempty"`
	// Searches counts web searches.
	Searches int64 `json:"searches,omitempty"`
	// Money is the cost of the calls with a known price; Unpriced counts the others.
	Money    USD   `json:"money,omitempty"`
	Unpriced int64 `json:"unpriced,omitempty"`
}

// Tokens returns the tokens that count against a limit: input, including cached, and output.
func (s Usage) Tokens() int64 { return s.Input + s.Output }

// SavedTokens returns the estimated tokens of the tools that were not sent.
func (s Usage) SavedTokens() int64 { return max(s.AllToolTokens-s.ToolTokens, 0) }

func (s Usage) plus(t Usage) Usage { return s.add(t, 1) }

func (s Usage) minus(t Usage) Usage { return s.add(t, -1) }

// add returns s plus n times t.
func (s Usage) add(t Usage, n int64) Usage {
	return Usage{
		Calls: s.Calls + n*t.Calls, Input: s.Input + n*t.Input, Cached: s.Cached + n*t.Cached, Written: s.Written + n*t.Written,
		Output: s.Output + n*t.Output, ToolTokens: s.ToolTokens + n*t.ToolTokens, AllToolTokens: s.AllToolTokens + n*t.AllToolTokens,
		Searches: s.Searches + n*t.Searches, Money: s.Money + USD(n)*t.Money, Unpriced: s.Unpriced + n*t.Unpriced,
	}
}

// Limit bounds an account. A zero amount means no limit.
type Limit struct {
	Tokens int64 `json:"tokens,omitempty"`
	Money  USD   `json:"money,omitempty"`
}

// Limits are the limits of all accounts.
type Limits struct {
	// User, Chat and Total are the daily limits of each user, of each chat, and of all users.
	User, Chat, Total Limit
	// Month is the monthly limit of all users.
	Month Limit
}

func (l Limits) forKind(k Kind) Limit {
	switch k {
	case KindUser:
		return l.User
	case KindChat:
		return l.Chat
	case kindTotal:
		return l.Total
	case KindMonth:
		return l.Month
	}
	return Limit{}
}

// Kind is the kind of an account.
type Kind string

// The kinds of accounts that can have limits; see [KindModel] for the others.
const (
	KindUser  Kind = "user"
	KindChat  Kind = "chat"
	kindTotal Kind = "total"
	KindMonth Kind = "month"
)

func kinds() []Kind { return []Kind{KindUser, KindChat, kindTotal, KindMonth} }

// Account is an account that calls are charged to. Name is the user (platform:id), the chat, the
// model or the tool group. It is empty for the accounts of all users.
type Account struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name,omitempty"`
}

// describeOwner describes the owner of the account, as "them" for the given user.
func (a Account) describeOwner(user string) string {
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

// Payer identifies the accounts that a call is charged to.
type Payer struct {
	// User is platform:id, Chat as in toolgroups.Scope.
	User string
	Chat string
	// Limit is a daily limit of this user; zero means none. The lower of it and the common limit counts.
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
	Amount  Limit     `json:"by"`
	User    string    `json:"who"`
	Time    time.Time `json:"time"`
	// Key identifies the raise: a second one with the same key has no effect. It may be empty.
	Key string `json:"key,omitempty"`
}

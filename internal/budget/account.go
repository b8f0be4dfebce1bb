package budget

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/price"
)

// Sum is what calls used.
type Sum struct {
	Calls int64 `json:"calls,omitempty"`
	// Input counts all input tokens; Cached of them were read from the provider's cache,
	// Written were written to it.
	Input   int64 `json:"input,omitempty"`
	Cached  int64 `json:"cached,omitempty"`
	Written int64 `json:"written,omitempty"`
	Output  int64 `json:"output,omitempty"`
	// Tools estimates what of Input was tools, All what all tools would have been.
	Tools int64 `json:"tools,omitempty"`
	All   int64 `json:"all,omitempty"`
	// Money is what the calls cost that have a price; Unpriced counts the others.
	Money    price.USD `json:"money,omitempty"`
	Unpriced int64     `json:"unpriced,omitempty"`
}

// Tokens is what counts against a limit of tokens: input, the cached included, and output.
func (s Sum) Tokens() int64 { return s.Input + s.Output }

// Saved is how many tokens the tools that were not sent would have been.
func (s Sum) Saved() int64 { return max(s.All-s.Tools, 0) }

func (s Sum) plus(t Sum) Sum {
	return Sum{
		Calls: s.Calls + t.Calls, Input: s.Input + t.Input, Cached: s.Cached + t.Cached, Written: s.Written + t.Written,
		Output: s.Output + t.Output, Tools: s.Tools + t.Tools, All: s.All + t.All,
		Money: s.Money + t.Money, Unpriced: s.Unpriced + t.Unpriced,
	}
}

// Limit bounds an account; a zero is no bound.
type Limit struct {
	Tokens int64     `json:"tokens,omitempty"`
	Money  price.USD `json:"money,omitempty"`
}

func (l Limit) plus(m Limit) Limit {
	return Limit{Tokens: l.Tokens + m.Tokens, Money: l.Money + m.Money}
}

// Limits are the bounds of all accounts.
type Limits struct {
	// User, Chat and Total bound a day: of each user, of each chat, of all together.
	User, Chat, Total Limit
	// Month bounds a month of all together.
	Month Limit
}

func (l Limits) none() bool { return l == Limits{} }

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

// Kind is what an account is kept of.
type Kind string

// The kinds of accounts.
const (
	KindUser  Kind = "user"
	KindChat  Kind = "chat"
	KindTotal Kind = "total"
	KindMonth Kind = "month"
)

func kinds() []Kind { return []Kind{KindUser, KindChat, KindTotal, KindMonth} }

// Account is what calls are charged to. Name is the user (platform:id) or the chat; empty
// for the accounts of all together.
type Account struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name,omitempty"`
}

// Whose says in words whose account it is, where a user is talked about.
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

// Payer is on whose behalf a call is made.
type Payer struct {
	// User is platform:id, Chat as in toolgroups.Scope.
	User string
	Chat string
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

// Raise is more budget for one account, until its day or month ends.
type Raise struct {
	Account Account   `json:"account"`
	By      Limit     `json:"by"`
	Who     string    `json:"who"`
	Time    time.Time `json:"time"`
	// Key identifies it: the same raise again changes nothing.
	Key string `json:"key,omitempty"`
}

// hold is a reservation.
type hold struct {
	User    string    `json:"user"`
	Chat    string    `json:"chat"`
	Tokens  int64     `json:"tokens"`
	Money   price.USD `json:"money,omitempty"`
	Expires time.Time `json:"expires"`
}

// total is what a chat has used since it began.
type total struct {
	Sum
	Last string `json:"last"` // day
}

// maxTotals bounds the chats whose totals are kept: those unused for longest are
// forgotten first, at the end of a day.
const maxTotals = 5000

// state is what the log of a day comes to.
type state struct {
	Day    string           `json:"day"`
	All    Sum              `json:"all"`
	Month  Sum              `json:"month"` // the day's month, the day included
	Users  map[string]Sum   `json:"users,omitempty"`
	Chats  map[string]Sum   `json:"chats,omitempty"`
	Totals map[string]total `json:"totals,omitempty"`
	Raises []Raise          `json:"raises,omitempty"`
	Open   map[string]hold  `json:"open,omitempty"`
}

func newState(day string) *state {
	s := &state{Day: day}
	s.fill()
	return s
}

// fill makes the maps that an empty record leaves out.
func (s *state) fill() {
	if s.Users == nil {
		s.Users = map[string]Sum{}
	}
	if s.Chats == nil {
		s.Chats = map[string]Sum{}
	}
	if s.Totals == nil {
		s.Totals = map[string]total{}
	}
	if s.Open == nil {
		s.Open = map[string]hold{}
	}
}

// next is the state with which another day begins.
func (s *state) next(day string) *state {
	n := newState(day)
	maps.Copy(n.Open, s.Open)
	if month(day) == month(s.Day) {
		n.Month = s.Month
		for _, r := range s.Raises {
			if r.Account.Kind == KindMonth {
				n.Raises = append(n.Raises, r)
			}
		}
	}
	chats := make([]string, 0, len(s.Totals))
	for chat := range s.Totals {
		chats = append(chats, chat)
	}
	slices.SortFunc(chats, func(a, b string) int {
		return cmp.Or(-cmp.Compare(s.Totals[a].Last, s.Totals[b].Last), cmp.Compare(a, b))
	})
	for _, chat := range chats[:min(len(chats), maxTotals)] {
		n.Totals[chat] = s.Totals[chat]
	}
	return n
}

func month(day string) string { return day[:min(len(day), len("2006-01"))] }

// spent is what an account has used, held what is reserved for it.
func (s *state) spent(a Account) Sum {
	switch a.Kind {
	case KindUser:
		return s.Users[a.Name]
	case KindChat:
		return s.Chats[a.Name]
	case KindTotal:
		return s.All
	case KindMonth:
		return s.Month
	}
	return Sum{}
}

func (s *state) held(a Account, now time.Time) Limit {
	var sum Limit
	for _, h := range s.Open {
		theirs := Payer{User: h.User, Chat: h.Chat}.account(a.Kind)
		if theirs == a && now.Before(h.Expires) {
			sum = sum.plus(Limit{Tokens: h.Tokens, Money: h.Money})
		}
	}
	return sum
}

func (s *state) raised(a Account) Limit {
	var sum Limit
	for _, r := range s.Raises {
		if r.Account == a {
			sum = sum.plus(r.By)
		}
	}
	return sum
}

// limit is what bounds an account now.
func (s *state) limit(limits Limits, a Account) Limit {
	l, more := limits.of(a.Kind), s.raised(a)
	if l.Tokens > 0 {
		l.Tokens += more.Tokens
	}
	if l.Money > 0 {
		l.Money += more.Money
	}
	return l
}

// admit refuses a call of a payer where an account has reached its limit.
func (s *state) admit(limits Limits, payer Payer, now time.Time) *Refusal {
	for _, k := range kinds() {
		a := payer.account(k)
		limit := s.limit(limits, a)
		if limit == (Limit{}) {
			continue
		}
		spent, held := s.spent(a), s.held(a, now)
		tokens := limit.Tokens > 0 && spent.Tokens()+held.Tokens >= limit.Tokens
		money := limit.Money > 0 && spent.Money+held.Money >= limit.Money
		if tokens || money {
			return &Refusal{
				Account: a, Spent: spent, Limit: limit, Base: limits.of(k), Money: money,
				Held: money && spent.Money < limit.Money || !money && spent.Tokens() < limit.Tokens,
			}
		}
	}
	return nil
}

// event is what a record of the log says.
type event struct {
	Kind  eventKind `json:"kind"`
	ID    string    `json:"id,omitempty"`
	Hold  *hold     `json:"hold,omitempty"`
	Payer *Payer    `json:"payer,omitempty"`
	Sum   *Sum      `json:"sum,omitempty"`
	Raise *Raise    `json:"raise,omitempty"`
	Move  *move     `json:"move,omitempty"`
	State *state    `json:"state,omitempty"`
	Time  time.Time `json:"time"`
}

// move is a chat that goes on under another name, with its threads.
type move struct{ From, To string }

// of returns the new name of a chat, and false where it stays.
func (m move) of(chat string) (string, bool) {
	thread, ok := strings.CutPrefix(chat, m.From)
	if !ok || thread != "" && thread[0] != ':' {
		return chat, false
	}
	return m.To + thread, true
}

type eventKind string

const (
	eventReserve eventKind = "reserve"
	eventSettle  eventKind = "settle"
	eventRaise   eventKind = "raise"
	eventMove    eventKind = "move"
	eventState   eventKind = "state"
)

// apply does what a record says. It depends on nothing else.
func (s *state) apply(e event) {
	switch e.Kind {
	case eventReserve:
		for id, h := range s.Open {
			if !e.Time.Before(h.Expires) {
				delete(s.Open, id)
			}
		}
		s.Open[e.ID] = *e.Hold
	case eventSettle:
		delete(s.Open, e.ID)
		if e.Sum != nil {
			s.charge(*e.Payer, *e.Sum)
		}
	case eventRaise:
		if e.Raise.Key == "" || !slices.ContainsFunc(s.Raises, func(r Raise) bool { return r.Key == e.Raise.Key }) {
			s.Raises = append(s.Raises, *e.Raise)
		}
	case eventMove:
		s.move(*e.Move)
	case eventState:
		*s = *e.State
		s.fill()
	}
}

// move gives the accounts of a chat to the one as which it goes on. Done again it changes
// nothing.
func (s *state) move(m move) {
	for chat, sum := range maps.Clone(s.Chats) {
		if to, ok := m.of(chat); ok {
			delete(s.Chats, chat)
			s.Chats[to] = s.Chats[to].plus(sum)
		}
	}
	for chat, t := range maps.Clone(s.Totals) {
		if to, ok := m.of(chat); ok {
			delete(s.Totals, chat)
			s.Totals[to] = total{s.Totals[to].plus(t.Sum), max(s.Totals[to].Last, t.Last)}
		}
	}
	for i, r := range s.Raises {
		if r.Account.Kind == KindChat {
			s.Raises[i].Account.Name, _ = m.of(r.Account.Name)
		}
	}
	for id, h := range s.Open {
		h.Chat, _ = m.of(h.Chat)
		s.Open[id] = h
	}
}

func (s *state) charge(p Payer, sum Sum) {
	s.All, s.Month = s.All.plus(sum), s.Month.plus(sum)
	s.Users[p.User] = s.Users[p.User].plus(sum)
	s.Chats[p.Chat] = s.Chats[p.Chat].plus(sum)
	s.Totals[p.Chat] = total{s.Totals[p.Chat].plus(sum), s.Day}
}

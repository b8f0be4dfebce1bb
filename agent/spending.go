package agent

import (
	"slices"
	"sync"
)

// Spent counts what calls tell the authors of the addresses that they open without asking.
type Spent struct {
	// Opened counts the addresses that no person wrote. Composed counts those of them that the model put
	// together, and Letters the letters that it chose in them.
	Opened, Composed, Letters int `json:",omitempty"`
}

// Plus returns the sum.
func (s Spent) Plus(o Spent) Spent {
	return Spent{s.Opened + o.Opened, s.Composed + o.Composed, s.Letters + o.Letters}
}

// Spending adds up what the calls of a turn spend. It may be used concurrently; nil has spent nothing and
// records nothing.
type Spending struct {
	mu    sync.Mutex
	total Spent
	calls map[string]Spent // of the newest reply, by id
}

// NewSpending returns what the turn at the end of a history has spent so far, according to its results, and to
// its question for those that were left out.
func NewSpending(history []Message) *Spending {
	s := &Spending{calls: make(map[string]Spent)}
	newest := true
	for _, m := range slices.Backward(history) {
		newest = newest && m.Role != RoleAssistant
		if m.Role == RoleTool && newest {
			s.calls[m.CallID] = m.Spent
		}
		s.total = s.total.Plus(m.Spent)
		if m.BeginsTurn() {
			break
		}
	}
	return s
}

// beginReply forgets which calls have spent what, because the calls of the next reply may have the same ids.
func (s *Spending) beginReply() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.calls)
}

// Charge adds what price returns for a call, given what was spent before. It adds nothing after an error, which
// it returns.
func (s *Spending) Charge(call string, price func(before Spent) (Spent, error)) error {
	if s == nil {
		_, err := price(Spent{})
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cost, err := price(s.total)
	if err == nil {
		s.total, s.calls[call] = s.total.Plus(cost), s.calls[call].Plus(cost)
	}
	return err
}

// Of returns what a call of the newest reply has spent, and what the turn has.
func (s *Spending) Of(call string) (own, total Spent) {
	if s == nil {
		return own, total
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call], s.total
}

package wire

import (
	"math/rand/v2"
	"slices"
)

// Chance says which of the calls that a fault matches it befalls.
type Chance struct {
	// Nth is the only matching call, counted from 1. 0 means any.
	Nth int
	// Times is how often the fault fires at most. 0 means without end.
	Times int
	// Probability lets chance decide. 0 means always.
	Probability float64
}

// Faults are the rules for misbehaving in force, each a value of F. They are not safe
// for concurrent use.
type Faults[F any] struct {
	rand  *rand.Rand
	rules []*rule[F]
	next  int
}

type rule[F any] struct {
	fault  F
	chance Chance
	id     int
	seen   int
	fired  int
}

// NewFaults makes an empty set, with the source of its chances.
func NewFaults[F any](chances *rand.Rand) *Faults[F] {
	return &Faults[F]{rand: chances}
}

// Add adds a fault and returns its number.
func (f *Faults[F]) Add(fault F, chance Chance) int {
	f.next++
	f.rules = append(f.rules, &rule[F]{fault: fault, chance: chance, id: f.next})
	return f.next
}

// Remove takes a fault back and says how often it fired. 0 removes all.
func (f *Faults[F]) Remove(id int) int {
	fired := 0
	f.rules = slices.DeleteFunc(f.rules, func(r *rule[F]) bool {
		if id != 0 && r.id != id {
			return false
		}
		fired += r.fired
		return true
	})
	return fired
}

// Fired says how often a fault fired.
func (f *Faults[F]) Fired(id int) int {
	for _, r := range f.rules {
		if r.id == id {
			return r.fired
		}
	}
	return 0
}

// Fire returns the fault that a call meets: of those that match it, the first that
// fires. Nil means none.
func (f *Faults[F]) Fire(match func(*F) bool) *F {
	for _, r := range f.rules {
		if !match(&r.fault) {
			continue
		}
		r.seen++
		if r.chance.Nth != 0 && r.chance.Nth != r.seen || r.chance.Times != 0 && r.fired >= r.chance.Times {
			continue
		}
		if r.chance.Probability > 0 && f.rand.Float64() >= r.chance.Probability {
			continue
		}
		r.fired++
		met := r.fault
		return &met
	}
	return nil
}

package toolgroups

import (
	"cmp"
	"slices"
	"sync"
)

// Set is what one conversation can use: the tools of the registry that is current
// and the groups it has loaded, in first-load order. It may be used concurrently.
type Set struct {
	current func() *Registry

	mu      sync.Mutex
	tickets int
	loaded  []loaded // sorted by ticket
}

// loaded is a group with the turn at which it was asked for, so that parallel
// loads end up in the order of the calls and not of their ends.
type loaded struct {
	name   string
	ticket int
}

// NewSet makes the set of a conversation. current returns the registry that is in
// force, never nil; groups are the names loaded so far in first-load order, as
// restored from its history. Names that no registry has are kept and yield no
// tools. With the names of all groups the set offers everything from the start.
func NewSet(current func() *Registry, groups []string) *Set {
	s := &Set{current: current}
	for _, name := range groups {
		s.add(name, s.ticket())
	}
	return s
}

// Loaded returns the names of the loaded groups in first-load order.
func (s *Set) Loaded() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, len(s.loaded))
	for i, l := range s.loaded {
		names[i] = l.name
	}
	return names
}

// ticket returns the next place in the order of loads.
func (s *Set) ticket() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tickets++
	return s.tickets
}

// add enters a group at its ticket. A group that is there keeps its earlier place.
func (s *Set) add(name string, ticket int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.loaded, func(l loaded) bool { return l.name == name })
	if i < 0 {
		s.loaded = append(s.loaded, loaded{name, ticket})
	} else {
		s.loaded[i].ticket = min(s.loaded[i].ticket, ticket)
	}
	slices.SortStableFunc(s.loaded, func(a, b loaded) int { return cmp.Compare(a.ticket, b.ticket) })
}

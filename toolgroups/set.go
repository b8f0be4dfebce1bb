package toolgroups

import (
	"cmp"
	"slices"
	"sync"
)

// Set holds the tools that one conversation can use: the current registry and the groups loaded by
// the conversation, in first-load order. It may be used concurrently.
type Set struct {
	current func() *Registry

	mu      sync.Mutex
	tickets int
	loaded  []loadedGroup // sorted by ticket
}

// loadedGroup is a group with the ticket of its load, so that parallel loads keep the order of the
// calls.
type loadedGroup struct {
	name   string
	ticket int
}

// NewSet returns the set of a conversation. current returns the current registry, never nil;
// groups are the loaded names in first-load order, as restored from its history. Unknown names
// are kept and yield no tools. With the names of all groups, the set offers all tools from the
// start.
func NewSet(current func() *Registry, groups []string) *Set {
	s := &Set{current: current}
	for _, name := range groups {
		s.add(name, s.nextTicket())
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

// nextTicket returns the next place in the order of loads.
func (s *Set) nextTicket() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tickets++
	return s.tickets
}

// add records a group under its ticket. A loaded group keeps its earlier place.
func (s *Set) add(name string, ticket int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.loaded, func(l loadedGroup) bool { return l.name == name })
	if i < 0 {
		s.loaded = append(s.loaded, loadedGroup{name, ticket})
	} else {
		s.loaded[i].ticket = min(s.loaded[i].ticket, ticket)
	}
	slices.SortStableFunc(s.loaded, func(a, b loadedGroup) int { return cmp.Compare(a.ticket, b.ticket) })
}

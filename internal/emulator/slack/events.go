package slack

import (
	"net/http"
	"sync"
)

// Kinds of events.
const (
	EventMessage  = "message"
	EventEdit     = "edit"
	EventDelete   = "delete"
	EventReaction = "reaction"
	EventStatus   = "status"
	EventEnvelope = "envelope"
	EventAck      = "ack"
	EventLost     = "lost"
	EventSocket   = "socket"
	EventCall     = "call"
	EventFault    = "fault"
	EventCut      = "cut"
)

// Event is something that happened.
type Event struct {
	// Kind is one of the Event constants.
	Kind string `json:"kind"`
	// Channel, Message and Envelope name what it happened to, where there is such.
	Channel  string `json:"channel,omitempty"`
	Message  string `json:"message,omitempty"`
	Envelope string `json:"envelope,omitempty"`
	// Text is the status, the kind of an envelope, the payload of an ack, the method
	// of a call, the effect of a fault, or open or closed.
	Text string `json:"text,omitempty"`
	// Snapshot is the message after the event.
	Snapshot *Message `json:"snapshot,omitempty"`
	// Missed counts the events lost just before this one, because the subscriber
	// did not keep up.
	Missed int `json:"missed,omitempty"`
}

// watch is who looks on. Guarded by Server.mu.
type watch struct {
	change      chan struct{}
	subscribers map[*subscriber]struct{}
	calls       map[string]int
	cuts        int
}

type subscriber struct {
	events chan Event
	missed int
}

func newWatch() watch {
	return watch{subscribers: map[*subscriber]struct{}{}, calls: map[string]int{}}
}

// changed wakes those who wait for a condition.
func (w *watch) changed() {
	if w.change != nil {
		close(w.change)
		w.change = nil
	}
}

func (w *watch) close() {
	w.changed()
	for sub := range w.subscribers {
		close(sub.events)
	}
	clear(w.subscribers)
}

// emit tells everyone who looks on. A message is shown as it is now.
func (s *Server) emit(e Event, c *channel, m *message) {
	s.changed()
	if len(s.subscribers) == 0 {
		return
	}
	if m != nil {
		shown := s.observed(c, m)
		e.Snapshot = &shown
	}
	for sub := range s.subscribers {
		e.Missed = sub.missed
		select {
		case sub.events <- e:
			sub.missed = 0
		default:
			sub.missed++
		}
	}
}

// Subscribe returns the events from now on. At most buffer of them wait; what does
// not fit is dropped and counted in the next one. The channel is closed by cancel,
// which must be called, and by [Server.Close].
func (s *Server) Subscribe(buffer int) (events <-chan Event, cancel func()) {
	sub := &subscriber{events: make(chan Event, max(buffer, 1))}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Closed() {
		close(sub.events)
		return sub.events, func() {}
	}
	s.subscribers[sub] = struct{}{}
	return sub.events, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, ok := s.subscribers[sub]; ok {
			delete(s.subscribers, sub)
			close(sub.events)
		}
	})
}

// maxMethods bounds the names counted, which a client could make up.
const maxMethods = 200

// count notes a call and the fault it met.
func (s *Server) count(name, channel string, f *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.calls[name]; known || len(s.calls) < maxMethods {
		s.calls[name]++
	}
	s.emit(Event{Kind: EventCall, Channel: channel, Text: name}, nil, nil)
	if f != nil {
		s.emit(Event{Kind: EventFault, Channel: channel, Text: string(f.Effect)}, nil, nil)
	}
}

var _ http.Handler = (*Server)(nil)

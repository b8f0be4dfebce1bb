package delivery

import "encoding/json"

// Envelope is an envelope sent to the app.
type Envelope struct {
	ID string `json:"id"`
	// Kind is events_api, slash_commands or interactive. Event is the id of the event.
	Kind  string `json:"kind"`
	Event string `json:"event,omitempty"`
	// State is Waiting, Delivered, Acked or Lost.
	State string `json:"state"`
	// Deliveries and Acks are the numbers of deliveries and of acknowledgements.
	Deliveries int `json:"deliveries"`
	Acks       int `json:"acks"`
	// Answer is the payload of the acknowledgement.
	Answer json.RawMessage `json:"answer,omitempty"`
}

// State is a view of a line while the lock is held.
type State struct{ l *Line }

// State returns the state of the line.
func (l *Line) State() State { return State{l} }

// Envelope returns the envelope with the given id.
func (st State) Envelope(id string) (Envelope, bool) {
	e := st.l.envelopes[id]
	if e == nil {
		return Envelope{}, false
	}
	return Envelope{
		ID: e.id, Kind: e.kind, Event: e.event, State: e.state, Deliveries: e.deliveries, Acks: e.acks, Answer: e.answer,
	}, true
}

// AllAcked reports whether the app has acknowledged all the given envelopes.
func (st State) AllAcked(ids ...string) bool {
	for _, id := range ids {
		if e := st.l.envelopes[id]; e == nil || e.state != Acked {
			return false
		}
	}
	return true
}

// UnackedCount returns the number of unacknowledged envelopes, including lost ones.
func (st State) UnackedCount() int {
	n := 0
	for _, e := range st.l.sequence {
		if e.state != Acked {
			n++
		}
	}
	return n
}

// ActiveSockets returns the number of open sockets, without frozen ones.
func (st State) ActiveSockets() int {
	n := 0
	for _, k := range st.l.sockets {
		if !k.frozen {
			n++
		}
	}
	return n
}

// OpenSockets returns the number of open sockets, including frozen ones.
func (st State) OpenSockets() int { return len(st.l.sockets) }

// OpenedSockets returns the number of sockets opened so far, including closed ones.
func (st State) OpenedSockets() int { return st.l.openedSockets }

package delivery

import "encoding/json"

// Envelope is an envelope sent to the app.
type Envelope struct {
	ID string `json:"id"`
	// Kind is events_api, slash_commands or interactive; Event the id of the event.
	Kind  string `json:"kind"`
	Event string `json:"event,omitempty"`
	// State is Waiting, Delivered, Acked or Lost.
	State string `json:"state"`
	// Deliveries counts its deliveries, Acks its acknowledgements.
	Deliveries int `json:"deliveries"`
	Acks       int `json:"acks"`
	// Answer is the payload of the acknowledgement.
	Answer json.RawMessage `json:"answer,omitempty"`
}

// State is a view of a line while the lock is held.
type State struct{ l *Line }

// State returns the state of the line.
func (l *Line) State() State { return State{l} }

// Envelope returns an envelope.
func (st State) Envelope(id string) (Envelope, bool) {
	e := st.l.envelopes[id]
	if e == nil {
		return Envelope{}, false
	}
	return Envelope{
		ID: e.id, Kind: e.kind, Event: e.event, State: e.state, Deliveries: e.attempt, Acks: e.acks, Answer: e.answer,
	}, true
}

// Acked reports whether the app has acknowledged all these envelopes.
func (st State) Acked(ids ...string) bool {
	for _, id := range ids {
		if e := st.l.envelopes[id]; e == nil || e.state != Acked {
			return false
		}
	}
	return true
}

// Undelivered counts the unacknowledged envelopes, including lost ones.
func (st State) Undelivered() int {
	n := 0
	for _, e := range st.l.sequence {
		if e.state != Acked {
			n++
		}
	}
	return n
}

// Sockets counts the open sockets, without frozen ones.
func (st State) Sockets() int {
	n := 0
	for _, k := range st.l.sockets {
		if !k.frozen {
			n++
		}
	}
	return n
}

// Connected counts the open sockets, including frozen ones.
func (st State) Connected() int { return len(st.l.sockets) }

// Opened counts all sockets that were ever open.
func (st State) Opened() int { return st.l.opened }

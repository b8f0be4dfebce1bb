// Package delivery delivers Slack's events to the app. It sends them in envelopes over one of the app's
// sockets, or posts them with a signature, and repeats them if they are not acknowledged. It knows
// users and channels only by their ids.
//
// The methods of a [Line] require the emulator's lock, unless they say otherwise. [Control] is for
// tests and takes the lock itself.
package delivery

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"oneclaw/internal/emulator/wire"
)

// Kinds of envelopes.
const (
	KindEvent       = "events_api"
	KindCommand     = "slash_commands"
	KindInteractive = "interactive"
)

// Kinds of events.
const (
	EventEnvelope = "envelope"
	EventAck      = "ack"
	EventLost     = "lost"
	EventSocket   = "socket"
)

// TraceEvent is an event of the delivery, for observers.
type TraceEvent struct{ Kind, Channel, Message, Envelope, Text string }

// Settings configure a [Line].
type Settings struct {
	// EventsURL, if set, is the URL to which signed events are posted, instead of using sockets.
	EventsURL string
	// AckTimeout is how long an envelope may stay unacknowledged: 3 s
	// (docs.slack.dev/apis/events-api, section "Responding to events").
	AckTimeout time.Duration
	// RetryDelays are the delays between deliveries. After the last delivery the event is lost.
	RetryDelays []time.Duration
	// PingInterval is the interval of pings on sockets.
	PingInterval time.Duration
	// MaxEnvelopes bounds the stored envelopes.
	MaxEnvelopes int
}

// Config configures a [Line]. All fields are required.
type Config struct {
	Settings
	// AppID is the app's id. Secret signs the requests that are posted to the app.
	AppID, Secret string
	// Mu is the emulator's lock.
	Mu     *sync.Mutex
	Life   *wire.Lifecycle
	Faults *wire.Faults[string]
	// Rand is the source for choosing sockets.
	Rand *rand.Rand
	Now  func() time.Time
	Log  *slog.Logger
	// Emit sends an event to observers. Wake announces a change without an event. Both are called with
	// the lock held.
	Emit func(TraceEvent)
	Wake func()
	// Intercept applies a fault to a handshake, and reports whether the request is over. It locks Mu.
	Intercept func(w http.ResponseWriter, r *http.Request) bool
	// OnCommandAnswer handles the app's immediate answer to a command. It is called with the lock held.
	OnCommandAnswer func(channel string, command, answer json.RawMessage)
}

// States of an envelope.
const (
	// Waiting: no socket is open, or the next delivery is due later.
	Waiting = "waiting"
	// Delivered: sent to the app, and not acknowledged.
	Delivered = "delivered"
	// Acked: acknowledged.
	Acked = "acked"
	// Lost: given up after the last retry.
	Lost = "lost"
)

type envelope struct {
	id, kind, event string
	channel         string
	payload         json.RawMessage
	state           string
	deliveries      int // number of deliveries so far
	socket          *socket
	timer           *time.Timer
	acks            int
	answer          json.RawMessage
}

// stopTimer stops waiting for an acknowledgement.
func (e *envelope) stopTimer() {
	if e.socket != nil {
		delete(e.socket.pending, e)
	}
	if e.timer != nil {
		e.timer.Stop()
	}
}

// wireEnvelope is an envelope in the form in which it is sent over a socket.
type wireEnvelope struct {
	EnvelopeID             string          `json:"envelope_id"`
	Payload                json.RawMessage `json:"payload"`
	Type                   string          `json:"type"`
	AcceptsResponsePayload bool            `json:"accepts_response_payload"`
	RetryAttempt           *int            `json:"retry_attempt,omitempty"`
	RetryReason            *string         `json:"retry_reason,omitempty"`
}

// Parcel is a payload for the app.
type Parcel struct {
	Kind string
	// Channel, Message and Event are the ids of the payload's subject, if any.
	Channel, Message, Event string
	Payload                 any
}

// Line delivers envelopes to the app.
type Line struct {
	cfg    Config
	client *http.Client // posts events

	// Guarded by cfg.Mu.
	tickets       map[string]bool
	sockets       []*socket
	openedSockets int
	envelopes     map[string]*envelope
	sequence      []*envelope
	waiting       []*envelope
	lastNumber    int
}

// New returns a line without sockets.
func New(cfg Config) *Line {
	return &Line{
		cfg: cfg, client: &http.Client{Timeout: cfg.AckTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 32}},
		tickets: map[string]bool{}, envelopes: map[string]*envelope{},
	}
}

// NextNumber returns the next number for the ids of events and envelopes.
func (l *Line) NextNumber() int {
	l.lastNumber++
	return l.lastNumber
}

// Push puts a payload into an envelope and sends it. It returns the id of the envelope, or "" if the
// payload cannot be encoded.
func (l *Line) Push(p Parcel) (id string) {
	data, err := json.Marshal(p.Payload)
	if err != nil {
		l.cfg.Log.Error("cannot encode Slack payload", "err", err)
		return ""
	}
	n := l.NextNumber()
	e := &envelope{
		id: fmt.Sprintf("e%07d-0000-4000-8000-%012d", n, n), kind: p.Kind, event: p.Event, channel: p.Channel, payload: data, state: Waiting,
	}
	l.envelopes[e.id] = e
	l.sequence = append(l.sequence, e)
	if len(l.sequence) > l.cfg.MaxEnvelopes {
		l.discard(l.sequence[0])
		l.sequence[0] = nil
		l.sequence = l.sequence[1:]
	}
	l.cfg.Emit(TraceEvent{Kind: EventEnvelope, Channel: e.channel, Message: p.Message, Envelope: e.id, Text: p.Kind})
	l.dispatch(e)
	return e.id
}

func (l *Line) discard(e *envelope) {
	delete(l.envelopes, e.id)
	e.stopTimer()
	if e.state != Acked {
		e.state = Lost
	}
}

// dispatch applies the faults of an envelope and delivers it to a random socket
// (docs.slack.dev/apis/events-api/using-socket-mode). Without a socket, the envelope waits for
// one.
func (l *Line) dispatch(e *envelope) {
	if l.cfg.Life.Closed() || e.state == Acked || e.state == Lost {
		return
	}
	if l.cfg.EventsURL == "" && len(l.sockets) == 0 {
		e.state = Waiting
		l.waiting = append(l.waiting, e)
		return
	}
	f := l.cfg.Faults.Fire("envelope", e.channel)
	if f == nil {
		l.deliver(e)
		return
	}
	l.cfg.Emit(TraceEvent{Kind: wire.EventFault, Channel: e.channel, Text: string(f.Effect), Envelope: e.id})
	if f.Delay > 0 {
		e.state = Waiting
		e.timer = l.afterFunc(f.Delay, func() { l.deliverFaulty(e, f.Effect) })
		return
	}
	l.deliverFaulty(e, f.Effect)
}

// deliverFaulty delivers an envelope with the effect of a fault.
func (l *Line) deliverFaulty(e *envelope, effect wire.Effect) {
	switch effect {
	case wire.Hang: // never sent, but its timeout runs
		l.markDelivered(e, nil)
	case wire.Duplicate:
		l.deliver(e)
		l.deliver(e)
	case wire.CutBefore:
		l.breakSocket(e)
		l.deliver(e)
	case wire.CutAfter:
		l.deliver(e)
		l.breakSocket(e)
	default:
		l.deliver(e)
	}
}

// breakSocket breaks the socket of an envelope, or a random one.
func (l *Line) breakSocket(e *envelope) {
	k := e.socket
	if k == nil && len(l.sockets) > 0 {
		k = l.sockets[l.cfg.Rand.IntN(len(l.sockets))]
	}
	if k != nil {
		l.breakConn(k)
	}
}

func (l *Line) deliver(e *envelope) {
	if l.cfg.EventsURL != "" {
		l.markDelivered(e, nil)
		l.postEnvelope(e)
		return
	}
	if len(l.sockets) == 0 {
		e.state = Waiting
		l.waiting = append(l.waiting, e)
		return
	}
	k := l.chooseSocket()
	l.markDelivered(e, k)
	w := wireEnvelope{EnvelopeID: e.id, Payload: e.payload, Type: e.kind, AcceptsResponsePayload: e.kind != KindEvent}
	if e.kind == KindEvent {
		attempt, reason := e.deliveries-1, ""
		if attempt > 0 {
			reason = "timeout"
		}
		w.RetryAttempt, w.RetryReason = &attempt, &reason
	}
	k.send(w)
}

// chooseSocket returns a random socket. It prefers those that were not asked to disconnect.
func (l *Line) chooseSocket() *socket {
	staying := slices.DeleteFunc(slices.Clone(l.sockets), func(k *socket) bool { return k.disconnecting })
	if len(staying) == 0 {
		staying = l.sockets
	}
	return staying[l.cfg.Rand.IntN(len(staying))]
}

// markDelivered marks an envelope as delivered, and starts the timeout of its acknowledgement.
func (l *Line) markDelivered(e *envelope, k *socket) {
	e.stopTimer()
	e.state, e.socket = Delivered, k
	e.deliveries++
	if k != nil {
		k.pending[e] = struct{}{}
	}
	attempt := e.deliveries
	e.timer = l.afterFunc(l.cfg.AckTimeout, func() {
		if e.deliveries == attempt && e.state == Delivered {
			l.handleFailure(e)
		}
	})
}

// handleFailure schedules the next delivery of an envelope, or gives it up. Assumed: button presses
// are not repeated, because the page on interactivity mentions no retries.
func (l *Line) handleFailure(e *envelope) {
	e.stopTimer()
	e.socket = nil
	tried := e.deliveries - 1
	if tried >= len(l.cfg.RetryDelays) || e.kind == KindInteractive { // the service shows the user an error
		e.state = Lost
		l.cfg.Emit(TraceEvent{Kind: EventLost, Channel: e.channel, Envelope: e.id})
		return
	}
	e.state = Waiting
	l.cfg.Wake()
	if wait := l.cfg.RetryDelays[tried]; wait > 0 {
		e.timer = l.afterFunc(wait, func() { l.dispatch(e) })
		return
	}
	l.dispatch(e)
}

// afterFunc runs f after d with the lock held, unless the server is closed by then.
func (l *Line) afterFunc(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() {
		l.cfg.Mu.Lock()
		defer l.cfg.Mu.Unlock()
		if !l.cfg.Life.Closed() {
			f()
		}
	})
}

// handleAck records an acknowledgement.
func (l *Line) handleAck(id string, payload json.RawMessage) {
	e := l.envelopes[id]
	if e == nil {
		return
	}
	e.acks++
	if e.state != Acked {
		e.state, e.answer = Acked, payload
		e.stopTimer()
	}
	if e.kind == KindCommand && e.acks == 1 {
		l.cfg.OnCommandAnswer(e.channel, e.payload, payload)
	}
	l.cfg.Emit(TraceEvent{Kind: EventAck, Channel: e.channel, Envelope: e.id, Text: string(payload)})
}

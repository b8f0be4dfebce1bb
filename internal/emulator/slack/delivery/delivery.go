// Package delivery delivers Slack's events to the app: in envelopes, over one of its sockets or
// posted to it, signed, and again if they are not acknowledged. It knows only ids of users and
// channels.
//
// The methods of a [Line] need the emulator's lock, unless they say otherwise. [Control] is for
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
	// EventsURL, if set, is where events are posted, signed, instead of over sockets.
	EventsURL string
	// AckTimeout bounds how long an envelope may stay unacknowledged: 3 s
	// (docs.slack.dev/apis/events-api, responding to events).
	AckTimeout time.Duration
	// Retry are the pauses between deliveries; after the last the event is lost.
	Retry []time.Duration
	// Ping is the interval of pings on sockets.
	Ping time.Duration
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
	// Chances chooses sockets.
	Chances *rand.Rand
	Now     func() time.Time
	Log     *slog.Logger
	// Emit passes an event to observers, Changed reports a smaller change. Both are called with the
	// lock held.
	Emit    func(TraceEvent)
	Changed func()
	// Meet applies a fault to a handshake, and reports whether that was all. It takes the lock.
	Meet func(w http.ResponseWriter, r *http.Request) bool
	// Answered handles the app's immediate answer to a command, with the lock held.
	Answered func(channel string, command, answer json.RawMessage)
}

// States of an envelope.
const (
	// Waiting: no socket is open, or its next delivery is due later.
	Waiting = "waiting"
	// Delivered: written to a socket and not acknowledged.
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
	attempt         int // deliveries so far
	socket          *socket
	timer           *time.Timer
	acks            int
	answer          json.RawMessage
}

// settle stops waiting for an acknowledgement.
func (e *envelope) settle() {
	if e.socket != nil {
		delete(e.socket.pending, e)
	}
	if e.timer != nil {
		e.timer.Stop()
	}
}

// wireEnvelope is an envelope as sent over a socket.
type wireEnvelope struct {
	EnvelopeID     string          `json:"envelope_id"`
	Payload        json.RawMessage `json:"payload"`
	Type           string          `json:"type"`
	AcceptsPayload bool            `json:"accepts_response_payload"`
	RetryAttempt   *int            `json:"retry_attempt,omitempty"`
	RetryReason    *string         `json:"retry_reason,omitempty"`
}

// Parcel is a payload for the app.
type Parcel struct {
	Kind string
	// Channel, Message and Event are the ids of its subject, if any.
	Channel, Message, Event string
	Payload                 any
}

// Line delivers envelopes to the app.
type Line struct {
	cfg    Config
	client *http.Client // posts events

	// Guarded by cfg.Mu.
	tickets   map[string]bool
	sockets   []*socket
	opened    int
	envelopes map[string]*envelope
	sequence  []*envelope
	waiting   []*envelope
	numbered  int
}

// New makes a line without sockets.
func New(cfg Config) *Line {
	return &Line{
		cfg: cfg, client: &http.Client{Timeout: cfg.AckTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 32}},
		tickets: map[string]bool{}, envelopes: map[string]*envelope{},
	}
}

// Number returns the next number for ids of events and envelopes.
func (l *Line) Number() int {
	l.numbered++
	return l.numbered
}

// Push puts a payload into an envelope, sends it and returns its id, or "" if the payload cannot
// be encoded.
func (l *Line) Push(p Parcel) (id string) {
	data, err := json.Marshal(p.Payload)
	if err != nil {
		l.cfg.Log.Error("payload not encoded", "err", err)
		return ""
	}
	n := l.Number()
	e := &envelope{
		id: fmt.Sprintf("e%07d-0000-4000-8000-%012d", n, n), kind: p.Kind, event: p.Event, channel: p.Channel, payload: data, state: Waiting,
	}
	l.envelopes[e.id] = e
	l.sequence = append(l.sequence, e)
	if len(l.sequence) > l.cfg.MaxEnvelopes {
		l.forget(l.sequence[0])
		l.sequence[0] = nil
		l.sequence = l.sequence[1:]
	}
	l.cfg.Emit(TraceEvent{Kind: EventEnvelope, Channel: e.channel, Message: p.Message, Envelope: e.id, Text: p.Kind})
	l.dispatch(e)
	return e.id
}

func (l *Line) forget(e *envelope) {
	delete(l.envelopes, e.id)
	e.settle()
	if e.state != Acked {
		e.state = Lost
	}
}

// dispatch delivers an envelope to a random socket
// (docs.slack.dev/apis/events-api/using-socket-mode), after applying its faults, or leaves it
// waiting.
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
		e.timer = l.after(f.Delay, func() { l.spoil(e, f.Effect) })
		return
	}
	l.spoil(e, f.Effect)
}

// spoil delivers an envelope with the effect of a fault.
func (l *Line) spoil(e *envelope, effect wire.Effect) {
	switch effect {
	case wire.Hang: // lost on the way; only its timeout runs
		l.sent(e, nil)
	case wire.Duplicate:
		l.deliver(e)
		l.deliver(e)
	case wire.CutBefore:
		l.cutSocket(e)
		l.deliver(e)
	case wire.CutAfter:
		l.deliver(e)
		l.cutSocket(e)
	default:
		l.deliver(e)
	}
}

// cutSocket breaks the socket of an envelope, or a random one.
func (l *Line) cutSocket(e *envelope) {
	k := e.socket
	if k == nil && len(l.sockets) > 0 {
		k = l.sockets[l.cfg.Chances.IntN(len(l.sockets))]
	}
	if k != nil {
		l.drop(k)
	}
}

func (l *Line) deliver(e *envelope) {
	if l.cfg.EventsURL != "" {
		l.sent(e, nil)
		l.post(e)
		return
	}
	if len(l.sockets) == 0 {
		e.state = Waiting
		l.waiting = append(l.waiting, e)
		return
	}
	k := l.choose()
	l.sent(e, k)
	w := wireEnvelope{EnvelopeID: e.id, Payload: e.payload, Type: e.kind, AcceptsPayload: e.kind != KindEvent}
	if e.kind == KindEvent {
		attempt, reason := e.attempt-1, ""
		if attempt > 0 {
			reason = "timeout"
		}
		w.RetryAttempt, w.RetryReason = &attempt, &reason
	}
	k.send(w)
}

// choose returns a socket that was not asked to leave, if possible.
func (l *Line) choose() *socket {
	staying := slices.DeleteFunc(slices.Clone(l.sockets), func(k *socket) bool { return k.leaving })
	if len(staying) == 0 {
		staying = l.sockets
	}
	return staying[l.cfg.Chances.IntN(len(staying))]
}

// sent starts the timeout of an acknowledgement.
func (l *Line) sent(e *envelope, k *socket) {
	e.settle()
	e.state, e.socket = Delivered, k
	e.attempt++
	if k != nil {
		k.pending[e] = struct{}{}
	}
	attempt := e.attempt
	e.timer = l.after(l.cfg.AckTimeout, func() {
		if e.attempt == attempt && e.state == Delivered {
			l.failed(e)
		}
	})
}

// failed schedules the next delivery of an envelope, or gives it up. Assumed: button presses are
// not sent again, as the page about interactivity mentions no retries.
func (l *Line) failed(e *envelope) {
	e.settle()
	e.socket = nil
	tried := e.attempt - 1
	if tried >= len(l.cfg.Retry) || e.kind == KindInteractive { // the user is told that it failed
		e.state = Lost
		l.cfg.Emit(TraceEvent{Kind: EventLost, Channel: e.channel, Envelope: e.id})
		return
	}
	e.state = Waiting
	l.cfg.Changed()
	if wait := l.cfg.Retry[tried]; wait > 0 {
		e.timer = l.after(wait, func() { l.dispatch(e) })
		return
	}
	l.dispatch(e)
}

// after runs f with the lock held, unless the server is closed by then.
func (l *Line) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() {
		l.cfg.Mu.Lock()
		defer l.cfg.Mu.Unlock()
		if !l.cfg.Life.Closed() {
			f()
		}
	})
}

// acked records an acknowledgement.
func (l *Line) acked(id string, payload json.RawMessage) {
	e := l.envelopes[id]
	if e == nil {
		return
	}
	e.acks++
	if e.state != Acked {
		e.state, e.answer = Acked, payload
		e.settle()
	}
	if e.kind == KindCommand && e.acks == 1 {
		l.cfg.Answered(e.channel, e.payload, payload)
	}
	l.cfg.Emit(TraceEvent{Kind: EventAck, Channel: e.channel, Envelope: e.id, Text: string(payload)})
}

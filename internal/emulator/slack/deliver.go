package slack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kinds of envelopes.
const (
	kindEvent       = "events_api"
	kindCommand     = "slash_commands"
	kindInteractive = "interactive"
)

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

// wires is what leads to the app. Guarded by Server.mu.
type wires struct {
	tickets    map[string]bool
	sockets    []*socket
	nextSocket int
	envelopes  map[string]*envelope
	sequence   []*envelope
	waiting    []*envelope
	nextEvent  int
	strayAcks  int
}

func newWires() wires {
	return wires{tickets: map[string]bool{}, envelopes: map[string]*envelope{}}
}

func (s *Server) hasScope(scope string) bool {
	return slices.Contains(s.scopes, scope)
}

// hears says whether the app gets the messages of a channel.
func (s *Server) hears(c *channel) bool {
	return s.hasScope(kindScope(c.kind, "history")) && s.subscribed(messageEvents[c.kind])
}

// mentions says whether a text calls the bot.
func (s *Server) mentions(text string) bool {
	at := "<@" + s.cfg.BotUser
	return strings.Contains(text, at+">") || strings.Contains(text, at+"|")
}

// tell makes the events of a new message where the app gets them: one for a
// mention and one for the message, in either order.
//
// The fields are those of docs.slack.dev/reference/events/message and …/app_mention; that
// the order of the two is open is assumed.
func (s *Server) tell(c *channel, m *message) Sent {
	sent := Sent{Channel: c.id, TS: m.ts}
	if !c.botIn {
		return sent
	}
	w := *s.wire(m)
	w.ReplyCount, w.ReplyUsers, w.LatestReply = 0, nil, ""
	e := wireEvent{wireMessage: w, Channel: c.id, EventTS: m.ts}
	called := s.mentions(m.text) && c.kind != DM && !m.bot && s.hasScope("app_mentions:read") && s.subscribed("app_mention")
	call := e
	call.Type, call.Subtype, call.ParentUserID = "app_mention", "", ""
	first := s.rand.IntN(2) == 0
	if called && first {
		sent = s.event(c, "", call, sent)
	}
	if s.hears(c) {
		e.ChannelType = c.kind
		if m.broadcast && m.parent != nil {
			e.Root = s.wire(m.parent)
		}
		sent = s.event(c, "", e, sent)
	}
	if called && !first {
		sent = s.event(c, "", call, sent)
	}
	return sent
}

func (s *Server) tellChanged(c *channel, m *message, before *wireMessage) Sent {
	e := wireEvent{Hidden: true, Message: s.wire(m), Previous: before}
	e.Subtype = "message_changed"
	return s.tellHidden(c, m, e)
}

// tellHidden makes the event of something that happened to a message.
func (s *Server) tellHidden(c *channel, m *message, e wireEvent) Sent {
	sent := Sent{Channel: c.id, TS: m.ts}
	if !c.botIn || !s.hears(c) {
		return sent
	}
	e.Type, e.Channel, e.ChannelType = "message", c.id, c.kind
	e.TS = s.stamp()
	e.EventTS = e.TS
	return s.event(c, "", e, sent)
}

// event wraps an inner event and sends it to the app.
func (s *Server) event(c *channel, team string, inner any, sent Sent) Sent {
	if team == "" {
		team = s.cfg.Team
	}
	s.nextEvent++
	id := fmt.Sprintf("Ev0E%07d", s.nextEvent)
	sent.Events = append(sent.Events, id)
	return s.push(c, kindEvent, wireOuter{
		Token: "verification", TeamID: team, APIAppID: AppID, Event: inner, Type: "event_callback", EventID: id,
		EventTime: s.cfg.Now().Unix(), EventContext: "4-" + id, IsExtShared: s.isShared(c),
		Authorizations: []map[string]any{{"team_id": team, "user_id": s.cfg.BotUser, "is_bot": true}},
	}, sent)
}

// push puts something into an envelope and sends it on its way.
func (s *Server) push(c *channel, kind string, payload any, sent Sent) Sent {
	data, err := json.Marshal(payload)
	if err != nil {
		s.log.Error("payload not encoded", "err", err)
		return sent
	}
	s.nextEvent++
	e := &envelope{
		id: fmt.Sprintf("e%07d-0000-4000-8000-%012d", s.nextEvent, s.nextEvent), kind: kind, payload: data, state: Waiting,
	}
	if c != nil {
		e.channel = c.id
	}
	if n := len(sent.Events); n > 0 {
		e.event = sent.Events[n-1]
	}
	s.envelopes[e.id] = e
	s.sequence = append(s.sequence, e)
	if len(s.sequence) > s.cfg.MaxEnvelopes {
		s.forget(s.sequence[0])
		s.sequence[0] = nil
		s.sequence = s.sequence[1:]
	}
	sent.Envelopes = append(sent.Envelopes, e.id)
	s.emit(Event{Kind: EventEnvelope, Chat: e.channel, Message: sent.TS, Text: kind, Update: e.id}, nil, nil)
	s.dispatch(e)
	return sent
}

func (s *Server) forget(e *envelope) {
	delete(s.envelopes, e.id)
	if e.timer != nil {
		e.timer.Stop()
	}
	if e.state != Acked {
		e.state = Lost
	}
}

// dispatch delivers an envelope to a socket chosen by chance
// (docs.slack.dev/apis/events-api/using-socket-mode), after the faults
// that it meets, or lets it wait for one.
func (s *Server) dispatch(e *envelope) {
	if s.life.Closed() || e.state == Acked || e.state == Lost {
		return
	}
	if s.cfg.EventsURL == "" && len(s.sockets) == 0 {
		e.state = Waiting
		s.waiting = append(s.waiting, e)
		return
	}
	f := s.Fire("envelope", e.channel)
	if f == nil {
		s.deliver(e)
		return
	}
	s.emit(Event{Kind: EventFault, Chat: e.channel, Text: string(f.Effect), Update: e.id}, nil, nil)
	if f.Delay > 0 {
		e.state = Waiting
		effect := f.Effect
		e.timer = s.after(f.Delay, func() { s.spoil(e, effect) })
		return
	}
	s.spoil(e, f.Effect)
}

// spoil delivers an envelope with the effect of a fault.
func (s *Server) spoil(e *envelope, effect Effect) {
	switch effect {
	case Hang: // lost on the way; only its time runs
		s.sent(e, nil)
	case Duplicate:
		s.deliver(e)
		s.deliver(e)
	case CutBefore:
		s.cutSocket(e)
		s.deliver(e)
	case CutAfter:
		s.deliver(e)
		s.cutSocket(e)
	default:
		s.deliver(e)
	}
}

// cutSocket breaks the socket of an envelope, or one of them.
func (s *Server) cutSocket(e *envelope) {
	k := e.socket
	if k == nil && len(s.sockets) > 0 {
		k = s.sockets[s.rand.IntN(len(s.sockets))]
	}
	if k != nil {
		s.drop(k)
	}
}

func (s *Server) deliver(e *envelope) {
	if s.cfg.EventsURL != "" {
		s.sent(e, nil)
		s.post(e)
		return
	}
	if len(s.sockets) == 0 {
		e.state = Waiting
		s.waiting = append(s.waiting, e)
		return
	}
	k := s.choose()
	s.sent(e, k)
	w := wireEnvelope{EnvelopeID: e.id, Payload: e.payload, Type: e.kind, AcceptsPayload: e.kind != kindEvent}
	if e.kind == kindEvent {
		attempt, reason := e.attempt-1, ""
		if attempt > 0 {
			reason = "timeout"
		}
		w.RetryAttempt, w.RetryReason = &attempt, &reason
	}
	k.send(w)
}

// choose picks a socket that has not been asked to go, where there is one.
func (s *Server) choose() *socket {
	var staying []*socket
	for _, k := range s.sockets {
		if !k.leaving {
			staying = append(staying, k)
		}
	}
	if len(staying) == 0 {
		staying = s.sockets
	}
	return staying[s.rand.IntN(len(staying))]
}

// sent starts the time in which an envelope has to be acknowledged.
func (s *Server) sent(e *envelope, k *socket) {
	if e.socket != nil {
		delete(e.socket.pending, e)
	}
	if e.timer != nil {
		e.timer.Stop()
	}
	e.state, e.socket = Delivered, k
	e.attempt++
	if k != nil {
		k.pending[e] = struct{}{}
	}
	attempt := e.attempt
	e.timer = s.after(s.cfg.AckTimeout, func() {
		if e.attempt == attempt && e.state == Delivered {
			s.failed(e)
		}
	})
}

// failed sends an envelope again when its time comes, or gives it up. That presses are not
// sent again is assumed: the page about interactivity names no retries.
func (s *Server) failed(e *envelope) {
	if e.socket != nil {
		delete(e.socket.pending, e)
		e.socket = nil
	}
	if e.timer != nil {
		e.timer.Stop()
	}
	tried := e.attempt - 1
	if tried >= len(s.cfg.Retry) || e.kind == kindInteractive { // whoever pressed is told that it failed
		e.state = Lost
		s.emit(Event{Kind: EventLost, Chat: e.channel, Update: e.id}, nil, nil)
		return
	}
	e.state = Waiting
	s.hub.Changed()
	if wait := s.cfg.Retry[tried]; wait > 0 {
		e.timer = s.after(wait, func() { s.dispatch(e) })
		return
	}
	s.dispatch(e)
}

// after runs f with the lock held, unless the server is closed by then.
func (s *Server) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.life.Closed() {
			f()
		}
	})
}

// acked notes an acknowledgement.
func (s *Server) acked(id string, payload json.RawMessage) {
	e := s.envelopes[id]
	if e == nil {
		s.strayAcks++
		s.hub.Changed()
		return
	}
	e.acks++
	if e.state != Acked {
		e.state, e.answer = Acked, payload
		if e.socket != nil {
			delete(e.socket.pending, e)
		}
		if e.timer != nil {
			e.timer.Stop()
		}
	}
	s.respond(e, payload)
	s.emit(Event{Kind: EventAck, Chat: e.channel, Update: e.id, Text: string(payload)}, nil, nil)
}

// Redeliver sends every envelope that is not acknowledged at once, as if the time
// of its next delivery had come, lost ones too.
func (s *Server) Redeliver() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = nil
	n := 0
	for _, e := range s.sequence {
		if e.state == Acked {
			continue
		}
		if e.timer != nil {
			e.timer.Stop()
		}
		e.state = Waiting
		n++
		s.dispatch(e)
	}
	return n
}

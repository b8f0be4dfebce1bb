package telegram

import (
	"net/http"

	"oneclaw/internal/emulator/wire"
)

// Effect is what a fault does to a call.
type Effect = wire.Effect

// The effects. Duplicate lets getUpdates deliver what it delivers once more at the next
// call, Conflict refuses with 409 as if another poller had come.
const (
	Slow            = wire.Slow
	TooManyRequests = wire.TooManyRequests
	ServerError     = wire.ServerError
	CutBefore       = wire.CutBefore
	CutAfter        = wire.CutAfter
	Hang            = wire.Hang
	Duplicate       = wire.Duplicate
	BadJSON         = wire.BadJSON

	Conflict Effect = "conflict"
)

// Fault is a rule for misbehaving. Downloads are the method "file".
type Fault = wire.Fault[int64]

// refuse answers a call that meets a fault as the service words it.
func refuse(w http.ResponseWriter, f *Fault) {
	if f.Effect == Conflict {
		writeError(w, errorf(409, conflictPoll))
		return
	}
	writeError(w, tooMany(max(f.RetryAfter, 1)))
}

// meet counts a call and does what a fault does to it before it is accepted. It reports
// whether that was all.
func (s *Server) meet(w http.ResponseWriter, r *http.Request, method string, chat int64) (met *Fault, over bool) {
	s.mu.Lock()
	s.hub.Count(method)
	s.emit(Event{Kind: EventCall, Chat: chat, Text: method}, nil, nil)
	if met = s.Fire(method, chat); met != nil {
		s.emit(Event{Kind: EventFault, Chat: chat, Text: string(met.Effect)}, nil, nil)
	}
	s.mu.Unlock()
	return met, s.Before(w, r, met)
}

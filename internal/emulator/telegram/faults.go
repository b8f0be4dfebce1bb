package telegram

import (
	"net/http"

	"oneclaw/internal/emulator/wire"
)

// Effect is what a fault does to a call.
type Effect = wire.Effect

// The effects. Duplicate makes getUpdates deliver its result again at the next call, Conflict
// refuses with 409 as if there were another poller.
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

// refuse answers a call that meets a fault, in the service's words.
func refuse(w http.ResponseWriter, f *Fault) {
	if f.Effect == Conflict {
		writeError(w, errorf(409, conflictPoll))
		return
	}
	writeError(w, tooMany(max(f.RetryAfter, 1)))
}

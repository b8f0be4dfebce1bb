package telegram

import (
	"net/http"

	"oneclaw/internal/emulator/wire"
)

// Effect is the effect of a fault on a call.
type Effect = wire.Effect

// The effects. Duplicate makes getUpdates deliver its result again at the next call. Conflict
// refuses a call with 409, as if there were another poller. Refuse refuses a call with 400 and Error.
const (
	Slow            = wire.Slow
	TooManyRequests = wire.TooManyRequests
	ServerError     = wire.ServerError
	CutBefore       = wire.CutBefore
	CutAfter        = wire.CutAfter
	Hang            = wire.Hang
	Duplicate       = wire.Duplicate
	BadJSON         = wire.BadJSON
	refuse          = wire.Refuse

	Conflict Effect = "conflict"
)

// Fault is a rule for injecting failures. Downloads are the method "file".
type Fault = wire.Fault[int64]

// refuseFault refuses a call because of a fault, with an error of the service.
func refuseFault(w http.ResponseWriter, f *Fault) {
	switch f.Effect {
	case Conflict:
		writeError(w, errorf(409, conflictPoll))
		return
	case refuse:
		writeError(w, badRequest("%s", f.Error)) // what the test gives
		return
	}
	writeError(w, tooManyRequests(max(f.RetryAfter, 1)))
}

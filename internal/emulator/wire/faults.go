package wire

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Effect is the effect of a fault on a call, or on another operation that the emulator names.
type Effect string

// The effects of every emulator.
const (
	// Slow only waits for Delay; every other effect may wait too.
	Slow Effect = "slow"
	// TooManyRequests refuses with 429 and RetryAfter.
	TooManyRequests Effect = "too_many_requests"
	// ServerError answers Status (default 502) with an HTML page.
	ServerError Effect = "server_error"
	// CutBefore breaks the connection before the call is accepted, or a socket before an envelope
	// is written.
	CutBefore Effect = "cut_before"
	// CutAfter accepts the call and breaks the connection instead of answering, or a socket after
	// an envelope was written.
	CutAfter Effect = "cut_after"
	// Hang never answers; it ends when the client disconnects. An envelope is lost.
	Hang Effect = "hang"
	// Duplicate delivers the updates of a poll, or an envelope, a second time.
	Duplicate Effect = "duplicate"
	// BadJSON accepts the call and answers with incomplete JSON.
	BadJSON Effect = "bad_json"
	// Refuse refuses the call with Error, in the form of the service.
	Refuse Effect = "refuse"
)

// Fault is a rule for injecting failures, in an emulator whose chats have ids of type K. Zero fields
// match everything.
type Fault[K comparable] struct {
	// Method is the name of a method, ignoring case, or another name that the emulator defines.
	Method string `json:"method"`
	// Chat is the chat or channel of the call.
	Chat K `json:"chat"`
	// Nth only fires on the nth matching call, counted from 1.
	Nth int `json:"nth"`
	// Times bounds how often the fault fires. 0 means no bound.
	Times int `json:"times"`
	// Probability is the probability of firing, seeded by the server. 0 means always.
	Probability float64 `json:"probability"`
	// Effect is required.
	Effect Effect `json:"effect"`
	// Delay precedes the effect.
	Delay time.Duration `json:"delay"`
	// Status is for ServerError, RetryAfter (seconds) for TooManyRequests, Error for Refuse.
	Status     int    `json:"status"`
	RetryAfter int    `json:"retry_after"`
	Error      string `json:"error"`
}

// Faults are the active faults. [Faults.Fire] must be called with the lock of the [Lifecycle] held,
// all other methods without it.
type Faults[K comparable] struct {
	life      *Lifecycle
	rand      *rand.Rand
	refuse    func(http.ResponseWriter, *Fault[K])
	ownEffect Effect
	exactOnly []string
	rules     []*rule[K]
	next      int
}

type rule[K comparable] struct {
	Fault[K]
	id      int
	matches int
	fired   int
}

// NewFaults returns an empty set with a random source. refuse answers calls whose fault has the effect
// [TooManyRequests], [Refuse] or own, the effect that only this emulator has; it may be empty. Calls with a name
// in apart match only faults that give this name.
func NewFaults[K comparable](life *Lifecycle, chances *rand.Rand, refuse func(http.ResponseWriter, *Fault[K]), own Effect, apart ...string) *Faults[K] {
	return &Faults[K]{life: life, rand: chances, refuse: refuse, ownEffect: own, exactOnly: apart}
}

// Inject adds a fault and returns its id. If several faults match a call, the first one that fires
// applies.
func (f *Faults[K]) Inject(fault Fault[K]) (int, error) {
	switch fault.Effect {
	case Slow, TooManyRequests, ServerError, CutBefore, CutAfter, Hang, Duplicate, BadJSON, Refuse, f.ownEffect:
	default:
		return 0, fmt.Errorf("%s: unknown effect %q", f.life.name, fault.Effect)
	}
	f.life.mu.Lock()
	defer f.life.mu.Unlock()
	f.next++
	f.rules = append(f.rules, &rule[K]{Fault: fault, id: f.next})
	return f.next, nil
}

// Remove removes a fault and returns how often it fired. The id 0 removes all faults.
func (f *Faults[K]) Remove(id int) int {
	f.life.mu.Lock()
	defer f.life.mu.Unlock()
	fired := 0
	f.rules = slices.DeleteFunc(f.rules, func(r *rule[K]) bool {
		if id != 0 && r.id != id {
			return false
		}
		fired += r.fired
		return true
	})
	return fired
}

// Fired returns how often a fault fired.
func (f *Faults[K]) Fired(id int) int {
	f.life.mu.Lock()
	defer f.life.mu.Unlock()
	for _, r := range f.rules {
		if r.id == id {
			return r.fired
		}
	}
	return 0
}

// Fire returns the first fault that matches a call and fires, or nil.
func (f *Faults[K]) Fire(method string, chat K) *Fault[K] {
	var none K
	for _, r := range f.rules {
		named := strings.EqualFold(r.Method, method) || r.Method == "" && !slices.Contains(f.exactOnly, method)
		if !named || r.Chat != none && r.Chat != chat {
			continue
		}
		r.matches++
		if r.Nth != 0 && r.Nth != r.matches || r.Times != 0 && r.fired >= r.Times {
			continue
		}
		if r.Probability > 0 && f.rand.Float64() >= r.Probability {
			continue
		}
		r.fired++
		met := r.Fault
		return &met
	}
	return nil
}

// applyBeforeCall applies a fault, which may be nil, before a call is accepted. It reports whether the
// call is finished.
func (f *Faults[K]) applyBeforeCall(w http.ResponseWriter, r *http.Request, met *Fault[K]) bool {
	if met == nil {
		return false
	}
	if met.Delay > 0 && !f.life.Sleep(r.Context(), met.Delay) {
		panic(http.ErrAbortHandler)
	}
	switch met.Effect {
	case TooManyRequests, Refuse, f.ownEffect:
		f.refuse(w, met)
	case ServerError:
		writeGatewayError(w, met.Status)
	case CutBefore:
		panic(http.ErrAbortHandler)
	case Hang:
		f.life.Sleep(r.Context(), 0)
		panic(http.ErrAbortHandler)
	default:
		return false
	}
	return true
}

// writeGatewayError writes the HTML error page of a proxy whose server does not answer.
func writeGatewayError(w http.ResponseWriter, status int) {
	if status < http.StatusBadRequest {
		status = http.StatusBadGateway
	}
	text := fmt.Sprintf("%d %s", status, http.StatusText(status))
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<html>\r\n<head><title>%[1]s</title></head>\r\n<body>\r\n"+
		"<center><h1>%[1]s</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n", text)
}

// runAction runs the control actions for faults. known is false for all other actions.
func (f *Faults[K]) runAction(act string, body *json.Decoder) (result any, known bool, err error) {
	switch act {
	case "faults":
		result, err = RunAction(body, "fault", func(fault Fault[K]) (any, error) {
			id, err := f.Inject(fault)
			return map[string]int{"id": id}, err
		})
	case "unfault":
		result, err = RunAction(body, "fault", func(fault struct{ ID int }) (any, error) {
			return map[string]int{"fired": f.Remove(fault.ID)}, nil
		})
	default:
		return nil, false, nil
	}
	return result, true, err
}

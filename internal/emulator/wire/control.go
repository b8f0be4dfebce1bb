package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Control is the control side of an emulator over HTTP, under /emulator/, for other processes
// and curl.
//
// Bodies must be application/json, which a foreign web page cannot send.
type Control[K comparable] struct {
	// MaxBody bounds the body of an action, in bytes.
	MaxBody int64
	// Messages returns what the query asks for once the bot has written so many answers. ctx ends
	// when the query does not want to wait any longer.
	Messages func(ctx context.Context, query url.Values, answers int) (any, error)
	// State returns the counters.
	State func() any
	// Faults handle the actions "faults", whose body is a [Fault] and whose result {"id": n}, and
	// "unfault", {"id": n} with the result {"fired": n}.
	Faults *Faults[K]
	// Act runs any other action with the arguments in the body.
	Act func(act string, body *json.Decoder) (any, error)
}

// ServeHTTP serves GET messages and GET state, and runs posted actions.
func (c *Control[K]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	act := strings.TrimPrefix(r.URL.Path, "/emulator/")
	var result any
	var err error
	switch {
	case r.Method == http.MethodGet && act == "messages":
		result, err = c.messages(r)
	case r.Method == http.MethodGet && act == "state":
		result = c.State()
	case r.Method != http.MethodPost:
		err = errors.New("unknown act")
	case !IsJSON(r):
		writeControl(w, http.StatusUnsupportedMediaType, map[string]string{"error": "content type must be application/json"})
		return
	default:
		body := json.NewDecoder(http.MaxBytesReader(w, r.Body, c.MaxBody))
		var known bool
		if result, known, err = c.Faults.act(act, body); !known {
			result, err = c.Act(act, body)
		}
	}
	if err != nil {
		writeControl(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	writeControl(w, http.StatusOK, result)
}

// messages waits for 1 to 600 seconds, as the query asks.
func (c *Control[K]) messages(r *http.Request) (any, error) {
	query := r.URL.Query()
	answers, _ := strconv.Atoi(query.Get("answers"))
	seconds, _ := strconv.Atoi(query.Get("seconds"))
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(min(max(seconds, 1), 600))*time.Second)
	defer cancel()
	return c.Messages(ctx, query, answers)
}

func writeControl(w http.ResponseWriter, status int, v any) {
	WriteJSON(w, status, "application/json", v)
}

// RunAct runs an action whose body is one value of type T; what names it in errors.
func RunAct[T any](body *json.Decoder, what string, run func(T) (any, error)) (any, error) {
	var v T
	if err := body.Decode(&v); err != nil {
		return nil, fmt.Errorf("decode %s: %w", what, err)
	}
	return run(v)
}

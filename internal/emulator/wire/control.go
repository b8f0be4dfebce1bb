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

// Control serves the control interface of an emulator over HTTP, under /emulator/, for other processes
// and curl.
//
// Bodies must be application/json, which a web page of another origin cannot send.
type Control[K comparable] struct {
	// MaxBody bounds the body of an action, in bytes.
	MaxBody int64
	// Messages returns the messages that the query selects, once the bot has written the given number of
	// answers. ctx expires after the query's timeout.
	Messages func(ctx context.Context, query url.Values, answers int) (any, error)
	// State returns the counters.
	State func() any
	// Faults handles the actions "faults", whose body is a [Fault] and whose result is {"id": n}, and
	// "unfault", whose body is {"id": n} and whose result is {"fired": n}.
	Faults *Faults[K]
	// RunAction runs any other action, with its arguments in the body.
	RunAction func(act string, body *json.Decoder) (any, error)
}

// ServeHTTP serves GET messages and GET state, and runs posted actions.
func (c *Control[K]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	act := strings.TrimPrefix(r.URL.Path, "/emulator/")
	var result any
	var err error
	switch {
	case r.Method == http.MethodGet && act == "messages":
		result, err = c.awaitMessages(r)
	case r.Method == http.MethodGet && act == "state":
		result = c.State()
	case r.Method != http.MethodPost:
		err = errors.New("unknown action")
	case !IsJSON(r):
		writeControl(w, http.StatusUnsupportedMediaType, map[string]string{"error": "content type must be application/json"})
		return
	default:
		body := json.NewDecoder(http.MaxBytesReader(w, r.Body, c.MaxBody))
		var known bool
		if result, known, err = c.Faults.runAction(act, body); !known {
			result, err = c.RunAction(act, body)
		}
	}
	if err != nil {
		writeControl(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	writeControl(w, http.StatusOK, result)
}

// awaitMessages waits for the messages, for as many seconds as the query says, from 1 to 600.
func (c *Control[K]) awaitMessages(r *http.Request) (any, error) {
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

// RunAction decodes the body of an action and passes it to run. A decoding error includes what.
func RunAction[T any](body *json.Decoder, what string, run func(T) (any, error)) (any, error) {
	var v T
	if err := body.Decode(&v); err != nil {
		return nil, fmt.Errorf("decode %s: %w", what, err)
	}
	return run(v)
}

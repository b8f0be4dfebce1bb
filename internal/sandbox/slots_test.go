package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"oneclaw/internal/sandbox"
)

// hold starts a script that runs until it is let go, and returns when it runs.
func hold(t *testing.T, e *sandbox.Engine, owner string) (release func()) {
	t.Helper()
	begun, over := make(chan struct{}), make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := e.Run(ctx, sandbox.Script{
			Source: `stay()`, Prelude: `({call}) => { globalThis.stay = () => call("stay", null) }`, Owner: owner,
			Functions: map[string]sandbox.Function{"stay": func(ctx context.Context, _ json.RawMessage) (any, error) {
				close(begun)
				<-ctx.Done()
				return nil, ctx.Err()
			}},
		})
		over <- err
	}()
	select {
	case <-begun:
	case err := <-over:
		t.Fatal(err)
	}
	return func() {
		cancel()
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Errorf("a script that was cancelled ended with %v", err)
		}
	}
}

func TestSlotsAreOfOneOwner(t *testing.T) {
	e, err := sandbox.NewEngine(sandbox.EngineConfig{Runs: 3, OwnerRuns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer hold(t, e, "a")()
	defer hold(t, e, "a")()
	if _, err := e.Run(t.Context(), sandbox.Script{Source: `1 + 1`, Owner: "a", MaxWait: 1}); !errors.Is(err, sandbox.ErrBusy) {
		t.Errorf("a third script of an owner ended with %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Run(ended, sandbox.Script{Source: `1 + 1`, Owner: "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("one that waits when its context ends, ended with %v", err)
	}
	if got, err := e.Run(t.Context(), sandbox.Script{Source: `1 + 1`, Owner: "b"}); err != nil || got != "2" {
		t.Errorf("another's script: %q, %v", got, err)
	}
}

// The time of a script begins when it runs.
func TestWaitingIsNotRunning(t *testing.T) {
	e, err := sandbox.NewEngine(sandbox.EngineConfig{Runs: 1})
	if err != nil {
		t.Fatal(err)
	}
	release := hold(t, e, "a")
	const limit = time.Minute
	var until time.Time
	got := make(chan error)
	go func() {
		_, err := e.Run(t.Context(), sandbox.Script{
			Source: `look()`, Prelude: `({call}) => { globalThis.look = () => call("look", null) }`, Owner: "b", Timeout: limit,
			Functions: map[string]sandbox.Function{"look": func(ctx context.Context, _ json.RawMessage) (any, error) {
				until, _ = ctx.Deadline()
				return nil, nil
			}},
		})
		got <- err
	}()
	freed := time.Now()
	release()
	if err := <-got; err != nil || until.Before(freed.Add(limit)) {
		t.Errorf("%v; the time was over at %v, freed at %v", err, until, freed)
	}
	if _, err := e.Run(t.Context(), sandbox.Script{Source: `for (;;);`, Timeout: 1}); !errors.Is(err, sandbox.ErrTimeout) {
		t.Errorf("a script without time ended with %v", err)
	}
}

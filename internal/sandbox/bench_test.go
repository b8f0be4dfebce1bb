package sandbox_test

import (
	"context"
	"encoding/json"
	"testing"

	"oneclaw/internal/sandbox"
)

// BenchmarkRun is a whole run: the start of the process, the engine, the end.
func BenchmarkRun(b *testing.B) {
	e := engine(b)
	for b.Loop() {
		if _, err := e.Run(b.Context(), sandbox.Script{Source: "1 + 1"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCall is one call of a function of the host, there and back.
func BenchmarkCall(b *testing.B) {
	e := engine(b)
	calls := 0
	script := sandbox.Script{
		Source:  "for (let i = 0; i < 1000; i++) probe(); 0",
		Prelude: `(host) => { globalThis.probe = () => host.call("probe") }`,
		Functions: map[string]sandbox.Function{"probe": func(context.Context, json.RawMessage) (any, error) {
			calls++
			return nil, nil
		}},
	}
	for b.Loop() {
		if _, err := e.Run(b.Context(), script); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(calls), "ns/call")
}

// BenchmarkStopRunaway is a run that is cancelled in a loop that nothing in its
// own process could stop, until nothing of it is left.
func BenchmarkStopRunaway(b *testing.B) {
	e := engine(b)
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		_, err := e.Run(ctx, sandbox.Script{
			Source:  `probe(); Array.prototype.includes.call({length: 2 ** 53 - 1}, 1)`,
			Prelude: `(host) => { globalThis.probe = () => host.call("probe") }`,
			Functions: map[string]sandbox.Function{"probe": func(context.Context, json.RawMessage) (any, error) {
				cancel()
				return nil, nil
			}},
		})
		cancel()
		if err == nil {
			b.Fatal("it ended")
		}
	}
}

package wire_test

import (
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/emulator/wire"
)

// newFaults are faults that "apart" meets only by name.
func newFaults(seed uint64) *wire.Faults[int] {
	life, _ := lifecycle()
	refuse := func(w http.ResponseWriter, _ *wire.Fault[int]) { w.WriteHeader(http.StatusTeapot) }
	return wire.NewFaults(life, rand.New(rand.NewPCG(seed, 0)), refuse, "own", "apart")
}

func inject(t *testing.T, f *wire.Faults[int], fault wire.Fault[int]) int {
	t.Helper()
	id, err := f.Inject(fault)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestFaultsFireWhenTheyShould(t *testing.T) {
	f := newFaults(1)
	second := inject(t, f, wire.Fault[int]{Chat: 7, Nth: 2, Effect: wire.Slow})
	twice := inject(t, f, wire.Fault[int]{Method: "Send", Times: 2, Effect: wire.Hang})
	inject(t, f, wire.Fault[int]{Method: "other", Effect: "own"})
	inject(t, f, wire.Fault[int]{Chat: 8, Effect: "own"})
	fire := func(method string) wire.Effect {
		if met := f.Fire(method, 7); met != nil {
			return met.Effect
		}
		return ""
	}
	got := []wire.Effect{fire("apart"), fire("send"), fire("send"), fire("send"), fire("send")}
	if diff := cmp.Diff([]wire.Effect{"", wire.Hang, wire.Slow, wire.Hang, ""}, got); diff != "" {
		t.Error(diff)
	}
	if f.Fired(second) != 1 || f.Fired(twice) != 2 || f.Remove(second) != 1 || f.Fired(second) != 0 || f.Remove(0) != 2 {
		t.Error("the counts are wrong")
	}
	if met := f.Fire("other", 7); met != nil {
		t.Errorf("%q fired after all were removed", met.Effect)
	}
	if _, err := f.Inject(wire.Fault[int]{Effect: "else"}); err == nil {
		t.Error("an unknown effect was taken")
	}
}

func TestFaultsByChanceAreRepeatable(t *testing.T) {
	run := func() (fired []bool) {
		f := newFaults(7)
		inject(t, f, wire.Fault[int]{Probability: 0.5, Effect: wire.Slow})
		for range 64 {
			fired = append(fired, f.Fire("send", 1) != nil)
		}
		return fired
	}
	first := run()
	if diff := cmp.Diff(first, run()); diff != "" {
		t.Error(diff)
	}
	n := 0
	for _, yes := range first {
		if yes {
			n++
		}
	}
	if n == 0 || n == len(first) {
		t.Errorf("fired %d of %d times", n, len(first))
	}
}

package wire_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/emulator/wire"
)

func TestFaultsFireWhenTheyShould(t *testing.T) {
	f := wire.NewFaults[string](rand.New(rand.NewPCG(1, 0)))
	second := f.Add("second", wire.Chance{Nth: 2})
	twice := f.Add("twice", wire.Chance{Times: 2})
	f.Add("other", wire.Chance{})
	fire := func() string {
		if met := f.Fire(func(s *string) bool { return *s != "other" }); met != nil {
			return *met
		}
		return ""
	}
	got := []string{fire(), fire(), fire(), fire()}
	if diff := cmp.Diff([]string{"twice", "second", "twice", ""}, got); diff != "" {
		t.Error(diff)
	}
	if f.Fired(second) != 1 || f.Fired(twice) != 2 || f.Remove(second) != 1 || f.Fired(second) != 0 || f.Remove(0) != 2 {
		t.Error("the counts are wrong")
	}
	if met := f.Fire(func(*string) bool { return true }); met != nil {
		t.Errorf("%q fired after all were removed", *met)
	}
}

func TestFaultsByChanceAreRepeatable(t *testing.T) {
	run := func() (fired []bool) {
		f := wire.NewFaults[string](rand.New(rand.NewPCG(7, 0)))
		f.Add("", wire.Chance{Probability: 0.5})
		for range 64 {
			fired = append(fired, f.Fire(func(*string) bool { return true }) != nil)
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

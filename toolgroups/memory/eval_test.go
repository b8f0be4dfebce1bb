package memory_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// sample is a fact with a question that it answers. Was, if set, is the fact whose place it took.
type sample struct {
	Half, Was, Fact, Question string
}

// recallFigures are shares: of the questions whose fact is the first or among the first three that are
// recalled, and of the recalled facts that are wrong, because they are outdated or another's.
type recallFigures struct{ First, FirstThree, Wrong float64 }

// measureRecall has a person and a chat remember facts, and asks for those of the person.
func measureRecall(t *testing.T, set []sample) (f recallFigures) {
	t.Helper()
	b := newBench(t, openStore(t))
	began := b.now() // of a conversation whose prompt has none of the facts
	isRight := map[string]bool{}
	for _, s := range set {
		if s.Was != "" {
			b.save(t, ada, "", s.Was)
		}
		b.save(t, "telegram:-7", "", s.Fact+", as all here know")
	}
	for _, s := range set {
		b.save(t, ada, "", s.Fact)
		isRight[s.Fact] = true
	}
	shown := 0.0
	for _, s := range set {
		notes, err := b.Recall(t.Context(), ada, s.Question, began)
		if err != nil {
			t.Fatal(err)
		}
		place := len(notes)
		for i, n := range notes {
			shown++
			if !isRight[n.Text] {
				f.Wrong++
				t.Logf("%q shows %q, which is wrong", s.Question, n.Text)
			}
			if n.Text == s.Fact {
				place = i
			}
		}
		if place == 0 && len(notes) > 0 {
			f.First++
		}
		if place < min(3, len(notes)) {
			f.FirstThree++
		} else {
			t.Logf("%q does not find %q", s.Question, s.Fact)
		}
	}
	share := func(n, of float64) float64 { return math.Round(1000*n/of) / 1000 }
	t.Logf("%.1f facts are shown for a question", shown/float64(len(set)))
	return recallFigures{share(f.First, float64(len(set))), share(f.FirstThree, float64(len(set))), share(f.Wrong, shown)}
}

func TestEval(t *testing.T) {
	data, err := os.ReadFile("testdata/recall.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []sample
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for half, want := range map[string]recallFigures{
		"open": {},
	} {
		var set []sample
		for _, s := range all {
			if s.Half == half {
				set = append(set, s)
			}
		}
		if got := measureRecall(t, set); got != want {
			t.Errorf("%s half: %+v, want %+v", half, got, want)
		}
	}
}

func TestXDev(t *testing.T) {
	for _, f := range []string{"A", "B", "C"} {
		data, _ := os.ReadFile("/tmp/" + f + ".json")
		var all []sample
		_ = json.Unmarshal(data, &all)
		t.Log(f, measureRecall(t, all))
	}
}

package memory_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// recallSet is a set of facts and questions. The open set was used to choose words and weights. The held
// set was written by an author who did not know the program, and opened once, when the ranking was done.
type recallSet struct {
	Recall []recallQuestion
	// Nothing are messages that no fact belongs to.
	Nothing []recallQuestion
}

type recallQuestion struct {
	Person, Question string
	// Fact answers the question. Was, if set, is the fact whose place it took.
	Fact, Was string
	// Not are the facts that would be wrong answers, by their index.
	Not []int
}

// recallFigures are shares: of the questions whose fact is the first or among the first three that are
// recalled, and of the recalled facts that are wrong: outdated, another person's, answers to something
// else, or recalled for a message that no fact belongs to.
type recallFigures struct{ First, FirstThree, Wrong float64 }

func measureRecall(t *testing.T, set recallSet) (f recallFigures) {
	t.Helper()
	b := newBench(t, openStore(t))
	began := b.now() // of a conversation whose prompt has none of the facts
	for i, q := range set.Recall {
		if q.Was != "" && (i == 0 || set.Recall[i-1].Fact != q.Fact) {
			b.save(t, q.Person, "", q.Was)
		}
	}
	for i, q := range set.Recall {
		if i == 0 || set.Recall[i-1].Fact != q.Fact {
			b.save(t, q.Person, "", q.Fact)
		}
	}
	shown := 0.0
	recall := func(person, question string, isWrong func(string) bool) []string {
		notes, err := b.Recall(t.Context(), person, question, began)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, n := range notes {
			shown++
			if isWrong(n.Text) {
				f.Wrong++
				t.Logf("%q shows %q, which is wrong", question, n.Text)
			}
			texts = append(texts, n.Text)
		}
		return texts
	}
	for _, q := range set.Recall {
		found := recall(q.Person, q.Question, func(text string) bool {
			isOwn := slices.ContainsFunc(set.Recall, func(one recallQuestion) bool { return one.Person == q.Person && one.Fact == text })
			return !isOwn || slices.ContainsFunc(q.Not, func(i int) bool { return set.Recall[i].Fact == text })
		})
		place := slices.Index(found, q.Fact)
		if place == 0 {
			f.First++
		}
		if place >= 0 && place < 3 {
			f.FirstThree++
		} else {
			t.Logf("%q does not find %q, but %q", q.Question, q.Fact, found)
		}
	}
	t.Logf("%.1f facts are shown for a question", shown/float64(len(set.Recall)))
	for _, q := range set.Nothing {
		recall(q.Person, q.Question, func(string) bool { return true })
	}
	share := func(n, of float64) float64 { return math.Round(1000*n/of) / 1000 }
	return recallFigures{share(f.First, float64(len(set.Recall))), share(f.FirstThree, float64(len(set.Recall))), share(f.Wrong, shown)}
}

func TestRecallFigures(t *testing.T) {
	for name, want := range map[string]recallFigures{
		"open": {First: 0.918, FirstThree: 0.935, Wrong: 0.042},
		"held": {First: 0.775, FirstThree: 0.775, Wrong: 0.154}, // as when it was opened
	} {
		data, err := os.ReadFile("testdata/recall-" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var set recallSet
		if err := json.Unmarshal(data, &set); err != nil {
			t.Fatal(err)
		}
		if got := measureRecall(t, set); got != want {
			t.Errorf("%s set: %+v, want %+v", name, got, want)
		}
	}
}

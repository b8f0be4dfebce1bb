package memory_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tiktoken-go/tokenizer"

	"oneclaw/toolgroups/memory"
)

// recallSet is a set of facts and questions. The held set was written by an author who did not know the
// program.
type recallSet struct {
	Recall []recallQuestion
	// Nothing are messages that no fact belongs to.
	Nothing []recallQuestion
}

type recallQuestion struct {
	Person, Question string
	// Fact answers the question. Was, if set, is the fact that it corrected.
	Fact, Was string
	// Not are the facts that would be wrong answers, by their index.
	Not []int
}

// personSet are facts of one person, the oldest first, and questions; Fact is 0 if none answers. It was
// written by an author who did not know the program.
type personSet struct {
	Facts []struct {
		ID   int
		Text string
	}
	Questions []struct {
		Q    string
		Fact int
	}
}

// recallFigures count what is recalled for messages.
type recallFigures struct {
	messages, answerable int
	inFront              int    // answerable ones whose fact the model sees
	beyond, found        int    // those whose fact is not in the snapshot, and those of them that are recalled
	picked, wrong, other int    // recalled facts, those that are wrong, and those that do not answer the question
	text                 string // of recalled facts
}

// ask counts what is recalled for a message. fact is "" if none belongs to it.
func (f *recallFigures) ask(t *testing.T, b *bench, person, message, fact string, began time.Time, isWrong func(string) bool) {
	t.Helper()
	notes, err := b.Notes(t.Context(), person)
	if err != nil {
		t.Fatal(err)
	}
	recalled, err := b.Recall(t.Context(), person, message, began)
	if err != nil {
		t.Fatal(err)
	}
	f.messages++
	isRecalled := false
	for _, n := range recalled {
		f.text += b.Line(n) + "\n"
		f.picked++
		isRecalled = isRecalled || n.Text == fact
		if n.Text != fact {
			f.other++
		}
		if isWrong(n.Text) {
			f.wrong++
			t.Logf("%q shows %q, which is wrong", message, n.Text)
		}
	}
	if fact == "" {
		return
	}
	isShown := strings.Contains(memory.Snapshot(notes, began)+"\n", "- "+fact+"\n")
	f.answerable++
	if isShown || isRecalled {
		f.inFront++
	}
	if !isShown {
		f.beyond++
		if isRecalled {
			f.found++
		} else {
			t.Logf("%q does not find %q, but %d others", message, fact, len(recalled))
		}
	}
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// check logs the figures, and compares them with the least share found and the greatest of wrong facts.
func (f *recallFigures) check(t *testing.T, found, wrong float64) {
	t.Helper()
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := codec.Count(f.text)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("in front of the model %.1f %% of %d; beyond the snapshot %.1f %% of %d; %d facts picked, %.1f %% wrong, %.1f %% no answer; %.1f tokens a message",
		percent(f.inFront, f.answerable), f.answerable, percent(f.found, f.beyond), f.beyond, f.picked, percent(f.wrong, f.picked), percent(f.other, f.picked), float64(tokens)/float64(f.messages))
	if percent(f.found, f.beyond) < found || percent(f.wrong, f.picked) > wrong {
		t.Errorf("found are %.1f %%, at least %.1f wanted; wrong are %.1f %%, at most %.1f wanted", percent(f.found, f.beyond), found, percent(f.wrong, f.picked), wrong)
	}
}

func readSet(t *testing.T, name string, set any) {
	t.Helper()
	data, err := os.ReadFile("testdata/recall-" + name + ".json")
	if err == nil {
		err = json.Unmarshal(data, set)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The model sees none of the facts but those that are recalled.
func TestFactsAreRecalledWithoutASnapshot(t *testing.T) {
	for name, bound := range map[string]struct{ found, wrong float64 }{"open": {71, 20}, "held": {80, 8}} {
		t.Run(name, func(t *testing.T) {
			var set recallSet
			readSet(t, name, &set)
			b := newBench(t, openStore(t))
			began := b.now()
			for i, q := range set.Recall {
				switch {
				case i > 0 && set.Recall[i-1].Fact == q.Fact:
				case q.Was != "":
					b.save(t, q.Person, "", q.Was)
					if _, _, err := b.Update(t.Context(), scopeOf(q.Person), q.Was, "", q.Fact, ""); err != nil {
						t.Fatal(err)
					}
				default:
					b.save(t, q.Person, "", q.Fact)
				}
			}
			var f recallFigures
			for _, q := range set.Recall {
				f.ask(t, b, q.Person, q.Question, q.Fact, began, func(text string) bool {
					isOwn := slices.ContainsFunc(set.Recall, func(one recallQuestion) bool { return one.Person == q.Person && one.Fact == text })
					return !isOwn || slices.ContainsFunc(q.Not, func(i int) bool { return set.Recall[i].Fact == text })
				})
			}
			for _, q := range set.Nothing {
				f.ask(t, b, q.Person, q.Question, "", began, func(string) bool { return true })
			}
			f.check(t, bound.found, bound.wrong)
		})
	}
}

// The snapshot has the newest facts of many, and others are recalled.
func TestFactsBeyondTheSnapshotAreRecalled(t *testing.T) {
	var set personSet
	readSet(t, "person", &set)
	b := newBench(t, openStore(t))
	facts := map[int]string{}
	for _, one := range set.Facts {
		facts[one.ID] = one.Text
		if _, _, err := b.Save(t.Context(), scopeOf(ada), "", one.Text, ""); err != nil {
			t.Fatal(err)
		}
	}
	var f recallFigures
	began := b.now()
	for _, q := range set.Questions {
		f.ask(t, b, ada, q.Q, facts[q.Fact], began, func(string) bool { return q.Fact == 0 })
	}
	f.check(t, 66, 8)
}

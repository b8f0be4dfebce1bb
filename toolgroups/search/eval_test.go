package search_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"oneclaw/toolgroups/search"
)

// evalFile has one query with its tool first, one with its second tool of two
// first, one without any answer.
const evalFile = `{"tools":[
	{"name":"weather_get","desc":"Current weather of a city.","params":["city"],"source":"meteo"},
	{"name":"train_book","desc":"Book a seat in a train.","params":["from","to"],"source":""},
	{"name":"train_list","desc":"List connections.","params":[],"source":""}],
	"queries":[
	{"q":"weather in Paris","gold":["weather_get"]},
	{"q":"book a seat","gold":["train_book","weather_get"]},
	{"q":"zzz","gold":["train_list"]}]}`

func TestEval(t *testing.T) {
	all, err := search.Eval(t.Context(), search.WordRanker{}, strings.NewReader(evalFile), "small.json", search.HalfAll, search.QuerySourceFile, false)
	if err != nil {
		t.Fatal(err)
	}
	r, third := all[0], 1.0/3
	ndcg := (1 + 1/(1+1/math.Log2(3))) / 3
	for name, pair := range map[string][2]float64{
		"recall@1": {r.RecallAt1, 0.5}, "recall@5": {r.RecallAt5, 0.5}, "recall@10": {r.RecallAt10, 0.5},
		"ndcg@10": {r.NDCGAt10, ndcg}, "empty": {r.EmptyShare, third},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
	if r.File != "small.json" || r.QueryCount != 3 || r.ToolCount != 3 || r.P99MS <= 0 {
		t.Errorf("got %+v", r)
	}
}

// Any ranking can be measured: the one by meaning finds what shares no word with the query.
func TestEvalOfAnotherRanking(t *testing.T) {
	const file = `{"tools":[{"name":"send","desc":"A letter to somebody."},{"name":"look","desc":"The sky above."}],
		"queries":[{"q":"telescope","gold":["look"]}]}`
	for want, ranker := range map[float64]search.Ranker{0: search.WordRanker{}, 1: hybrid(t, &topics{}, 100)} {
		all, err := search.Eval(t.Context(), ranker, strings.NewReader(file), "f", search.HalfAll, search.QuerySourceFile, false)
		if err != nil || all[0].RecallAt1 != want {
			t.Errorf("%T: %+v, %v, want %v", ranker, all, err, want)
		}
	}
}

// The queries made of the names are those with several words; what has no names is found
// by what it does.
func TestEvalAsksForNames(t *testing.T) {
	for asked, want := range map[search.QuerySource]float64{search.QuerySourceNames: 1, search.QuerySourceHidden: 1} {
		all, err := search.Eval(t.Context(), search.WordRanker{}, strings.NewReader(`{"tools":[
			{"name":"weather_get2","desc":"Current weather."},{"name":"getWeather","desc":"Weather of a city."},
			{"name":"train.book","desc":"Book a seat in a train."},{"name":"calculator","desc":"Adds."}],
			"queries":[{"q":"x","gold":["calculator"]}]}`), "f", search.HalfAll, asked, false)
		if err != nil || all[0].QueryCount != 3 || all[0].RecallAt5 != want || all[0].QuerySource != asked {
			t.Errorf("%s: %+v, %v", asked, all, err)
		}
	}
	if _, err := search.ParseQuerySource("some"); err == nil {
		t.Error("an unknown kind of queries is accepted")
	}
}

func TestEvalHalvesAreDisjoint(t *testing.T) {
	all, tuned, held := 0, 0, 0
	for half, n := range map[search.Half]*int{search.HalfAll: &all, search.HalfTuned: &tuned, search.HalfHeld: &held} {
		r, err := search.Eval(t.Context(), search.WordRanker{}, strings.NewReader(evalFile), "f", half, search.QuerySourceFile, false)
		if err != nil && !strings.Contains(err.Error(), "no queries") {
			t.Fatal(err)
		}
		if err == nil {
			*n = r[0].QueryCount
		}
	}
	if all != 3 || tuned+held != all {
		t.Errorf("%d queries, %d tuned, %d held", all, tuned, held)
	}
	if _, err := search.ParseHalf("third"); err == nil {
		t.Error("an unknown half is accepted")
	}
}

// The set of the repository asks for 30 tools in five languages. What is not in English finds little,
// and nearly all of its answers say that tools are described in English; those in English do not.
func TestEvalOfFiveLanguages(t *testing.T) {
	const file = "testdata/languages.json"
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	reports, err := search.Eval(t.Context(), search.WordRanker{}, f, file, search.HalfAll, search.QuerySourceFile, false)
	if err != nil || len(reports) != 6 {
		t.Fatalf("%d reports, %v", len(reports), err)
	}
	for _, r := range reports[1:] {
		t.Logf("%s: recall@5 %.3f, hinted %.3f", r.Language, r.RecallAt5, r.HintedShare)
		switch {
		case r.QueryCount != 30:
			t.Errorf("%s has %d queries", r.Language, r.QueryCount)
		case r.Language == "en" && (r.HintedShare > 0.1 || r.RecallAt5 < 0.8):
			t.Errorf("in English recall@5 is %.3f, and %.3f are told so", r.RecallAt5, r.HintedShare)
		case r.Language != "en" && r.HintedShare < 0.95:
			t.Errorf("%s: only %.3f are told to search in English", r.Language, r.HintedShare)
		}
	}
}

func TestEvalRefuses(t *testing.T) {
	for _, in := range []string{"", "[]", `{"tools":[]}`, `{"tools":[{"name":"a"}],"queries":[]}`, `{"tools":1}`} {
		if _, err := search.Eval(t.Context(), search.WordRanker{}, strings.NewReader(in), "bad.json", search.HalfAll, search.QuerySourceFile, false); err == nil || !strings.Contains(err.Error(), "bad.json") {
			t.Errorf("%q gives %v", in, err)
		}
	}
}

func TestEvalPrints(t *testing.T) {
	reports := []search.Report{{File: "a.json", Half: search.HalfHeld, ToolCount: 3, QueryCount: 2, RecallAt5: 0.5}, {File: "b.json"}}
	var text, lines bytes.Buffer
	if err := search.WriteText(&text, reports); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "recall@5") || !strings.Contains(text.String(), "0.500") || strings.Count(text.String(), "\n") != 3 {
		t.Errorf("got\n%s", text.String())
	}
	if err := search.WriteJSON(&lines, reports); err != nil {
		t.Fatal(err)
	}
	var first map[string]any
	if err := json.Unmarshal(bytes.SplitN(lines.Bytes(), []byte("\n"), 2)[0], &first); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"file", "recall_at_1", "recall_at_5", "recall_at_10", "ndcg_at_10", "empty", "p99_ms"} {
		if _, ok := first[key]; !ok {
			t.Errorf("%s is missing in %v", key, first)
		}
	}
}

package search

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// Variables of [TestRetrievalSets]: files of tools and queries, separated by commas, and which half of the
// queries is asked. The weights of the ranking were tuned on one half of some sets, by the lowest bit of the
// FNV-1a hash (32 bits) of the query: "tuned" is even, "held" is odd.
const (
	retrievalVariable = "TEST_ONECLAW_RETRIEVAL"
	halfVariable      = "TEST_ONECLAW_RETRIEVAL_HALF"
)

// retrievalSet is a file: tools, and queries with the names of the tools that are wanted.
type retrievalSet struct {
	Tools []struct {
		Name   string   `json:"name"`
		Desc   string   `json:"desc"`
		Params []string `json:"params"`
		Source string   `json:"source"`
	} `json:"tools"`
	Queries []struct {
		Query string   `json:"q"`
		Gold  []string `json:"gold"`
		Lang  string   `json:"lang"`
	} `json:"queries"`
}

// retrieval is what a ranking finds of a set. Shares are between 0 and 1.
type retrieval struct {
	File    string `json:"file"`
	Half    string `json:"half"`
	Tools   int    `json:"tools"`
	Queries int    `json:"queries"`
	// RecallAt1, RecallAt5 and RecallAt10 are the mean shares of the wanted tools among the first 1, 5 and 10
	// hits.
	RecallAt1  float64 `json:"recall_at_1"`
	RecallAt5  float64 `json:"recall_at_5"`
	RecallAt10 float64 `json:"recall_at_10"`
	NDCGAt10   float64 `json:"ndcg_at_10"`
	// Empty is the share of queries without hits, Hinted the share of those after which the model is told to
	// search in English.
	Empty  float64 `json:"empty"`
	Hinted float64 `json:"hinted"`
}

// rankFunc ranks the documents of an index for a query.
type rankFunc func(x *wordIndex, query string, limit int) ranking

// measureRetrieval measures a ranking on a set: the half of the queries in a language, or in all if lang is empty.
func measureRetrieval(rank rankFunc, set retrievalSet, half, lang string) (retrieval, error) {
	docs := make([]document, len(set.Tools))
	for i, t := range set.Tools {
		docs[i] = document{name: t.Name, description: t.Desc, parameters: t.Params, source: t.Source}
	}
	index, r := newIndex(docs), retrieval{Half: half, Tools: len(docs)}
	for _, q := range set.Queries {
		if !inHalf(half, q.Query) || len(q.Gold) == 0 || lang != "" && q.Lang != lang {
			continue
		}
		found := rank(index, q.Query, 10)
		var names []string
		for _, h := range found.hits {
			names = append(names, set.Tools[h.Doc].Name)
		}
		r.Queries++
		r.RecallAt1 += recallAt(names, q.Gold, 1)
		r.RecallAt5 += recallAt(names, q.Gold, 5)
		r.RecallAt10 += recallAt(names, q.Gold, 10)
		r.NDCGAt10 += ndcgAt10(names, q.Gold)
		if len(names) == 0 {
			r.Empty++
		}
		if found.weak || found.isForeignQuery || len(names) == 0 {
			r.Hinted++
		}
	}
	if r.Tools == 0 || r.Queries == 0 {
		return r, fmt.Errorf("%d tools and %d queries of this half", r.Tools, r.Queries)
	}
	for _, v := range []*float64{&r.RecallAt1, &r.RecallAt5, &r.RecallAt10, &r.NDCGAt10, &r.Empty, &r.Hinted} {
		*v /= float64(r.Queries)
	}
	return r, nil
}

func inHalf(half, query string) bool {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(query)) // a hash never fails
	return half == "all" || (half == "held") == (sum.Sum32()%2 == 1)
}

func recallAt(found, gold []string, k int) float64 {
	n := 0
	for _, g := range gold {
		if slices.Contains(found[:min(len(found), k)], g) {
			n++
		}
	}
	return float64(n) / float64(len(gold))
}

func ndcgAt10(found, gold []string) float64 {
	gain, ideal := 0.0, 0.0
	for i, name := range found[:min(len(found), 10)] {
		if slices.Contains(gold, name) {
			gain += 1 / math.Log2(float64(i)+2)
		}
	}
	for i := range min(len(gold), 10) {
		ideal += 1 / math.Log2(float64(i)+2)
	}
	return gain / ideal
}

func readSet(t *testing.T, file string) (set retrievalSet) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &set)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return set
}

// TestRetrievalSets prints what the ranking by words finds of the sets of tools and queries that
// TEST_ONECLAW_RETRIEVAL names, as one line of JSON for each.
func TestRetrievalSets(t *testing.T) {
	files := os.Getenv(retrievalVariable)
	if files == "" {
		t.Skipf("%s names no files", retrievalVariable)
	}
	half := os.Getenv(halfVariable)
	if half == "" {
		half = "all"
	}
	if !slices.Contains([]string{"all", "tuned", "held"}, half) {
		t.Fatalf("%s is %q, not all, tuned or held", halfVariable, half)
	}
	for file := range strings.SplitSeq(files, ",") {
		r, err := measureRetrieval((*wordIndex).search, readSet(t, file), half, "")
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		r.File = file
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(string(line)) //nolint:forbidigo // the result, for programs
	}
}

// smallSet has one query with its tool first, one with its second tool of two first, one without any answer.
const smallSet = `{"tools":[
	{"name":"weather_get","desc":"Current weather of a city.","params":["city"],"source":"meteo"},
	{"name":"train_book","desc":"Book a seat in a train.","params":["from","to"],"source":""},
	{"name":"train_list","desc":"List connections.","params":[],"source":""}],
	"queries":[
	{"q":"weather in Paris","gold":["weather_get"]},
	{"q":"book a seat","gold":["train_book","weather_get"]},
	{"q":"zzz","gold":["train_list"]}]}`

func setOf(t *testing.T, text string) (set retrievalSet) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		t.Fatal(err)
	}
	return set
}

func TestRetrievalIsMeasured(t *testing.T) {
	r, err := measureRetrieval((*wordIndex).search, setOf(t, smallSet), "all", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]float64{
		"recall@1": {r.RecallAt1, 0.5}, "recall@5": {r.RecallAt5, 0.5}, "recall@10": {r.RecallAt10, 0.5},
		"ndcg@10": {r.NDCGAt10, (1 + 1/(1+1/math.Log2(3))) / 3}, "empty": {r.Empty, 1.0 / 3},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
	queries := 0
	for _, half := range []string{"tuned", "held"} {
		if r, err := measureRetrieval((*wordIndex).search, setOf(t, smallSet), half, ""); err == nil {
			queries += r.Queries
		}
	}
	if r.Queries != 3 || queries != 3 {
		t.Errorf("%d queries, %d in the halves", r.Queries, queries)
	}
}

// The ranking by meaning finds what shares no word with the query.
func TestRankingByMeaningFindsOtherWords(t *testing.T) {
	const file = `{"tools":[{"name":"send","desc":"A letter to somebody."},{"name":"look","desc":"The sky above."}],
		"queries":[{"q":"telescope","gold":["look"]}]}`
	byMeaning := func(x *wordIndex, query string, limit int) ranking {
		return newTestHybrid(&topics{}, 100).search(t.Context(), x, query, limit)
	}
	for want, rank := range map[float64]rankFunc{0: (*wordIndex).search, 1: byMeaning} {
		r, err := measureRetrieval(rank, setOf(t, file), "all", "")
		if err != nil || r.RecallAt1 != want {
			t.Errorf("%+v, %v, want %v", r, err, want)
		}
	}
}

// The set of the repository asks for 30 tools in five languages. What is not in English finds little,
// and nearly all of its answers say that tools are described in English; those in English do not.
func TestRetrievalInFiveLanguages(t *testing.T) {
	set := readSet(t, "testdata/languages.json")
	var languages []string
	for _, q := range set.Queries {
		if !slices.Contains(languages, q.Lang) {
			languages = append(languages, q.Lang)
		}
	}
	if len(languages) != 5 {
		t.Errorf("languages %q", languages)
	}
	for _, lang := range languages {
		r, err := measureRetrieval((*wordIndex).search, set, "all", lang)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: recall@5 %.3f, hinted %.3f", lang, r.RecallAt5, r.Hinted)
		switch {
		case r.Queries != 30:
			t.Errorf("%s has %d queries", lang, r.Queries)
		case lang == "en" && (r.Hinted > 0.1 || r.RecallAt5 < 0.8):
			t.Errorf("in English recall@5 is %.3f, and %.3f are told so", r.RecallAt5, r.Hinted)
		case lang != "en" && r.Hinted < 0.95:
			t.Errorf("%s: only %.3f are told to search in English", lang, r.Hinted)
		}
	}
}

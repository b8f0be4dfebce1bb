package search

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// maxEvalBytes bounds an input of [Eval].
const maxEvalBytes = 256 << 20

// Half selects the queries from a file that [Eval] runs. The weights of the ranking were tuned on
// one half of some sets; for other files, use all queries.
type Half string

// The halves, split by the lowest bit of the FNV-1a hash (32 bits) of the query.
const (
	HalfAll   Half = "all"
	HalfTuned Half = "tuned" // even
	HalfHeld  Half = "held"  // odd
)

// ParseHalf reads the value of a flag.
func ParseHalf(s string) (Half, error) {
	switch h := Half(s); h {
	case HalfAll, HalfTuned, HalfHeld:
		return h, nil
	}
	return "", fmt.Errorf("search: half is %q, not all, tuned or held", s)
}

func (h Half) includes(query string) bool {
	sum := fnv.New32a()
	_, _ = io.WriteString(sum, query) // A hash never fails.
	switch h {
	case HalfTuned:
		return sum.Sum32()%2 == 0
	case HalfHeld:
		return sum.Sum32()%2 == 1
	}
	return true
}

// QuerySource selects where [Eval] takes its queries from.
type QuerySource string

// The sources of queries. Models write short queries such as "github create issue" without knowing
// the names of the tools. So QuerySourceNames searches for each tool by the words of its name, if
// there are several, and QuerySourceHidden does the same on an index without names.
const (
	QuerySourceFile   QuerySource = "file"
	QuerySourceNames  QuerySource = "names"
	QuerySourceHidden QuerySource = "hidden"
)

// ParseQuerySource reads the value of a flag.
func ParseQuerySource(s string) (QuerySource, error) {
	switch q := QuerySource(s); q {
	case QuerySourceFile, QuerySourceNames, QuerySourceHidden:
		return q, nil
	}
	return "", fmt.Errorf("search: queries is %q, not file, names or hidden", s)
}

// Report is the result of [Eval] for one file. Shares are between 0 and 1.
type Report struct {
	File        string      `json:"file"`
	Half        Half        `json:"half"`
	QuerySource QuerySource `json:"asked"`
	// Language is the language of the queries, if the file names it.
	Language   string `json:"language,omitempty"`
	ToolCount  int    `json:"tools"`
	QueryCount int    `json:"queries"`
	// RecallAt1, RecallAt5 and RecallAt10 are the mean shares of the wanted tools that are among the
	// first 1, 5 and 10 hits.
	RecallAt1  float64 `json:"recall_at_1"`
	RecallAt5  float64 `json:"recall_at_5"`
	RecallAt10 float64 `json:"recall_at_10"`
	NDCGAt10   float64 `json:"ndcg_at_10"`
	// EmptyShare is the share of queries without hits. HintedShare is the share of queries after which
	// the model gets the hint to search in English.
	EmptyShare  float64 `json:"empty"`
	HintedShare float64 `json:"hinted"`
	MeanMS      float64 `json:"mean_ms"`
	P99MS       float64 `json:"p99_ms"`
}

// evalSet is the format of an input file of [Eval].
type evalSet struct {
	Tools []struct {
		Name   string   `json:"name"`
		Desc   string   `json:"desc"`
		Params []string `json:"params"`
		Source string   `json:"source"`
	} `json:"tools"`
	Queries []evalQuery `json:"queries"`
}

type evalQuery struct {
	Query string   `json:"q"`
	Gold  []string `json:"gold"`
	Lang  string   `json:"lang"`
}

// nameQueries makes queries from tool names that have several words. The wanted tools are all tools
// whose names have the same words.
func (s evalSet) nameQueries() []evalQuery {
	var out []evalQuery
	at := map[string]int{}
	for _, t := range s.Tools {
		q := wordsOfName(t.Name)
		if !strings.Contains(q, " ") {
			continue
		}
		i, ok := at[q]
		if !ok {
			i = len(out)
			at[q] = i
			out = append(out, evalQuery{Query: q})
		}
		out[i].Gold = append(out[i].Gold, t.Name)
	}
	return out
}

// uses returns what [Uses] would remember of a user who has searched with the queries of the other half.
// Queries for several tools are left out, as by [Uses.Learn].
func (s evalSet) uses(half Half) []Use {
	var uses []Use
	for _, q := range s.Queries {
		if len(q.Gold) == 1 && !half.includes(q.Query) {
			uses = addUse(uses, q.Gold[0], []string{q.Query})
		}
	}
	return uses
}

// wordsOfName returns the words of a name without numbers: "github_createIssue2" is "github create
// issue".
func wordsOfName(name string) string {
	var out []string
	for _, w := range splitWords(name) {
		out = append(out, slices.DeleteFunc(w.parts, isNumber)...)
	}
	return strings.Join(out, " ")
}

// Eval measures a ranking on a set of tools and queries: a JSON object with
// tools (name, desc, params, source) and queries (q, gold: the wanted names, lang). file is the
// name of the set in the reports. Eval returns a report for all queries, and then one for each language.
// With learn, the words of the other half of the queries count as words of the tools, as after searches
// by one user.
func Eval(ctx context.Context, ranker Ranker, r io.Reader, file string, half Half, asked QuerySource, learn bool) ([]Report, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxEvalBytes+1))
	if err != nil {
		return nil, fmt.Errorf("search: read %s: %w", file, err)
	}
	if len(data) > maxEvalBytes {
		return nil, fmt.Errorf("search: %s is larger than %d MiB", file, maxEvalBytes>>20)
	}
	var set evalSet
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf("search: read %s: %w", file, err)
	}
	if len(set.Tools) == 0 {
		return nil, fmt.Errorf("search: %s: it holds no tools", file)
	}
	docs := make([]Document, len(set.Tools))
	for i, t := range set.Tools {
		docs[i] = Document{Name: t.Name, Description: t.Desc, Parameters: t.Params, Source: t.Source}
		if asked == QuerySourceHidden {
			docs[i].Name = ""
		}
	}
	index := NewIndex(docs)
	all := []measurement{{report: Report{File: file, Half: half, QuerySource: asked, ToolCount: len(docs)}}}
	if asked != QuerySourceFile {
		set.Queries = set.nameQueries()
	}
	if learn {
		index = index.withUses(set.uses(half))
	}
	for _, q := range set.Queries {
		if !half.includes(q.Query) || len(q.Gold) == 0 {
			continue
		}
		began := time.Now()
		found := ranker.Search(ctx, index, q.Query, 10)
		took := time.Since(began)
		names := make([]string, len(found.Hits))
		for i, h := range found.Hits {
			names[i] = set.Tools[h.Doc].Name
		}
		i := slices.IndexFunc(all, func(m measurement) bool { return m.report.Language == q.Lang })
		if i < 0 {
			i = len(all)
			all = append(all, all[0].newEmpty())
			all[i].report.Language = q.Lang
		}
		for _, at := range slices.Compact([]int{0, i}) {
			all[at].add(names, q.Gold, found, took)
		}
	}
	reports := make([]Report, len(all))
	for i := range all {
		if reports[i], err = all[i].finish(); err != nil {
			return nil, err
		}
	}
	return reports, nil
}

// measurement accumulates the results of queries.
type measurement struct {
	report Report
	times  []time.Duration
}

// newEmpty returns a measurement of the same file without results.
func (m *measurement) newEmpty() measurement {
	r := m.report
	return measurement{report: Report{File: r.File, Half: r.Half, QuerySource: r.QuerySource, ToolCount: r.ToolCount}}
}

func (m *measurement) add(found, gold []string, ranking Ranking, took time.Duration) {
	m.times = append(m.times, took)
	if ranking.Weak || ranking.IsForeignQuery || len(found) == 0 {
		m.report.HintedShare++
	}
	m.report.RecallAt1 += recallAt(found, gold, 1)
	m.report.RecallAt5 += recallAt(found, gold, 5)
	m.report.RecallAt10 += recallAt(found, gold, 10)
	gain, ideal := 0.0, 0.0
	for i, name := range found[:min(len(found), 10)] {
		if slices.Contains(gold, name) {
			gain += 1 / math.Log2(float64(i)+2)
		}
	}
	for i := range min(len(gold), 10) {
		ideal += 1 / math.Log2(float64(i)+2)
	}
	m.report.NDCGAt10 += gain / ideal
	if len(found) == 0 {
		m.report.EmptyShare++
	}
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

func (m *measurement) finish() (Report, error) {
	r := m.report
	n := float64(len(m.times))
	if n == 0 {
		return Report{}, fmt.Errorf("search: %s: it holds no queries of this half", r.File)
	}
	r.QueryCount = len(m.times)
	for _, v := range []*float64{&r.RecallAt1, &r.RecallAt5, &r.RecallAt10, &r.NDCGAt10, &r.EmptyShare, &r.HintedShare} {
		*v /= n
	}
	slices.Sort(m.times)
	var sum time.Duration
	for _, d := range m.times {
		sum += d
	}
	r.MeanMS = milliseconds(sum) / n
	r.P99MS = milliseconds(m.times[(len(m.times)*99+99)/100-1])
	return r, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// WriteText prints reports as a table.
func WriteText(w io.Writer, reports []Report) error {
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "tools\tqueries\tasked\thalf\trecall@1\trecall@5\trecall@10\tNDCG@10\tempty\thinted\tmean ms\tp99 ms\t  file")
	for _, r := range reports {
		_, _ = fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.1f %%\t%.1f %%\t%.3f\t%.3f\t  %s\n", r.ToolCount, r.QueryCount, r.QuerySource, r.Half,
			r.RecallAt1, r.RecallAt5, r.RecallAt10, r.NDCGAt10, 100*r.EmptyShare, 100*r.HintedShare, r.MeanMS, r.P99MS, strings.TrimSpace(r.File+" "+r.Language))
	}
	_ = t.Flush()
	if _, err := io.WriteString(w, table.String()); err != nil {
		return fmt.Errorf("search: print reports: %w", err)
	}
	return nil
}

// WriteJSON prints one JSON object per line.
func WriteJSON[T any](w io.Writer, lines []T) error {
	enc := json.NewEncoder(w)
	for _, line := range lines {
		if err := enc.Encode(line); err != nil {
			return fmt.Errorf("search: print JSON: %w", err)
		}
	}
	return nil
}

package search

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"oneclaw/toolgroups"
)

// hit is a tool in the result of a search.
type hit struct {
	Name string `json:"name"`
	// Use is the tool's signature and purpose, "(repo, title, body?) — Create an issue." It is empty
	// if the model still sees it in an earlier result, or if CallDirectly is set.
	Use string `json:"use,omitempty"`
	// CallDirectly is set if the tool is in the tools array.
	CallDirectly bool `json:"call_directly,omitempty"`
}

// noHitHelp lists the sources of tools after a query without hits.
type noHitHelp struct {
	AvailableSources   []origin            `json:"available_sources,omitempty"`
	UnavailableSources []UnavailableSource `json:"unavailable_sources,omitempty"`
}

// queryResult is the result for one query.
type queryResult struct {
	// Query is the query, if the call has several.
	Query   string `json:"query,omitempty"`
	Matches []hit  `json:"matches"`
	// Others are the names of more tools from the sources of the matches, by source.
	Others map[string][]string `json:"others,omitempty"`
	Hint   string              `json:"hint,omitempty"`
	noHitHelp
}

// maxOthers bounds the names in queryResult.Others, except for a query that names a group or source.
const maxOthers = 24

// searchInput has the arguments of a search. isBatch is set if they use "queries".
type searchInput struct {
	queries  []string
	rawLimit json.RawMessage
	isBatch  bool
}

// parseSearchInput parses the arguments of a search.
func parseSearchInput(arguments json.RawMessage) (searchInput, *toolgroups.Error) {
	args, fault := parseArguments(toolgroups.ToolSearch, arguments)
	if fault != nil {
		return searchInput{}, fault
	}
	w := searchInput{queries: parseTexts(args["query"], args["queries"]), rawLimit: args["limit"]}
	_, w.isBatch = args["queries"]
	switch {
	case len(w.queries) == 0:
		return searchInput{}, toolgroups.Errorf(toolgroups.CodeMissingParameter, "Required parameter 'query' is missing.")
	case len(w.queries) > maxQueries:
		return searchInput{}, toolgroups.Errorf(toolgroups.CodeInvalid, "Too many queries: %d, at most %d in one call.", len(w.queries), maxQueries)
	}
	for i := range w.queries {
		w.queries[i] = clipLine(w.queries[i], maxQueryText)
	}
	return w, nil
}

// search runs tool_search.
func (b *bridge) search(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
	w, fault := parseSearchInput(call.Arguments)
	if fault != nil {
		if fault.Code == toolgroups.CodeMissingParameter {
			fault.Message += " Say what the tool should do, or name one of: " + b.originNames() + "."
		}
		return toolgroups.Result{}, fault
	}
	fruitless := fruitlessStreak(b.cfg.pastCalls)
	if fault := b.checkFruitless(fruitless, w.queries); fault != nil {
		return toolgroups.Result{}, fault
	}
	limit, seen, index := b.parseLimit(w.rawLimit), b.shownTexts(), b.cfg.catalogue.index()
	if !w.isBatch {
		return encodeResult(b.answerQuery(ctx, w.queries[0], limit, fruitless, seen, index))
	}
	var results []queryResult
	for _, q := range w.queries {
		one := b.answerQuery(ctx, q, limit, fruitless, seen, index)
		one.Query = q
		results = append(results, one)
		text, err := encodeResult(one)
		if err != nil {
			return toolgroups.Result{}, err
		}
		seen = append(seen, text.Text)
	}
	return encodeResult(map[string][]queryResult{"results": results})
}

// checkFruitless returns an error if the turn has made too many fruitless or equal searches.
func (b *bridge) checkFruitless(fruitless int, texts []string) *toolgroups.Error {
	const stop = " Stop searching: go on with what you have, or tell the user that there is no such tool."
	if fruitless >= fruitlessStop {
		return toolgroups.Errorf(toolgroups.CodeSearchExhausted, "Not run: the last %d searches of this turn found nothing."+stop, fruitless)
	}
	if n := countRepeats(b.cfg.pastCalls, texts); n >= sameSearchStop {
		return toolgroups.Errorf(toolgroups.CodeSearchExhausted, "Not run: this turn has searched for the same words %d times; the answer stays the same."+stop, n)
	}
	return nil
}

// answerQuery answers a single query. seen are the earlier results that the model still sees.
func (b *bridge) answerQuery(ctx context.Context, query string, limit, fruitless int, seen []string, index *wordIndex) queryResult {
	f := b.find(ctx, query, limit+maxOthers, index)
	if f.origin != "" {
		limit = b.cfg.config.MaxSearchLimit
	}
	hits := f.entries[:min(len(f.entries), limit)]
	rest := f.entries[len(hits):]
	r := queryResult{Matches: make([]hit, len(hits))}
	known := 0
	for i, e := range hits {
		if r.Matches[i] = b.newHit(e, seen); r.Matches[i].Use == "" && !r.Matches[i].CallDirectly {
			known++
		}
	}
	var hints []string
	switch {
	case len(hits) == 0:
		r.AvailableSources, r.UnavailableSources = b.cfg.catalogue.origins(), b.cfg.unavailable
		hints = append(hints, "No tool matches. Try other English words for the action and the thing, or the name of a source for all its tools, before you conclude that there is none.")
		if fruitless+1 >= fruitlessAdvice {
			hints[0] = fmt.Sprintf("No tool matches, %d searches in a row. Stop searching and answer the user with what you have.", fruitless+1)
		}
	case f.origin != "" && len(rest) > 0:
		hints = append(hints, fmt.Sprintf("The first %d of the %d tools of %s, and the names of the others: %s shows their parameters.",
			len(hits), len(f.entries), f.origin, toolgroups.ToolDescribe))
	case f.origin != "":
		hints = append(hints, fmt.Sprintf("All %d tools of %s.", len(hits), f.origin))
	case f.isForeignQuery:
		hints = append(hints, "The query is not in English, but tools are described in English. Search in English where these do not fit.")
	case f.weak:
		hints = append(hints, "These share little with the query and may not fit. Tools are described in English: try other English words.")
	}
	if known > 0 {
		hints = append(hints, "How the others are called is shown above.")
		if known == len(hits) {
			hints[len(hints)-1] = "How they are called is shown above."
		}
	}
	if f.origin == "" {
		rest = b.siblings(hits, rest, seen)
	}
	for _, e := range rest {
		if r.Others == nil {
			r.Others = map[string][]string{}
		}
		r.Others[e.label()] = append(r.Others[e.label()], e.tool.Name)
	}
	r.Hint = strings.Join(hints, " ")
	return r
}

// siblings returns more tools from the sources of the hits, without those that the model still
// sees in earlier results. Those in next come first.
func (b *bridge) siblings(hits, next []entry, seen []string) []entry {
	sources, met := map[string]bool{}, map[string]bool{}
	for _, e := range hits {
		sources[e.label()], met[e.tool.Name] = true, true
	}
	var out []entry
	for _, entries := range [][]entry{next, b.cfg.catalogue.entries} {
		for _, e := range entries {
			if len(out) == maxOthers {
				return out
			}
			if name := e.tool.Name; sources[e.label()] && !met[name] && !slices.Contains(b.cfg.directTools, name) && !containedInAny(seen, `"`+name+`"`) {
				met[name] = true
				out = append(out, e)
			}
		}
	}
	return out
}

// newHit describes a tool. It leaves out the use if the model still sees it in an earlier result.
func (b *bridge) newHit(e entry, seen []string) hit {
	h := hit{Name: e.tool.Name, CallDirectly: slices.Contains(b.cfg.directTools, e.tool.Name)}
	if h.CallDirectly {
		return h
	}
	full := h
	full.Use = parseToolSchema(e.tool).signature(maxSignature) + " — " + toolgroups.FirstSentence(e.tool.Description)
	if text, err := toolgroups.EncodeJSON(full); err == nil && containedInAny(seen, string(text)) {
		return h
	}
	return full
}

// containedInAny reports whether one of texts contains piece.
func containedInAny(texts []string, piece string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, piece) })
}

// parseLimit parses the number of hits and clamps it. An invalid number means the default.
func (b *bridge) parseLimit(raw json.RawMessage) int {
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `" `), 64)
	if err != nil || math.IsNaN(n) || n < 1 {
		return b.cfg.config.SearchDefaultLimit
	}
	return int(min(n, float64(b.cfg.config.MaxSearchLimit)))
}

func (b *bridge) originNames() string {
	var names []string
	for _, o := range b.cfg.catalogue.origins() {
		names = append(names, o.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func encodeResult(v any) (toolgroups.Result, error) {
	text, err := toolgroups.EncodeJSON(v)
	if err != nil {
		return toolgroups.Result{}, fmt.Errorf("search: encode the result: %w", err)
	}
	return toolgroups.Result{Text: string(text)}, nil
}

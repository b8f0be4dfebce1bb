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
	// Use is its signature and purpose, "(repo, title, body?) — Create an issue.", unless the model
	// sees that already.
	Use string `json:"use,omitempty"`
	// Direct marks a tool that is in the tools array.
	Direct bool `json:"call_directly,omitempty"`
}

// noHit helps the model after a query without hits.
type noHit struct {
	Available   []Origin      `json:"available_sources,omitempty"`
	Unavailable []Unavailable `json:"unavailable_sources,omitempty"`
}

// queryResult is the result for one query.
type queryResult struct {
	// Query is set if there are several.
	Query   string `json:"query,omitempty"`
	Matches []hit  `json:"matches"`
	// Others are more tools of the matches' sources: names by source.
	Others map[string][]string `json:"others,omitempty"`
	Hint   string              `json:"hint,omitempty"`
	noHit
}

// maxOthers bounds these names.
const maxOthers = 24

// searchInput is the input of a search.
type searchInput struct {
	texts []string
	limit json.RawMessage
	batch bool
}

// queries parses the arguments of a search.
func queries(arguments json.RawMessage) (searchInput, *toolgroups.Error) {
	args, fault := object(ToolSearch, arguments)
	if fault != nil {
		return searchInput{}, fault
	}
	w := searchInput{texts: texts(args["query"], args["queries"]), limit: args["limit"]}
	_, w.batch = args["queries"]
	switch {
	case len(w.texts) == 0:
		return searchInput{}, toolgroups.Errorf(toolgroups.CodeMissingParameter, "Required parameter 'query' is missing.")
	case len(w.texts) > MaxQueries:
		return searchInput{}, toolgroups.Errorf(toolgroups.CodeInvalid, "Too many queries: %d, at most %d in one call.", len(w.texts), MaxQueries)
	}
	for i := range w.texts {
		w.texts[i] = clip(w.texts[i], maxQueryText)
	}
	return w, nil
}

// search runs tool_search.
func (b *Bridge) search(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
	w, fault := queries(call.Arguments)
	if fault != nil {
		if fault.Code == toolgroups.CodeMissingParameter {
			fault.Message += " Say what the tool should do, or name one of: " + b.origins() + "."
		}
		return toolgroups.Result{}, fault
	}
	fruitless := Fruitless(b.cfg.Turn)
	if fault := b.stopFruitless(fruitless, w.texts); fault != nil {
		return toolgroups.Result{}, fault
	}
	limit, seen := b.limit(w.limit), b.shown()
	if !w.batch {
		return reply(b.one(ctx, w.texts[0], limit, fruitless, seen))
	}
	var results []queryResult
	for _, q := range w.texts {
		one := b.one(ctx, q, limit, fruitless, seen)
		one.Query = q
		results = append(results, one)
		text, err := reply(one)
		if err != nil {
			return toolgroups.Result{}, err
		}
		seen = append(seen, text.Text)
	}
	return reply(map[string][]queryResult{"results": results})
}

// stopFruitless stops a turn that repeats fruitless searches.
func (b *Bridge) stopFruitless(fruitless int, texts []string) *toolgroups.Error {
	const stop = " Stop searching: go on with what you have, or tell the user that there is no such tool."
	if fruitless >= FruitlessStop {
		return toolgroups.Errorf(toolgroups.CodeSearchExhausted, "Not run: the last %d searches of this turn found nothing."+stop, fruitless)
	}
	if n := repeated(b.cfg.Turn, texts); n >= SameSearch {
		return toolgroups.Errorf(toolgroups.CodeSearchExhausted, "Not run: this turn has searched for the same words %d times; the answer stays the same."+stop, n)
	}
	return nil
}

// one answers a single query. seen is what the model sees already.
func (b *Bridge) one(ctx context.Context, query string, limit, fruitless int, seen []string) queryResult {
	f := b.find(ctx, query, limit+maxOthers)
	if f.Origin != "" {
		limit = b.cfg.Config.MaxSearchLimit
	}
	hits := f.Entries[:min(len(f.Entries), limit)]
	rest := f.Entries[len(hits):]
	r := queryResult{Matches: make([]hit, len(hits))}
	known := 0
	for i, e := range hits {
		if r.Matches[i] = b.hit(e, seen); r.Matches[i].Use == "" && !r.Matches[i].Direct {
			known++
		}
	}
	var hints []string
	switch {
	case len(hits) == 0:
		r.Available, r.Unavailable = b.cfg.Catalogue.Origins(), b.cfg.Unavailable
		hints = append(hints, "No tool matches. Try other English words for the action and the thing, or the name of a source for all its tools, before you conclude that there is none.")
		if fruitless+1 >= FruitlessAdvice {
			hints[0] = fmt.Sprintf("No tool matches, %d searches in a row. Stop searching and answer the user with what you have.", fruitless+1)
		}
	case f.Origin != "" && len(rest) > 0:
		hints = append(hints, fmt.Sprintf("The first %d of the %d tools of %s, and the names of the others: %s shows their parameters.",
			len(hits), len(f.Entries), f.Origin, ToolDescribe))
	case f.Origin != "":
		hints = append(hints, fmt.Sprintf("All %d tools of %s.", len(hits), f.Origin))
	case f.Foreign:
		hints = append(hints, "The query is not in English, but tools are described in English. Search in English where these do not fit.")
	case f.Weak:
		hints = append(hints, "These share little with the query and may not fit. Tools are described in English: try other English words.")
	}
	if known > 0 {
		hints = append(hints, "How the others are called is shown above.")
		if known == len(hits) {
			hints[len(hints)-1] = "How they are called is shown above."
		}
	}
	if f.Origin == "" {
		rest = b.siblings(hits, rest, seen)
	}
	for _, e := range rest {
		if r.Others == nil {
			r.Others = map[string][]string{}
		}
		r.Others[e.label()] = append(r.Others[e.label()], e.Tool.Name)
	}
	r.Hint = strings.Join(hints, " ")
	return r
}

// siblings returns more tools of the hits' sources that the model does not see yet, those in
// next first.
func (b *Bridge) siblings(hits, next []Entry, seen []string) []Entry {
	sources, met := map[string]bool{}, map[string]bool{}
	for _, e := range hits {
		sources[e.label()], met[e.Tool.Name] = true, true
	}
	var out []Entry
	for _, entries := range [][]Entry{next, b.cfg.Catalogue.entries} {
		for _, e := range entries {
			if len(out) == maxOthers {
				return out
			}
			if name := e.Tool.Name; sources[e.label()] && !met[name] && !slices.Contains(b.cfg.Direct, name) && !containedInAny(seen, `"`+name+`"`) {
				met[name] = true
				out = append(out, e)
			}
		}
	}
	return out
}

// hit describes a tool, unless the model sees that already.
func (b *Bridge) hit(e Entry, seen []string) hit {
	h := hit{Name: e.Tool.Name, Direct: slices.Contains(b.cfg.Direct, e.Tool.Name)}
	if h.Direct {
		return h
	}
	full := h
	full.Use = outlineOf(e.Tool).use(maxSignature) + " — " + toolgroups.FirstSentence(e.Tool.Description)
	if text, err := toolgroups.EncodeJSON(full); err == nil && containedInAny(seen, string(text)) {
		return h
	}
	return full
}

// containedInAny reports whether one of texts contains piece.
func containedInAny(texts []string, piece string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, piece) })
}

// limit reads the number of hits.
func (b *Bridge) limit(raw json.RawMessage) int {
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `" `), 64)
	if err != nil || math.IsNaN(n) || n < 1 {
		return b.cfg.Config.SearchDefaultLimit
	}
	return int(min(n, float64(b.cfg.Config.MaxSearchLimit)))
}

func (b *Bridge) origins() string {
	var names []string
	for _, o := range b.cfg.Catalogue.Origins() {
		names = append(names, o.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func reply(v any) (toolgroups.Result, error) {
	text, err := toolgroups.EncodeJSON(v)
	if err != nil {
		return toolgroups.Result{}, fmt.Errorf("search: encode the answer: %w", err)
	}
	return toolgroups.Result{Text: string(text)}, nil
}

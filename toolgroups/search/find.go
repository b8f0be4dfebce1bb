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
	Name        string   `json:"name,omitempty"`
	Group       string   `json:"group,omitempty"`
	Source      string   `json:"source"`
	SourceName  string   `json:"source_name"`
	Description string   `json:"description"`
	Parameters  string   `json:"parameters,omitempty"`
	Required    []string `json:"required,omitempty"`
	// Direct marks a tool that is in the tools array.
	Direct bool `json:"call_directly,omitempty"`
}

// lack is what a query without a hit gets to go on with.
type lack struct {
	Available   []Origin      `json:"available_sources,omitempty"`
	Unavailable []Unavailable `json:"unavailable_sources,omitempty"`
}

// oneResult answers one query.
type oneResult struct {
	Query   string `json:"query"`
	Total   int    `json:"total_available"`
	Matches []hit  `json:"matches"`
	// Others are the names of the tools of a group or source that are not among the matches.
	Others []string `json:"others,omitempty"`
	Hint   string   `json:"hint,omitempty"`
	lack
}

// manyResult answers several.
type manyResult struct {
	Queries []string       `json:"queries"`
	Total   int            `json:"total_available"`
	Results []queryResult  `json:"results"`
	Tools   map[string]hit `json:"tools"`
}

type queryResult struct {
	Query   string   `json:"query"`
	Matches []string `json:"matches"`
	Others  []string `json:"others,omitempty"`
	Hint    string   `json:"hint,omitempty"`
	lack
}

// wish is what a search asks for.
type wish struct {
	texts []string
	limit json.RawMessage
	batch bool
}

// queries reads the arguments of a search.
func queries(arguments json.RawMessage) (wish, *toolgroups.Error) {
	args, fault := object(ToolSearch, arguments)
	if fault != nil {
		return wish{}, fault
	}
	w := wish{texts: texts(args["query"], args["queries"]), limit: args["limit"]}
	_, w.batch = args["queries"]
	switch {
	case len(w.texts) == 0:
		return wish{}, toolgroups.Errorf(toolgroups.CodeMissingParameter, "Required parameter 'query' is missing.")
	case len(w.texts) > MaxQueries:
		return wish{}, toolgroups.Errorf(toolgroups.CodeInvalid, "Too many queries: %d, at most %d in one call.", len(w.texts), MaxQueries)
	}
	for i := range w.texts {
		w.texts[i] = clip(w.texts[i], maxQueryText)
	}
	return w, nil
}

// search is what tool_search does.
func (b *Bridge) search(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
	w, fault := queries(call.Arguments)
	if fault != nil {
		if fault.Code == toolgroups.CodeMissingParameter {
			fault.Message += " Say what the tool should do, or name one of: " + b.origins() + "."
		}
		return toolgroups.Result{}, fault
	}
	fruitless := Fruitless(b.cfg.Turn)
	if fault := b.brake(fruitless, w.texts); fault != nil {
		return toolgroups.Result{}, fault
	}
	limit := b.limit(w.limit)
	if !w.batch {
		return reply(b.one(ctx, w.texts[0], limit, fruitless))
	}
	r := manyResult{Queries: w.texts, Total: b.cfg.Catalogue.Len(), Tools: map[string]hit{}}
	for _, q := range w.texts {
		one := b.one(ctx, q, limit, fruitless)
		part := queryResult{Query: q, Matches: []string{}, Others: one.Others, Hint: one.Hint, lack: one.lack}
		for _, h := range one.Matches {
			part.Matches = append(part.Matches, h.Name)
			name := h.Name
			h.Name = ""
			r.Tools[name] = h
		}
		r.Results = append(r.Results, part)
	}
	return reply(r)
}

// brake stops a turn that searches in circles.
func (b *Bridge) brake(fruitless int, texts []string) *toolgroups.Error {
	const stop = " Stop searching: go on with what you have, or tell the user that there is no such tool."
	if fruitless >= FruitlessStop {
		return toolgroups.Errorf(toolgroups.CodeFruitless, "Not run: the last %d searches of this turn found nothing."+stop, fruitless)
	}
	if n := repeated(b.cfg.Turn, texts); n >= SameSearch {
		return toolgroups.Errorf(toolgroups.CodeFruitless, "Not run: this turn has searched for the same words %d times; the answer stays the same."+stop, n)
	}
	return nil
}

// one answers a single query.
func (b *Bridge) one(ctx context.Context, query string, limit, fruitless int) oneResult {
	f := b.find(ctx, query, limit)
	r := oneResult{Query: query, Total: b.cfg.Catalogue.Len(), Matches: []hit{}}
	described := f.Entries
	if f.Whole != "" {
		described = described[:min(len(described), b.cfg.Config.MaxSearchLimit)]
	}
	for _, e := range described {
		r.Matches = append(r.Matches, b.hit(e))
	}
	for _, e := range f.Entries[len(described):] {
		r.Others = append(r.Others, e.Tool.Name)
	}
	switch {
	case len(f.Entries) == 0:
		r.Available, r.Unavailable = b.cfg.Catalogue.Origins(), b.cfg.Unavailable
		r.Hint = "No tool matches. Try other English words for the action and the thing, or the name of a source for all its tools, before you conclude that there is none."
		if fruitless+1 >= FruitlessAdvice {
			r.Hint = fmt.Sprintf("No tool matches, %d searches in a row. Stop searching and answer the user with what you have.", fruitless+1)
		}
	case len(r.Others) > 0:
		r.Hint = fmt.Sprintf("The first %d of the %d tools of %s, and the names of the others: %s shows their parameters.",
			len(described), len(f.Entries), f.Whole, ToolDescribe)
	case f.Whole != "":
		r.Hint = fmt.Sprintf("All %d tools of %s.", len(f.Entries), f.Whole)
	case f.Weak:
		r.Hint = "These share little with the query and may not fit. Try other words."
	}
	return r
}

func (b *Bridge) hit(e Entry) hit {
	kind, name := e.origin()
	h := hit{
		Name: e.Tool.Name, Group: e.Group, Source: kind, SourceName: name,
		Description: clip(e.Tool.Description, maxDescription), Direct: slices.Contains(b.cfg.Direct, e.Tool.Name),
	}
	h.Parameters, h.Required = outlineOf(e.Tool).signature(maxSignature)
	if h.Group == h.SourceName {
		h.Group = ""
	}
	return h
}

// limit reads how many hits are wanted.
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

package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search/meaning"
)

// Limits of the remembered searches of a user.
const (
	maxUsedTools   = 200 // those used last
	maxUsedQueries = 8   // of a tool, the newest
	maxUsedQuery   = 120 // characters
	maxUseAttempts = 5   // of a write that conflicts with others
)

const usesPrefix = "searches/"

// Use is a tool and the searches that led to a call of it, the newest last.
type Use struct {
	Tool    string   `json:"tool"`
	Queries []string `json:"queries"`
}

// Uses remembers, for each user, which searches led to which tool. Their words then count as words of
// that tool in the user's later searches. Uses caches nothing, so that no replica goes on using what
// [Uses.Forget] has deleted. It may be used concurrently.
type Uses struct{ store storage.KV }

// NewUses returns a Uses that keeps searches in a store.
func NewUses(store storage.KV) *Uses { return &Uses{store: store} }

// List returns the tools that a user's searches led to, the one that was used last at the end.
func (u *Uses) List(ctx context.Context, user string) ([]Use, error) {
	uses, _, err := u.load(ctx, user)
	return uses, err
}

func (u *Uses) load(ctx context.Context, user string) ([]Use, storage.Revision, error) {
	entry, err := u.store.Get(ctx, usesPrefix+user)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, storage.Absent, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("search: read the searches of %s: %w", user, err)
	}
	var uses []Use
	if json.Unmarshal(entry.Value, &uses) != nil {
		uses = nil // The next search that leads to a tool writes the record anew.
	}
	return uses, entry.Revision, nil
}

// Learn remembers the searches of a finished turn, if they led to exactly one tool: with several it is
// not known which search was for which.
func (u *Uses) Learn(ctx context.Context, user string, turn []toolgroups.PastCall) error {
	tool, queries := ledTo(turn)
	if len(queries) == 0 || user == "" {
		return nil
	}
	existed := false
	for attempt := 1; ; attempt++ {
		uses, rev, err := u.load(ctx, user)
		if err != nil {
			return err
		}
		if existed && rev == storage.Absent {
			return nil // the user has been forgotten meanwhile
		}
		existed = existed || rev != storage.Absent
		value, err := json.Marshal(addUse(uses, tool, queries))
		if err != nil {
			return fmt.Errorf("search: encode the searches of %s: %w", user, err)
		}
		_, err = u.store.Put(ctx, usesPrefix+user, value, rev)
		if err == nil {
			return nil
		}
		if !errors.Is(err, storage.ErrConflict) || attempt == maxUseAttempts {
			return fmt.Errorf("search: write the searches of %s: %w", user, err)
		}
	}
}

// Forget deletes what is remembered of a user.
func (u *Uses) Forget(ctx context.Context, user string) error {
	if err := u.store.Delete(ctx, usesPrefix+user, storage.Any); err != nil {
		return fmt.Errorf("search: forget the searches of %s: %w", user, err)
	}
	return nil
}

// addUse adds queries that led to a tool. A query that is there already becomes the newest.
func addUse(uses []Use, tool string, queries []string) []Use {
	now := Use{Tool: tool}
	uses = slices.DeleteFunc(slices.Clone(uses), func(one Use) bool {
		if one.Tool == tool {
			now.Queries = slices.Clone(one.Queries)
		}
		return one.Tool == tool
	})
	for _, q := range queries {
		q = clipLine(q, maxUsedQuery)
		now.Queries = append(slices.DeleteFunc(now.Queries, func(old string) bool { return old == q }), q)
	}
	now.Queries = now.Queries[max(0, len(now.Queries)-maxUsedQueries):]
	uses = append(uses, now)
	return uses[max(0, len(uses)-maxUsedTools):]
}

// ledTo returns the only tool among the results of a turn's searches that was then called with success,
// and the queries before the call. tool is empty if there is none, or more than one.
func ledTo(turn []toolgroups.PastCall) (tool string, queries []string) {
	found := map[string]bool{}
	var asked []string
	for _, p := range turn {
		if !p.OK {
			continue
		}
		if p.Tool == ToolSearch {
			asked = append(asked, queriesOf(p, found)...)
			continue
		}
		name := p.Tool
		if name == ToolCall {
			if outer, fault := parseArguments(ToolCall, json.RawMessage(p.Arguments)); fault == nil {
				_ = json.Unmarshal(outer["name"], &name)
			}
		}
		switch {
		case !found[name]:
		case tool == "":
			tool, queries = name, asked
		case tool != name:
			return "", nil
		}
	}
	return tool, queries
}

// queriesOf returns the query of a search, and adds the names in its result to found. A search with
// several queries, which is for several tools, has none.
func queriesOf(p toolgroups.PastCall, found map[string]bool) []string {
	var r struct {
		queryResult
		Results []queryResult `json:"results"`
	}
	if json.Unmarshal([]byte(p.Result), &r) != nil {
		return nil
	}
	for _, one := range append(r.Results, r.queryResult) {
		for _, h := range one.Matches {
			found[h.Name] = true
		}
		for _, names := range one.Others {
			for _, name := range names {
				found[name] = true
			}
		}
	}
	w, fault := parseSearchInput(json.RawMessage(p.Arguments))
	if fault != nil || len(w.queries) > 1 {
		return nil
	}
	return w.queries
}

// withUses returns an index in which the words of searches count as words of the tools that they led to.
// It shares everything else with x.
func (x *Index) withUses(uses []Use) *Index {
	if len(uses) == 0 {
		return x
	}
	n := float64(len(x.docs))
	y := *x
	y.learned = map[string][]posting{}
	for _, use := range uses {
		counts := map[string]float64{}
		for _, q := range use.Queries {
			for stem := range x.stemsOf(q) {
				counts[stem]++
			}
		}
		for _, doc := range x.byName[strings.ToLower(use.Tool)] {
			for _, stem := range slices.Sorted(maps.Keys(counts)) {
				idf := math.Log(1 + (n+0.5)/0.5) // of a word that no tool has
				if id, ok := x.termIDs[stem]; ok {
					idf = x.idf[id]
				}
				weight := idf * counts[stem] * (saturation + 1) / (saturation + counts[stem])
				y.learned[stem] = append(y.learned[stem], posting{int32(doc), float32(weight)}) //nolint:gosec // No catalogue has as many tools.
			}
		}
	}
	return &y
}

// stemsOf returns the stems of a text's words that are neither stop words nor numbers.
func (x *Index) stemsOf(text string) map[string]bool {
	stems := map[string]bool{}
	for _, w := range splitWords(text) {
		for _, p := range w.parts {
			if !x.lex.isStopWord[p] && !isNumber(p) {
				stems[meaning.Stem(p)] = true
			}
		}
	}
	return stems
}

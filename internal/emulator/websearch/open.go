package websearch

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxWikipediaQuery is MAX_TEXT_SEARCH in includes/Searcher.php of
// wikimedia/mediawiki-extensions-CirrusSearch.
const maxWikipediaQuery = 300

// isDescriptive reports whether a User-Agent names its program and says in parentheses what it is, as
// foundation.wikimedia.org/wiki/Policy:Wikimedia_Foundation_User-Agent_Policy demands. Names of libraries
// do not.
func isDescriptive(agent string) bool {
	name, about, ok := strings.Cut(agent, " (")
	return ok && strings.Contains(name, "/") && strings.Contains(about, ")") && !strings.HasPrefix(name, "Go-http-client")
}

// answerWikipedia answers GET /w/api.php?action=query&generator=search as documented at
// mediawiki.org/wiki/API:Search, API:Info, Extension:TextExtracts and API:Errors_and_warnings: refusals
// have the status 200. MediaWiki only warns of an unknown parameter; here it is refused, so that a
// mistake is noticed.
func (s *Server) answerWikipedia(r *http.Request, path string) (Request, int, any) {
	v := r.URL.Query()
	q := Request{Query: v.Get("gsrsearch")}
	refuse := func(code, info string) (Request, int, any) {
		return q, http.StatusOK, map[string]any{"error": map[string]any{"code": code, "info": info, "docref": "See /w/api.php for API usage."}}
	}
	if path != "/w/api.php" || r.Method != http.MethodGet {
		return q, http.StatusNotFound, "not found"
	}
	if !isDescriptive(r.Header.Get("User-Agent")) {
		return q, http.StatusForbidden, "Please set a user-agent and respect our robot policy https://w.wiki/4wJS."
	}
	if code, info := checkWikipediaSearch(v); code != "" {
		return refuse(code, info)
	}
	q.Count, _ = parseBounded(v.Get("gsrlimit"), 10, 1, 500) // checked
	found := s.findPages(q.Query, q.Count, time.Time{})
	if len(found) == 0 {
		return q, http.StatusOK, map[string]any{"batchcomplete": true}
	}
	pages := []any{}
	for i, p := range found {
		pages = append(pages, map[string]any{
			"pageid": 1000 - i, "ns": 0, "title": p.Title, "index": i + 1, "contentmodel": "wikitext", "pagelanguage": "en", "pagelanguagehtmlcode": "en",
			"pagelanguagedir": "ltr", "touched": "2026-11-01T00:00:00Z", "lastrevid": 1, "length": len(p.Text),
			"fullurl": p.URL, "editurl": p.URL + "?action=edit", "canonicalurl": p.URL, "extract": p.Text,
		})
	}
	slices.Reverse(pages) // they are sorted by pageid
	return q, http.StatusOK, map[string]any{"batchcomplete": true, "continue": map[string]any{"gsroffset": q.Count, "continue": "gsroffset||"}, "query": map[string]any{"pages": pages}}
}

// checkWikipediaSearch returns the error for a search, if any.
func checkWikipediaSearch(v url.Values) (code, info string) {
	if name := unknownParam(v, "action", "format", "formatversion", "generator", "gsrsearch", "gsrlimit", "gsrnamespace", "prop", "inprop", "exintro", "explaintext", "exchars", "exlimit"); name != "" {
		return "badvalue", "Unrecognized parameter: " + name + "."
	}
	for name, want := range map[string]string{"action": "query", "format": "json", "formatversion": "2", "generator": "search", "inprop": "url"} {
		if v.Get(name) != want {
			return "badvalue", "Unrecognized value for parameter \"" + name + "\": " + v.Get(name) + "."
		}
	}
	for prop := range strings.SplitSeq(v.Get("prop"), "|") {
		if prop != "info" && prop != "extracts" {
			return "badvalue", "Unrecognized value for parameter \"prop\": " + prop + "."
		}
	}
	_, limited := parseBounded(v.Get("gsrlimit"), 10, 1, 500)
	_, short := parseBounded(v.Get("exchars"), 1200, 1, 1200)
	switch {
	case v.Get("gsrsearch") == "":
		return "missingparam", "The \"gsrsearch\" parameter must be set."
	case utf8.RuneCountInString(v.Get("gsrsearch")) > maxWikipediaQuery:
		return "cirrussearch-query-too-long", "Search request is longer than the maximum allowed length." // the code is assumed
	case !limited || !short:
		return "badinteger", "Invalid value for integer parameter."
	case v.Get("exlimit") == "max" && v.Get("exintro") == "":
		return "badvalue", "Multiple extracts can only be returned if exintro is set to true."
	}
	return "", ""
}

// answerHackerNews answers GET /api/v1/search as documented at hn.algolia.com/api. A page without an
// address is a story with a text of its own.
func (s *Server) answerHackerNews(r *http.Request, path string) (Request, int, any) {
	v := r.URL.Query()
	q := Request{Query: v.Get("query"), Since: v.Get("numericFilters")}
	refuse := func(status int, text string) (Request, int, any) {
		return q, status, map[string]any{"message": text, "status": status}
	}
	if path != "/api/v1/search" || r.Method != http.MethodGet {
		return refuse(http.StatusNotFound, "not found")
	}
	if name := unknownParam(v, "query", "tags", "hitsPerPage", "page", "numericFilters"); name != "" {
		return refuse(http.StatusBadRequest, "Unknown parameter: "+name)
	}
	var ok bool
	if q.Count, ok = parseBounded(v.Get("hitsPerPage"), 20, 1, 1000); !ok || v.Get("tags") != "story" {
		return refuse(http.StatusBadRequest, "Invalid value for parameter")
	}
	after := time.Time{}
	if q.Since != "" {
		seconds, err := strconv.ParseInt(strings.TrimPrefix(q.Since, "created_at_i>"), 10, 64)
		if err != nil {
			return refuse(http.StatusBadRequest, "invalid numeric filter")
		}
		after = time.Unix(seconds, 0)
	}
	hits := []any{}
	for i, p := range s.findPages(q.Query, q.Count, after) {
		one := map[string]any{"objectID": strconv.Itoa(100 + i), "title": p.Title, "author": "ann", "points": 10 + i, "num_comments": i, "story_id": 100 + i,
			"created_at": p.Published.UTC().Format("2006-01-02T15:04:05Z"), "created_at_i": p.Published.Unix(), "_tags": []string{"story", "author_ann"}}
		if p.URL != "" {
			one["url"] = p.URL
		} else {
			one["story_text"] = "<p>" + p.Text + "</p>"
		}
		hits = append(hits, one)
	}
	return q, http.StatusOK, map[string]any{"hits": hits, "nbHits": len(hits), "page": 0, "nbPages": 1, "hitsPerPage": q.Count, "exhaustiveNbHits": true, "query": q.Query}
}

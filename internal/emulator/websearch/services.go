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

const (
	maxQuery = 400
	maxWords = 50
)

// answerBrave answers GET /res/v1/web/search as documented at
// api-dashboard.search.brave.com/api-reference/web/search/get. A wrong key and a wrong parameter
// are both refused with 422, with different codes.
func (s *Server) answerBrave(r *http.Request, path string) (Request, int, any) {
	v := r.URL.Query()
	q := Request{Query: v.Get("q"), Since: v.Get("freshness")}
	refuse := func(status int, code, detail string) (Request, int, any) {
		return q, status, map[string]any{"type": "ErrorResponse", "error": map[string]any{"code": code, "detail": detail, "status": status}}
	}
	if path != "/res/v1/web/search" || r.Method != http.MethodGet {
		return refuse(http.StatusNotFound, "NOT_FOUND", "There is nothing here.")
	}
	if code, detail := s.checkBraveHeaders(r.Header); code != "" {
		return refuse(http.StatusUnprocessableEntity, code, detail)
	}
	if name := unknownParam(v, "q", "count", "offset", "freshness", "text_decorations", "result_filter", "country", "search_lang", "safesearch"); name != "" {
		return refuse(http.StatusUnprocessableEntity, "VALIDATION", name+": extra fields not permitted") // assumed
	}
	var ok bool
	if q.Count, ok = parseBounded(v.Get("count"), 20, 1, 20); !ok {
		return refuse(http.StatusUnprocessableEntity, "VALIDATION", "count: want 1 to 20")
	}
	if tooLong(q.Query) {
		return refuse(http.StatusUnprocessableEntity, "VALIDATION", "q: want 1 to 400 characters and at most 50 words")
	}
	unit, ok := map[string]string{"": "", "pd": "day", "pw": "week", "pm": "month", "py": "year"}[q.Since]
	if !ok {
		return refuse(http.StatusUnprocessableEntity, "VALIDATION", "freshness: "+q.Since)
	}
	results := []any{}
	for _, p := range s.findPages(q.Query, q.Count, s.rangeStart(unit)) {
		one := map[string]any{"type": "search_result", "title": p.Title, "url": p.URL, "description": "<strong>" + p.Text + "</strong>", "language": "en", "family_friendly": true}
		if at := formatDate(p, "2006-01-02T15:04:05"); at != nil {
			one["page_age"], one["age"] = at, p.Published.Format("January 2, 2006")
		}
		results = append(results, one)
	}
	answer := map[string]any{"type": "search", "query": map[string]any{"original": q.Query, "more_results_available": false}}
	if len(results) > 0 {
		answer["web"] = map[string]any{"type": "search", "results": results}
	}
	return q, http.StatusOK, answer
}

// checkBraveHeaders returns the error for invalid headers.
func (s *Server) checkBraveHeaders(h http.Header) (code, detail string) {
	switch token, accept := h.Get("X-Subscription-Token"), h.Get("Accept"); {
	case token == "":
		return "VALIDATION", "x-subscription-token: field required"
	case token != s.cfg.Key:
		return "SUBSCRIPTION_TOKEN_INVALID", "The provided subscription token is invalid."
	case !slices.Contains([]string{"", "application/json", "*/*"}, accept):
		return "VALIDATION", "accept: " + accept
	}
	return "", ""
}

// tooLong reports whether a query is empty or longer than Brave accepts.
func tooLong(query string) bool {
	return query == "" || utf8.RuneCountInString(query) > maxQuery || len(strings.Fields(query)) > maxWords
}

// answerTavily answers POST /search as documented at
// docs.tavily.com/documentation/api-reference/endpoint/search and
// help.tavily.com/articles/8645538886-understanding-http-errors. Only news results have a date, if known
// (assumed: published_date in the date format of HTTP).
func (s *Server) answerTavily(r *http.Request, path string) (Request, int, any) {
	var q Request
	refuse := func(status int, text string) (Request, int, any) {
		return q, status, map[string]any{"detail": map[string]any{"error": text}}
	}
	if path != "/search" || r.Method != http.MethodPost {
		return refuse(http.StatusNotFound, "Not Found")
	}
	if r.Header.Get("Authorization") != "Bearer "+s.cfg.Key {
		return refuse(http.StatusUnauthorized, "Unauthorized: missing or invalid API key.")
	}
	fields, wrong := decodeBody(r, "query", "max_results", "search_depth", "time_range", "topic", "include_answer", "include_raw_content", "include_images")
	if wrong != "" {
		return refuse(http.StatusBadRequest, wrong)
	}
	var ok [4]bool
	var depth string
	depth, ok[0] = decodeField(fields, "search_depth", "basic")
	q.Query, ok[1] = decodeField(fields, "query", "")
	q.Count, ok[2] = decodeField(fields, "max_results", 5)
	q.Since, ok[3] = decodeField(fields, "time_range", "")
	if wrong = checkTavilySearch(q, depth); wrong != "" || slices.Contains(ok[:], false) {
		return refuse(http.StatusBadRequest, "Invalid value: "+wrong)
	}
	results := []any{}
	for i, p := range s.findPages(q.Query, q.Count, s.rangeStart(q.Since)) {
		results = append(results, map[string]any{"title": p.Title, "url": p.URL, "content": p.Text, "score": 1 / float64(i+1), "raw_content": nil, "published_date": formatDate(p, http.TimeFormat)})
	}
	return q, http.StatusOK, map[string]any{"query": q.Query, "answer": nil, "images": []any{}, "results": results, "response_time": 0.5, "request_id": "r"}
}

// checkTavilySearch returns the invalid part of a search, or "".
func checkTavilySearch(q Request, depth string) string {
	switch {
	case q.Count < 0 || q.Count > 20:
		return "max_results"
	case !slices.Contains([]string{"basic", "advanced", "fast", "ultra-fast"}, depth):
		return "search_depth"
	case !slices.Contains([]string{"", "day", "week", "month", "year", "d", "w", "m", "y"}, q.Since):
		return "time_range"
	case q.Query == "" || utf8.RuneCountInString(q.Query) > maxQuery:
		return "query is missing, or too long: its maximum is 400 characters"
	}
	return ""
}

// answerExa answers POST /search as documented at exa.ai/docs/reference/search and error-codes.
func (s *Server) answerExa(r *http.Request, path string) (Request, int, any) {
	var q Request
	refuse := func(status int, tag, text string) (Request, int, any) {
		return q, status, map[string]any{"requestId": "r", "error": text, "tag": tag}
	}
	if path != "/search" || r.Method != http.MethodPost {
		return refuse(http.StatusNotFound, "NOT_FOUND", "Cannot "+r.Method+" "+path)
	}
	if r.Header.Get("X-Api-Key") != s.cfg.Key && r.Header.Get("Authorization") != "Bearer "+s.cfg.Key {
		return refuse(http.StatusUnauthorized, "INVALID_API_KEY", "Invalid API key")
	}
	fields, wrong := decodeBody(r, "query", "numResults", "type", "contents", "startPublishedDate", "endPublishedDate", "category", "includeDomains", "excludeDomains")
	if wrong != "" {
		return refuse(http.StatusBadRequest, "INVALID_REQUEST_BODY", wrong)
	}
	var ok [5]bool
	var kind string
	var contents map[string]any
	q.Query, ok[0] = decodeField(fields, "query", "")
	q.Count, ok[1] = decodeField(fields, "numResults", 10)
	q.Since, ok[2] = decodeField(fields, "startPublishedDate", "")
	kind, ok[3] = decodeField(fields, "type", "auto")
	contents, ok[4] = decodeField(fields, "contents", map[string]any{})
	after, fault := checkExaSearch(q, kind)
	if fault || slices.Contains(ok[:], false) {
		return refuse(http.StatusBadRequest, "INVALID_REQUEST_BODY", "Invalid request body")
	}
	results := []any{}
	for _, p := range s.findPages(q.Query, q.Count, after) {
		one := map[string]any{"id": p.URL, "title": p.Title, "url": p.URL, "publishedDate": formatDate(p, "2006-01-02T15:04:05.000Z"), "author": nil}
		if contents["highlights"] == true {
			one["highlights"], one["highlightScores"] = []string{p.Text}, []float64{0.5}
		}
		results = append(results, one)
	}
	return q, http.StatusOK, map[string]any{"requestId": "r", "resolvedSearchType": "neural", "results": results, "costDollars": map[string]any{"total": 0.007}}
}

// checkExaSearch returns the earliest date of a search, and whether the search is invalid.
func checkExaSearch(q Request, kind string) (time.Time, bool) {
	if q.Query == "" || q.Count < 1 || q.Count > 100 || !slices.Contains([]string{"neural", "fast", "auto", "deep-lite", "deep", "deep-reasoning", "instant"}, kind) {
		return time.Time{}, true
	}
	if q.Since == "" {
		return time.Time{}, false
	}
	after, err := time.Parse(time.RFC3339, q.Since)
	return after, err != nil
}

// answerSearXNG answers GET /search as documented at docs.searxng.org/dev/search_api.
func (s *Server) answerSearXNG(r *http.Request, path string) (Request, int, any) {
	v := r.URL.Query()
	q := Request{Query: v.Get("q"), Since: v.Get("time_range"), Count: 20}
	if path != "/search" || r.Method != http.MethodGet {
		return q, http.StatusNotFound, "not found"
	}
	switch {
	case v.Get("format") != "json" || s.cfg.NoJSON:
		return q, http.StatusForbidden, "Forbidden"
	case q.Query == "":
		return q, http.StatusBadRequest, map[string]any{"error": "No query"}
	case !slices.Contains([]string{"", "day", "week", "month", "year"}, q.Since):
		return q, http.StatusBadRequest, map[string]any{"error": "Invalid value \"" + q.Since + "\" for parameter time_range"}
	}
	results := []any{}
	for _, p := range s.findPages(q.Query, q.Count, s.rangeStart(q.Since)) {
		results = append(results, map[string]any{"title": p.Title, "url": p.URL, "content": p.Text, "engine": "stub", "category": "general", "score": 1, "publishedDate": formatDate(p, "2006-01-02T15:04:05")})
	}
	return q, http.StatusOK, map[string]any{"query": q.Query, "number_of_results": 0, "results": results, "answers": []any{}, "infoboxes": []any{}, "suggestions": []any{}, "unresponsive_engines": []any{}}
}

// unknownParam returns a parameter that a service does not know, or "".
func unknownParam(v url.Values, known ...string) string {
	for name := range v {
		if !slices.Contains(known, name) {
			return name
		}
	}
	return ""
}

// parseBounded parses a number. It returns false if the number is out of range.
func parseBounded(text string, otherwise, least, most int) (int, bool) {
	if text == "" {
		return otherwise, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= least && n <= most
}

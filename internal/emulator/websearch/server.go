// Package websearch emulates the search services Brave, Tavily, Exa and SearXNG, and the open sources
// Wikipedia and Hacker News, each under its own path. It is as strict as their documentation (read in 2026-11; the doc comment of each service's
// function names the pages). Behaviour without a source is marked as assumed.
package websearch

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"oneclaw/internal/emulator/wire"
)

// The services' names in [Request] and [Server.Fail].
const (
	Brave   = "brave"
	tavily  = "tavily"
	exa     = "exa"
	searxng = "searxng"

	Wikipedia  = "wikipedia"
	HackerNews = "hackernews"
)

// maxRequests bounds the stored requests.
const maxRequests = 1000

// Page is a web page that searches can find.
type Page struct {
	Title, URL, Text string
	// Published is the date of the page, if known.
	Published time.Time
}

// Config configures a [Server].
type Config struct {
	// Key is the API key for the services that require one.
	Key string
	// Pages are found by the words of their titles and texts.
	Pages []Page
	// NoJSON makes SearXNG refuse JSON, as it does by default (settings_search).
	NoJSON bool
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// Request is a search as a service understood it.
type Request struct {
	Service string
	Query   string
	Count   int
	Since   string
	// Status is the status of the response.
	Status int
}

// Answer replaces the regular response.
type Answer struct {
	Status int
	Body   string
	// Location, if not empty, is the target of a redirect.
	Location string
	// RetryAfter, if not empty, is the header with that name.
	RetryAfter string
}

// Server has all services. Its methods may be called concurrently.
type Server struct {
	cfg Config

	mu        sync.Mutex
	requests  []Request
	overrides map[string]Answer
}

// New makes a server.
func New(cfg Config) *Server {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Server{cfg: cfg, overrides: map[string]Answer{}}
}

// Fail makes a service send this answer from now on. The zero Answer restores regular responses.
func (s *Server) Fail(service string, with Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.overrides, service); with != (Answer{}) {
		s.overrides[service] = with
	}
}

// Requests returns the stored searches, in order, including refused ones.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP answers under /brave, /tavily, /exa, /searxng, /wikipedia and /hackernews.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	service, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	serve, ok := map[string]func(r *http.Request, path string) (Request, int, any){
		Brave: s.answerBrave, tavily: s.answerTavily, exa: s.answerExa, searxng: s.answerSearXNG,
		Wikipedia: s.answerWikipedia, HackerNews: s.answerHackerNews,
	}[service]
	if !ok {
		http.NotFound(w, r)
		return
	}
	request, status, body := serve(r, "/"+path)
	request.Service = service
	answer, failing := s.record(&request, status)
	switch {
	case answer.Location != "":
		http.Redirect(w, r, answer.Location, answer.Status)
	case failing:
		w.Header().Set("Content-Type", "application/json")
		if answer.RetryAfter != "" {
			w.Header().Set("Retry-After", answer.RetryAfter)
		}
		w.WriteHeader(answer.Status)
		_, _ = w.Write([]byte(answer.Body)) // the client may have disconnected
	default:
		wire.WriteJSON(w, status, "application/json", body)
	}
}

// record stores a request. It returns the answer set by [Server.Fail], if any.
func (s *Server) record(request *Request, status int) (Answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, failing := s.overrides[request.Service]
	if request.Status = status; failing {
		request.Status = answer.Status
	}
	if s.requests = append(s.requests, *request); len(s.requests) > maxRequests {
		s.requests = slices.Delete(s.requests, 0, 1)
	}
	return answer, failing
}

// findPages returns up to count pages that contain a word of the query and, unless since is zero, were
// published after it.
func (s *Server) findPages(query string, count int, since time.Time) []Page {
	var out []Page
	for _, p := range s.cfg.Pages {
		text := strings.ToLower(p.Title + " " + p.Text)
		has := slices.ContainsFunc(strings.Fields(strings.ToLower(query)), func(word string) bool { return strings.Contains(text, word) })
		if has && len(out) < count && (since.IsZero() || p.Published.After(since)) {
			out = append(out, p)
		}
	}
	return out
}

// rangeStart returns the beginning of a time range that ends now, or the zero time for an unknown unit.
func (s *Server) rangeStart(unit string) time.Time {
	days := map[string]int{"day": 1, "week": 7, "month": 31, "year": 365}[unit]
	if days == 0 {
		return time.Time{}
	}
	return s.cfg.Now().AddDate(0, 0, -days)
}

// formatDate formats the date of a page. It returns nil if the date is unknown.
func formatDate(p Page, form string) any {
	if p.Published.IsZero() {
		return nil
	}
	return p.Published.UTC().Format(form)
}

// decodeBody decodes a JSON object that has only known fields. The string says what is invalid.
func decodeBody(r *http.Request, known ...string) (map[string]json.RawMessage, string) {
	if kind := r.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		return nil, "the content type is " + kind
	}
	var fields map[string]json.RawMessage
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<20)).Decode(&fields); err != nil {
		return nil, "the body is no JSON object"
	}
	for name := range fields {
		if !slices.Contains(known, name) {
			return nil, "unknown field " + name
		}
	}
	return fields, ""
}

// decodeField decodes a field. It returns false if the field has another type.
func decodeField[T any](fields map[string]json.RawMessage, name string, otherwise T) (T, bool) {
	raw, ok := fields[name]
	if !ok {
		return otherwise, true
	}
	var v T
	return v, json.Unmarshal(raw, &v) == nil
}

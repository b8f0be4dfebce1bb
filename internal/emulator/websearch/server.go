// Package websearch emulates search services: Brave, Tavily, Exa and SearXNG, each under its own
// path, as strictly as their documentation (read in 2026-11; the functions of the services name
// the pages). What has no source is marked as assumed.
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
	Tavily  = "tavily"
	Exa     = "exa"
	SearXNG = "searxng"
)

// maxRequests bounds the stored requests.
const maxRequests = 1000

// Page is a web page that can be found.
type Page struct {
	Title, URL, Text string
	// Published is its date, if known.
	Published time.Time
}

// Config configures a [Server].
type Config struct {
	// Key is the API key of the services that need one.
	Key string
	// Pages are found by a word of their title or text.
	Pages []Page
	// NoJSON makes SearXNG refuse JSON, which is its default (settings_search).
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

// Answer replaces a proper response.
type Answer struct {
	Status int
	Body   string
	// Location, if not empty, redirects.
	Location string
}

// Server has the four services. Its methods may be called concurrently.
type Server struct {
	cfg Config

	mu       sync.Mutex
	requests []Request
	failing  map[string]Answer
}

// New makes a server.
func New(cfg Config) *Server {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Server{cfg: cfg, failing: map[string]Answer{}}
}

// Fail makes a service answer this way from now on; the zero Answer ends that.
func (s *Server) Fail(service string, with Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.failing, service); with != (Answer{}) {
		s.failing[service] = with
	}
}

// Requests returns the stored searches, in order, including refused ones.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP answers under /brave, /tavily, /exa and /searxng.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	service, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	serve, ok := map[string]func(r *http.Request, path string) (Request, int, any){
		Brave: s.brave, Tavily: s.tavily, Exa: s.exa, SearXNG: s.searxng,
	}[service]
	if !ok {
		http.NotFound(w, r)
		return
	}
	request, status, body := serve(r, "/"+path)
	request.Service = service
	answer, failing := s.note(&request, status)
	switch {
	case answer.Location != "":
		http.Redirect(w, r, answer.Location, answer.Status)
	case failing:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answer.Status)
		_, _ = w.Write([]byte(answer.Body)) // a lost client does not matter
	default:
		wire.WriteJSON(w, status, "application/json", body)
	}
}

// note stores a request, and returns the response that replaces the proper one.
func (s *Server) note(request *Request, status int) (Answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, failing := s.failing[request.Service]
	if request.Status = status; failing {
		request.Status = answer.Status
	}
	if s.requests = append(s.requests, *request); len(s.requests) > maxRequests {
		s.requests = slices.Delete(s.requests, 0, 1)
	}
	return answer, failing
}

// find returns the pages that have a word of the query.
func (s *Server) find(query string, count int, since time.Time) []Page {
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

// since returns the beginning of a time range.
func (s *Server) since(unit string) time.Time {
	days := map[string]int{"day": 1, "week": 7, "month": 31, "year": 365}[unit]
	if days == 0 {
		return time.Time{}
	}
	return s.cfg.Now().AddDate(0, 0, -days)
}

// date formats a page's date; nil if unknown.
func date(p Page, form string) any {
	if p.Published.IsZero() {
		return nil
	}
	return p.Published.UTC().Format(form)
}

// body decodes an object that has only known fields.
func body(r *http.Request, known ...string) (map[string]json.RawMessage, string) {
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

// field decodes a field; false if it has another type.
func field[T any](fields map[string]json.RawMessage, name string, otherwise T) (T, bool) {
	raw, ok := fields[name]
	if !ok {
		return otherwise, true
	}
	var v T
	return v, json.Unmarshal(raw, &v) == nil
}

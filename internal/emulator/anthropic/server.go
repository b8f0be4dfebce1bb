// Package anthropic emulates Anthropic's Messages API, as strictly as its documentation
// (platform.claude.com/docs/en/api/messages and the pages named in strict.go and cache.go, read
// in 2026-11). It checks the order of roles, results after their calls, unchanged thinking and cache
// breakpoints, and counts what the cache saves. Behaviour without a source is marked as assumed.
//
// Replies come from the responders of the OpenAI emulator.
package anthropic

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/wire"
)

// DefaultModel is the default model.
const DefaultModel = "claude-sonnet-5"

// Bounds and defaults: defaultContext is in tokens, defaultMaxBody and chunkBytes are in bytes, and
// maxRequests bounds the stored requests.
const (
	defaultContext = 200_000
	defaultMaxBody = 32 << 20
	maxRequests    = 1000
	chunkBytes     = 16
)

// Config configures a [Server].
type Config struct {
	// Responder answers the requests. Nil means [openai.Offline].
	Responder openai.Responder
	// Key is the required key. Empty accepts any.
	Key string
	// Model is the only model that the server accepts. Empty means [DefaultModel].
	Model string
	// Context is the size of the model's context in tokens. 0 means 200,000.
	Context int
	// AlwaysThink makes every reply begin with a thought.
	AlwaysThink bool
	// BindSignatures makes the signature of a thought valid only after the same prefix, as with Opus 5.5
	// and Fable 5.1 (whats-new-opus-5-5).
	BindSignatures bool
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// logger gets one line per request at level Debug. Nil means no log.
	logger *slog.Logger
}

// The versions of the API (platform.claude.com/docs/en/api/versioning). The newer one takes no temperature; its other
// differences are about what is not emulated.
const oldVersion, newVersion = "2023-06-01", "2026-10-21"

// requestID is the id of each request.
const requestID = "req_emulator"

var errClosed = errors.New("anthropic emulator: closed")

// Server is a model server. Its methods may be called concurrently.
type Server struct {
	cfg  Config
	life *wire.Lifecycle

	mu       sync.Mutex
	requests []Request
	lastSeq  int
	cache    promptCache
}

// New makes a server.
func New(cfg Config) (*Server, error) {
	if cfg.Responder == nil {
		cfg.Responder = openai.Offline{}
	}
	cfg.Model = cmp.Or(cfg.Model, DefaultModel)
	cfg.Context = cmp.Or(cfg.Context, defaultContext)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.logger == nil {
		cfg.logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg}
	s.life = wire.NewLifecycle("anthropic emulator", errClosed, &s.mu, cfg.logger)
	return s, nil
}

// Start listens on a free port of 127.0.0.1, or on addr if given, and serves until
// [Server.Close]. It returns the base URL.
func (s *Server) Start(ctx context.Context, addr ...string) (string, error) {
	return s.life.Start(ctx, s, addr...)
}

// Close ends every request and waits for all goroutines.
func (s *Server) Close() error { return s.life.Close(nil) }

// Request is a request as the server decoded it.
type Request struct {
	// Request is the request that the responder received.
	openai.Request
	// Header has the headers without the key; Body the whole body.
	Header http.Header
	Body   json.RawMessage
	// Usage is the usage of the prompt.
	Usage Usage
}

// Requests returns the last 1,000 requests, in order, including refused ones.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) record(req Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests = append(s.requests, req); len(s.requests) > maxRequests {
		s.requests = slices.Delete(s.requests, 0, 1)
	}
}

// ServeHTTP answers POST /v1/messages and GET /v1/models.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Request-Id", requestID)
	// Anthropic's own library sends a key as a bearer token since 1.0.
	key := cmp.Or(r.Header.Get("X-Api-Key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	switch {
	case key == "" || s.cfg.Key != "" && subtle.ConstantTimeCompare([]byte(key), []byte(s.cfg.Key)) != 1:
		writeError(w, newError(http.StatusUnauthorized, "authentication_error", "invalid x-api-key"))
	case !slices.Contains([]string{oldVersion, newVersion}, r.Header.Get("Anthropic-Version")):
		writeError(w, invalidRequest("anthropic-version: header is required"))
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages":
		s.handleMessages(w, r)
	case r.Method == http.MethodGet && r.URL.Path == "/v1/models":
		wire.WriteJSON(w, http.StatusOK, "application/json", map[string]any{"data": []any{s.modelObject()}, "has_more": false, "first_id": s.cfg.Model, "last_id": s.cfg.Model})
	case r.Method == http.MethodGet && r.URL.Path == "/v1/models/"+s.cfg.Model:
		wire.WriteJSON(w, http.StatusOK, "application/json", s.modelObject())
	default:
		writeError(w, newError(http.StatusNotFound, "not_found_error", "Not found"))
	}
}

func (s *Server) modelObject() map[string]any {
	yes := map[string]any{"supported": true}
	return map[string]any{
		"id": s.cfg.Model, "type": "model", "display_name": s.cfg.Model, "created_at": "2026-01-01T00:00:00Z",
		"max_input_tokens": s.cfg.Context, "max_tokens": 64_000, "capabilities": map[string]any{"image_input": yes, "thinking": yes},
	}
}

// handleMessages reads, checks and records a request, and lets the responder answer it.
func (s *Server) handleMessages(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, defaultMaxBody))
	if err != nil {
		writeError(w, newError(http.StatusRequestEntityTooLarge, "request_too_large", "Request exceeds the maximum allowed number of bytes."))
		return
	}
	req := Request{Body: body, Header: r.Header.Clone()}
	req.Header.Del("X-Api-Key")
	req.Header.Del("Authorization")
	s.mu.Lock()
	s.lastSeq++
	req.Seq, req.At = s.lastSeq, s.cfg.Now()
	s.mu.Unlock()
	d, refused := s.decode(body)
	if refused == nil && d.Temperature != nil && r.Header.Get("Anthropic-Version") == newVersion {
		refused = invalidRequest("temperature: Extra inputs are not permitted")
	}
	if refused == nil {
		d.fillRequest(&req)
		req.Usage, refused = s.measure(d)
	}
	req.Refused = refused
	s.record(req)
	if refused != nil {
		writeError(w, refused)
		return
	}
	s.checkRequest(body)
	reply, err := s.cfg.Responder.Reply(r.Context(), req.Request)
	switch {
	case err != nil:
		writeError(w, newError(http.StatusInternalServerError, "api_error", "%v", err))
		return
	case reply.Err != nil:
		writeError(w, withType(reply.Err))
		return
	}
	if reply.Delay > 0 && !s.life.Sleep(r.Context(), reply.Delay) {
		panic(http.ErrAbortHandler)
	}
	s.writeReply(w, r, &req, d, reply)
}

func newError(status int, kind, format string, args ...any) *openai.Error {
	return &openai.Error{Status: status, Type: kind, Message: fmt.Sprintf(format, args...)}
}

func invalidRequest(format string, args ...any) *openai.Error {
	return newError(http.StatusBadRequest, "invalid_request_error", format, args...)
}

// withType returns a copy of a responder's error with the type for its status.
func withType(e *openai.Error) *openai.Error {
	own := *e
	own.Type = map[int]string{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 429: "rate_limit_error", 529: "overloaded_error"}[e.Status]
	own.Type = cmp.Or(own.Type, "api_error")
	return &own
}

func errorBody(e *openai.Error) map[string]any {
	return map[string]any{"type": "error", "error": map[string]any{"type": e.Type, "message": e.Message}, "request_id": requestID}
}

func writeError(w http.ResponseWriter, e *openai.Error) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	wire.WriteJSON(w, e.Status, "application/json", errorBody(e))
}

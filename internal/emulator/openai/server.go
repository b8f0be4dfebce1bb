package openai

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

	"oneclaw/internal/emulator/wire"
)

// Defaults of [Config].
const (
	DefaultModel            = "emulator"
	defaultMaxTools         = 128 // OpenAI's documented limit
	defaultMaxBody          = 16 << 20
	defaultMaxRequests      = 1000
	defaultMaxRecordedBytes = 64 << 20
	defaultContext          = 400_000
	defaultChunkWords       = 4
)

// Config configures a [Server].
type Config struct {
	// Responder answers the requests. Nil means [Offline].
	Responder Responder
	// Key is the required bearer key. Empty accepts any key, or none.
	Key string
	// Models are the models that exist. Empty means only the model of Profile, or [DefaultModel] if
	// Profile is empty.
	Models []string
	// Transcript is the transcript of recordings other than those of [Speech]. Empty means
	// silence.
	Transcript string
	// Latency delays each response.
	Latency time.Duration
	// DeltaDelay delays each delta of a text but the first.
	DeltaDelay time.Duration
	// chunkWords is the number of words in a delta. 0 means the default.
	chunkWords int
	// MaxTools bounds the number of tools, MaxBody the bytes of a request, Context the tokens of a
	// prompt. 0 means the defaults.
	MaxTools, MaxBody, Context int
	// Profile is the emulated service. Empty means the first of [Profiles], OpenAI's Chat
	// Completions.
	Profile Profile
	// MaxRequests and maxRecordedBytes bound the stored requests, in number and bytes. 0 means the
	// defaults.
	MaxRequests, maxRecordedBytes int
	// now is the clock. Nil means time.Now.
	now func() time.Time
	// logger gets one line per accepted prompt at level Debug, without content. Nil means no log.
	logger *slog.Logger
}

// errClosed is returned by [Server.Start] after Close.
var errClosed = errors.New("model emulator: closed")

// Server is a model server. All its methods may be called concurrently.
type Server struct {
	cfg  Config
	life *wire.Lifecycle

	mu      sync.Mutex
	records requestLog
	cache   promptCache
	lastSeq int
	// embeddedCount is the number of embedded texts.
	embeddedCount int
	// transcriptionCount is the number of transcribed recordings.
	transcriptionCount int
	// pictures are the accepted requests for pictures; onPicture is called for each.
	pictures  []PictureRequest
	onPicture func(PictureRequest) *Error
	// spoken are the accepted requests for speech; onSpeech is called for each.
	spoken   []SpeechRequest
	onSpeech func(SpeechRequest) *Error
}

// New makes a server.
func New(cfg Config) (*Server, error) {
	if cfg.Responder == nil {
		cfg.Responder = Offline{}
	}
	if cfg.Profile.Name == "" {
		cfg.Profile = profiles[0]
		cfg.Profile.Model = DefaultModel
	}
	if len(cfg.Models) == 0 {
		cfg.Models = []string{cfg.Profile.Model}
	}
	cfg.chunkWords = cmp.Or(cfg.chunkWords, defaultChunkWords)
	cfg.MaxTools = cmp.Or(cfg.MaxTools, defaultMaxTools)
	cfg.MaxBody = cmp.Or(cfg.MaxBody, defaultMaxBody)
	cfg.Context = cmp.Or(cfg.Context, defaultContext)
	cfg.MaxRequests = cmp.Or(cfg.MaxRequests, defaultMaxRequests)
	cfg.maxRecordedBytes = cmp.Or(cfg.maxRecordedBytes, defaultMaxRecordedBytes)
	for _, n := range []int{cfg.chunkWords, cfg.MaxTools, cfg.MaxBody, cfg.Context, cfg.MaxRequests, cfg.maxRecordedBytes} {
		if n < 1 {
			return nil, errors.New("model emulator: bounds must be positive")
		}
	}
	if cfg.now == nil {
		cfg.now = time.Now
	}
	if cfg.logger == nil {
		cfg.logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, cache: newPromptCache()}
	s.life = wire.NewLifecycle("model emulator", errClosed, &s.mu, cfg.logger)
	return s, nil
}

// Start listens on a free port of 127.0.0.1, or on addr if given, and serves until
// [Server.Close]. It returns the base URL for clients, with the service's path.
func (s *Server) Start(ctx context.Context, addr ...string) (string, error) {
	base, err := s.life.Start(ctx, s, addr...)
	if err != nil {
		return "", err
	}
	return base + s.cfg.Profile.basePath(), nil
}

// Close ends every request and waits for all handlers.
func (s *Server) Close() error { return s.life.Close(nil) }

// ServeHTTP answers POST /v1/chat/completions, POST /v1/responses, POST /v1/embeddings, POST
// /v1/images/generations, POST /v1/images/edits, POST /v1/audio/speech, POST /v1/audio/transcriptions and
// GET /v1/models. The path of the service replaces /v1.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Request-Id", "req_emulator") // which the client libraries give with each error
	if err := s.authorize(r); err != nil {
		s.fail(w, err)
		return
	}
	path, _ := strings.CutPrefix(r.URL.Path, s.cfg.Profile.basePath())
	switch r.Method + " " + path {
	case "POST /chat/completions":
		s.handleChat(w, r)
	case "POST /responses":
		s.handleResponses(w, r)
	case "POST /embeddings":
		s.handleEmbeddings(w, r)
	case "POST /images/generations":
		s.handleGenerations(w, r)
	case "POST /images/edits":
		s.handleEdits(w, r)
	case "POST /audio/speech":
		s.handleSpeech(w, r)
	case "POST /audio/transcriptions":
		s.handleTranscriptions(w, r)
	case "GET /models":
		s.writeModels(w)
	default:
		if s.servePage(w, r.URL.Path) {
			return
		}
		s.fail(w, &Error{Status: 404, Message: fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path)})
	}
}

func (s *Server) authorize(r *http.Request) *Error {
	if s.cfg.Key == "" {
		return nil
	}
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if p := &s.cfg.Profile; p.pageKey != "" && !strings.HasPrefix(r.URL.Path, p.basePath()) {
		key, ok = r.Header.Get(p.pageKey), true
	}
	switch {
	case !ok || key == "":
		return &Error{Status: 401, Message: "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."}
	case subtle.ConstantTimeCompare([]byte(key), []byte(s.cfg.Key)) != 1:
		if isSet(s.cfg.Profile.badKey) {
			return newError(s.cfg.Profile.badKey)
		}
		return &Error{Status: 401, Message: "Incorrect API key provided.", Code: "invalid_api_key"}
	}
	return nil
}

func (s *Server) writeModels(w http.ResponseWriter) {
	list := make([]json.RawMessage, len(s.cfg.Models))
	for i, id := range s.cfg.Models {
		entry := fmt.Sprintf(`{"id":%q,"object":"model","created":1700000000,"owned_by":"emulator"`, id)
		if more := s.cfg.Profile.ModelEntry; more != "" {
			entry += "," + s.expand(more)
		}
		list[i] = json.RawMessage(entry + "}")
	}
	body := map[string]any{"object": "list", "data": list}
	s.check("models", body)
	writeJSON(w, http.StatusOK, body)
}

// handleChat answers POST /v1/chat/completions.
func (s *Server) handleChat(w http.ResponseWriter, r *http.Request) {
	s.handleRequest(w, r, s.decode, s.writeCompletion)
}

// readBody reads the body of a request. It returns false after answering that the body is too large, or if
// the client is gone.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.cfg.MaxBody)))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		s.fail(w, &Error{Status: 413, Message: "Request body is too large."})
	}
	return body, err == nil
}

// handleRequest reads, checks and records a request, and lets the responder answer it.
func (s *Server) handleRequest(w http.ResponseWriter, r *http.Request, decode func([]byte) (Request, *Error),
	answer func(http.ResponseWriter, *http.Request, Request, Reply),
) {
	body, ok := s.readBody(w, r)
	if !ok {
		return
	}
	req, refused := decode(body)
	req.HasKey = r.Header.Get("Authorization") != ""
	if refused == nil && !slices.Contains(s.cfg.Models, req.Model) {
		refused = &Error{Status: 404, Message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", req.Model), Code: "model_not_found"}
	}
	if refused != nil {
		req.Refused = refused
		s.recordRequest(&req)
		if refused.inStream {
			(&stream{s: s, w: w, r: r}).sendError(refused)
			return
		}
		s.fail(w, refused)
		return
	}
	s.check(map[bool]string{true: "responses", false: "chat"}[req.Responses], body)
	s.measure(&req, r.RemoteAddr)
	s.recordRequest(&req)
	s.cfg.logger.Debug("model called", "seq", req.Seq, "messages", len(req.Messages), "tools", len(req.Tools))
	reply, err := s.cfg.Responder.Reply(r.Context(), req)
	if err != nil {
		s.fail(w, &Error{Status: 500, Type: "server_error", Message: err.Error()})
		return
	}
	if wait := s.cfg.Latency + reply.Delay; wait > 0 && !s.life.Sleep(r.Context(), wait) {
		panic(http.ErrAbortHandler)
	}
	if reply.Err != nil {
		s.fail(w, reply.Err)
		return
	}
	answer(w, r, req, reply)
}

// Error is an error with the service's wording.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Message, Type, Param and Code are the fields of the error object. An empty Type means
	// invalid_request_error.
	Message, Type, Param, Code string
	// RetryAfter is the value of the Retry-After header, in seconds. 0 means no header.
	RetryAfter int
	// inStream sends the error as an event of a stream, with status 200.
	inStream bool
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// encode returns the JSON of an error, with null for empty fields.
func (e *Error) encode() map[string]any {
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return map[string]any{"error": map[string]any{
		"message": e.Message, "type": cmp.Or(e.Type, "invalid_request_error"),
		"param": orNull(e.Param), "code": orNull(e.Code),
	}}
}

func writeError(w http.ResponseWriter, e *Error) {
	setRetryAfter(w, e)
	writeJSON(w, e.Status, e.encode())
}

func setRetryAfter(w http.ResponseWriter, e *Error) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	wire.WriteJSON(w, status, "application/json", v)
}

package google

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxBody bounds the body of a request in bytes, maxRequests the number of recorded requests.
const (
	maxBody     = 64 << 20
	maxRequests = 2000
)

// Config configures a [Server].
type Config struct {
	// ClientID and ClientSecret are those of the OAuth client. Empty accepts any.
	ClientID     string
	ClientSecret string
	// Accounts are the accounts on the consent page. None means [DefaultAccount].
	Accounts []string
	// tokenLifetime is the lifetime of access tokens. 0 means an hour, as at Google.
	tokenLifetime time.Duration
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// checkAccount returns an error for an unknown account.
func (cfg *Config) checkAccount(account string) error {
	if !slices.Contains(cfg.Accounts, account) {
		return fmt.Errorf("google emulator: no such account: %s", account)
	}
	return nil
}

// DefaultAccount is the account of a server without Accounts.
const DefaultAccount = "ada@example.com"

// Server is the emulator. It is an [http.Handler] for the paths of all services.
type Server struct {
	cfg    Config
	routes []route

	// mu guards the fields below and their content.
	mu       sync.Mutex
	auth     *signIn
	accounts map[string]*accountServices // by account
	faults   faults
	requests []Request
}

// Request is a received request.
type Request struct {
	// Method is the id of the API's method, such as gmail.users.messages.send. If it is unknown, Method
	// is the HTTP method and the path.
	Method string
	// Verb is the HTTP method.
	Verb string
	// Account is the owner of the request's token.
	Account string
	// Status is the status of the response.
	Status int
	// Query and Body are as received from the client.
	Query url.Values
	Body  string
}

// New returns a server whose accounts have the content described in the package comment.
func New(cfg Config) (*Server, error) {
	if len(cfg.Accounts) == 0 {
		cfg.Accounts = []string{DefaultAccount}
	}
	cfg.tokenLifetime = cmp.Or(cfg.tokenLifetime, time.Hour)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	all, err := buildRoutes()
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, routes: all, auth: newSignIn(cfg), accounts: map[string]*accountServices{}}, nil
}

// call is a request for a method of the contract.
type call struct {
	route
	vars      map[string]string
	query     url.Values
	body      doc
	media     []byte
	mediaType string
}

// doc is a JSON object.
type doc = map[string]any

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeError(w, &rejection{status: http.StatusRequestEntityTooLarge, message: "Request entity too large"})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.auth.handle(w, r, body, s.faults) {
		return
	}
	seen := Request{Method: r.Method + " " + r.URL.Path, Verb: r.Method, Query: r.URL.Query(), Body: string(body)}
	answer, rej := s.handle(r, body, &seen)
	seen.Status = http.StatusOK
	if rej != nil {
		seen.Status = rej.status
	}
	if len(s.requests) == maxRequests {
		s.requests = s.requests[1:]
	}
	s.requests = append(s.requests, seen)
	if rej != nil && rej.status == 0 {
		panic(http.ErrAbortHandler) // closes the connection
	}
	if rej != nil {
		writeError(w, rej)
		return
	}
	writeAnswer(w, answer)
}

// rawResponse is a response that is not JSON.
type rawResponse struct {
	mime string
	data []byte
}

// handle answers a request to a service.
func (s *Server) handle(r *http.Request, body []byte, seen *Request) (any, *rejection) {
	c, rej := s.matchRoute(r)
	if rej != nil {
		return nil, rej
	}
	seen.Method = c.id
	fault := s.faults.match(c.id)
	if fault != nil && !fault.late {
		return nil, fault
	}
	token, rej := s.auth.authenticate(r, c)
	if rej != nil {
		return nil, rej
	}
	seen.Account = token.account
	if rej := c.checkQuery(); rej != nil {
		return nil, rej
	}
	if rej := c.readBody(r.Header.Get("Content-Type"), body); rej != nil {
		return nil, rej
	}
	world, err := s.account(token.account)
	if err != nil {
		return nil, notFound(token.account)
	}
	answer, rej := world.run(c)
	if rej == nil {
		rej = fault
	}
	if rej != nil {
		return nil, rej
	}
	d, ok := answer.(doc)
	if !ok {
		return answer, nil
	}
	if rej := c.checkAnswer(d); rej != nil {
		return nil, rej
	}
	return c.applyFields(d)
}

// checkAnswer refuses to send a response that violates the contract.
func (c *call) checkAnswer(answer doc) *rejection {
	body, err := json.Marshal(answer)
	var v any
	if err == nil {
		err = json.Unmarshal(body, &v)
	}
	if err != nil {
		return &rejection{status: http.StatusInternalServerError, message: "emulator: " + err.Error()}
	}
	if rej := c.api.checkValue(shape{Ref: c.method.Answer}, v, ""); rej != nil {
		return &rejection{status: http.StatusInternalServerError, message: "emulator: the answer to " + c.id + " violates its contract: " + rej.message}
	}
	return nil
}

// matchRoute returns the call that a request makes.
func (s *Server) matchRoute(r *http.Request) (*call, *rejection) {
	for _, route := range s.routes {
		if vars, ok := route.match(r.Method, r.URL.EscapedPath()); ok {
			return &call{route: route, vars: vars, query: r.URL.Query()}, nil
		}
	}
	return nil, &rejection{status: http.StatusNotFound, message: "The requested URL " + r.URL.Path + " was not found on this server."}
}

// readBody reads the body and checks it against the method's shape.
func (c *call) readBody(contentType string, body []byte) *rejection {
	if c.upload {
		return c.readUpload(contentType, body)
	}
	if c.method.Body == "" {
		if len(strings.TrimSpace(string(body))) > 0 && string(body) != "{}" {
			return invalidArgument("Invalid JSON payload received. The method %s takes no body.", c.id)
		}
		return nil
	}
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
		return invalidArgument("Content-Type must be application/json, not %q.", contentType)
	}
	return c.readJSON(body)
}

func (c *call) readJSON(body []byte) *rejection {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return invalidArgument("Invalid JSON payload received. %v", err)
	}
	if rej := c.api.checkValue(shape{Ref: c.method.Body}, v, ""); rej != nil {
		return rej
	}
	c.body, _ = v.(doc)
	return nil
}

// writeAnswer writes a successful response.
func writeAnswer(w http.ResponseWriter, answer any) {
	switch a := answer.(type) {
	case nil:
		w.WriteHeader(http.StatusNoContent)
	case rawResponse:
		w.Header().Set("Content-Type", a.mime)
		_, _ = w.Write(a.data)
	default:
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		_ = json.NewEncoder(w).Encode(a)
	}
}

// account returns the data of an account, which are created on first use.
func (s *Server) account(account string) (*accountServices, error) {
	if err := s.cfg.checkAccount(account); err != nil {
		return nil, err
	}
	w := s.accounts[account]
	if w == nil {
		w = newAccountServices(account, s.cfg.Now)
		s.accounts[account] = w
	}
	return w, nil
}

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

// maxBody bounds the body of a request, maxSeen the recorded requests.
const (
	maxBody = 64 << 20
	maxSeen = 2000
)

// Config configures a [Server].
type Config struct {
	// ClientID and ClientSecret are the OAuth client's. Empty accepts any.
	ClientID     string
	ClientSecret string
	// Accounts are the accounts on the consent page. None means [DefaultAccount].
	Accounts []string
	// TokenLife is the lifetime of access tokens. 0 means an hour, as at Google.
	TokenLife time.Duration
	// Now is the clock. nil means time.Now.
	Now func() time.Time
}

// has returns an error for an unknown account.
func (cfg *Config) has(account string) error {
	if !slices.Contains(cfg.Accounts, account) {
		return fmt.Errorf("emulator: there is no such account: %s", account)
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
	mu     sync.Mutex
	auth   *signIn
	worlds map[string]*world // by account
	faults faults
	seen   []Request
}

// Request is a received request.
type Request struct {
	// Method is the id of the API's method, such as gmail.users.messages.send, or the HTTP method
	// and the path if unknown.
	Method string
	// Account is the owner of its token.
	Account string
	// Status is the status of the response.
	Status int
	// Query and Body are as received.
	Query url.Values
	Body  string
}

// New makes a server whose accounts have the content in the package comment.
func New(cfg Config) (*Server, error) {
	if len(cfg.Accounts) == 0 {
		cfg.Accounts = []string{DefaultAccount}
	}
	cfg.TokenLife = cmp.Or(cfg.TokenLife, time.Hour)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	all, err := routes()
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, routes: all, auth: newSignIn(cfg), worlds: map[string]*world{}}, nil
}

// call is a request that matches the contract.
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
		refuse(w, &rejection{status: http.StatusRequestEntityTooLarge, message: "Request entity too large"})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.auth.serve(w, r, body, s.faults) {
		return
	}
	seen := Request{Method: r.Method + " " + r.URL.Path, Query: r.URL.Query(), Body: string(body)}
	answer, rej := s.handle(r, body, &seen)
	seen.Status = http.StatusOK
	if rej != nil {
		seen.Status = rej.status
	}
	if len(s.seen) == maxSeen {
		s.seen = s.seen[1:]
	}
	s.seen = append(s.seen, seen)
	if rej != nil {
		refuse(w, rej)
		return
	}
	reply(w, answer)
}

// raw is a response that is not JSON.
type raw struct {
	mime string
	data []byte
}

// handle answers a request to a service.
func (s *Server) handle(r *http.Request, body []byte, seen *Request) (any, *rejection) {
	c, rej := s.find(r)
	if rej != nil {
		return nil, rej
	}
	seen.Method = c.id
	if rej := s.faults.meet(c.id); rej != nil {
		return nil, rej
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
	world, err := s.world(token.account)
	if err != nil {
		return nil, missing(token.account)
	}
	answer, rej := world.answer(c)
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
	return c.masked(d)
}

// checkAnswer refuses to send what the services would not: the contract includes responses.
func (c *call) checkAnswer(answer doc) *rejection {
	body, err := json.Marshal(answer)
	var v any
	if err == nil {
		err = json.Unmarshal(body, &v)
	}
	if err != nil {
		return &rejection{status: http.StatusInternalServerError, message: "emulator: " + err.Error()}
	}
	if rej := c.service.check(shape{Ref: c.method.Answer}, v, ""); rej != nil {
		return &rejection{status: http.StatusInternalServerError, message: "emulator: the answer of " + c.id + " is not in its contract: " + rej.message}
	}
	return nil
}

// find returns the requested method.
func (s *Server) find(r *http.Request) (*call, *rejection) {
	for _, route := range s.routes {
		if vars, ok := route.match(r.Method, r.URL.EscapedPath()); ok {
			return &call{route: route, vars: vars, query: r.URL.Query()}, nil
		}
	}
	return nil, &rejection{status: http.StatusNotFound, message: "The requested URL " + r.URL.Path + " was not found on this server."}
}

// readBody checks the body against the method's shape.
func (c *call) readBody(contentType string, body []byte) *rejection {
	if c.upload {
		return c.readUpload(contentType, body)
	}
	if c.method.Body == "" {
		if len(strings.TrimSpace(string(body))) > 0 && string(body) != "{}" {
			return invalid("Invalid JSON payload received. The method %s takes no body.", c.id)
		}
		return nil
	}
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
		return invalid("Content-Type must be application/json, not %q.", contentType)
	}
	return c.readJSON(body)
}

func (c *call) readJSON(body []byte) *rejection {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return invalid("Invalid JSON payload received. %v", err)
	}
	if rej := c.service.check(shape{Ref: c.method.Body}, v, ""); rej != nil {
		return rej
	}
	c.body, _ = v.(doc)
	return nil
}

// reply writes a response.
func reply(w http.ResponseWriter, answer any) {
	switch a := answer.(type) {
	case nil:
		w.WriteHeader(http.StatusNoContent)
	case raw:
		w.Header().Set("Content-Type", a.mime)
		_, _ = w.Write(a.data)
	default:
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		_ = json.NewEncoder(w).Encode(a)
	}
}

// world returns the data of an account, which is created on first use.
func (s *Server) world(account string) (*world, error) {
	if err := s.cfg.has(account); err != nil {
		return nil, err
	}
	w := s.worlds[account]
	if w == nil {
		w = newWorld(account, s.cfg.Now)
		s.worlds[account] = w
	}
	return w, nil
}

// Package mcp emulates an MCP server that requires users to sign in, and its authorisation
// server. The latter uses zitadel/oidc, a certified OpenID provider; this package adds what MCP
// requires besides (resource indicators, client registration, metadata) and the user's clicks.
//
// Sources: modelcontextprotocol.io/specification/2025-11-25/basic/authorization,
// RFC 6750, 7009, 7591, 8414, 8707, 9207, 9728.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"

	"oneclaw/internal/emulator/wire"
)

// Users with an account.
const (
	Ada   = "ada"
	Grace = "grace"
)

// Server is both servers. Fields may be read while the servers run; use the methods to change their
// behaviour.
type Server struct {
	// URL is the address of the MCP server, Issuer the authorization server's name.
	URL, Issuer string

	provider *op.Provider
	accounts *accounts
	servers  []*http.Server
	serving  sync.WaitGroup

	mu            sync.Mutex
	misbehavior   Misbehavior
	usedTokens    map[string]bool // access tokens seen in requests
	expiredTokens map[string]bool
	counts        map[string]int
	sessions      []*sdk.Server
}

// Misbehavior makes the servers violate the specifications, or makes them less strict.
type Misbehavior struct {
	// Metadata changes the authorization server's metadata, Resource the MCP server's.
	Metadata, Resource func(map[string]any)
	// Token changes the responses of the token endpoint.
	Token func(map[string]any)
	// Issuer replaces the issuer in responses of the consent page; "-" leaves it out.
	Issuer string
	// RejectTokens makes the MCP server reject all tokens. MissingScope is a scope that no token has.
	RejectTokens bool
	MissingScope string
	// TokenEndpointDown makes the token endpoint answer 503.
	TokenEndpointDown bool
	// NoSignIn makes the MCP server require no sign-in.
	NoSignIn bool
	// ReadOnlyFor is a person for whom erase is listed as read-only.
	ReadOnlyFor string
	// TokenLifetime is the announced lifetime of tokens. 0 means five minutes.
	TokenLifetime time.Duration
}

// Start starts both servers on loopback. Close stops them.
func Start() (*Server, error) {
	s := &Server{usedTokens: map[string]bool{}, expiredTokens: map[string]bool{}, counts: map[string]int{}, accounts: newAccounts()}
	var listen net.ListenConfig
	issuer, err := listen.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	resource, err := listen.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, issuer.Close())
	}
	s.Issuer, s.URL = "http://"+issuer.Addr().String(), "http://"+resource.Addr().String()+"/mcp"
	s.provider, err = op.NewProvider(&op.Config{
		CryptoKey: [32]byte{1}, CryptoKeyId: "1", CodeMethodS256: true, AuthMethodPost: true, GrantTypeRefreshToken: true,
	}, s.accounts, op.StaticIssuer(s.Issuer), op.WithAllowInsecure(), op.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, errors.Join(err, issuer.Close(), resource.Close())
	}
	s.serve(issuer, s.authorizationHandler())
	s.serve(resource, s.resourceHandler())
	return s, nil
}

func (s *Server) serve(l net.Listener, h http.Handler) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	s.servers = append(s.servers, server)
	s.serving.Go(func() { _ = server.Serve(l) })
}

// Close stops both servers.
func (s *Server) Close() error {
	var errs []error
	for _, server := range s.servers {
		errs = append(errs, server.Close())
	}
	s.serving.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.sessions {
		for session := range server.Sessions() {
			_ = session.Close() // its client has disconnected
		}
	}
	return errors.Join(errs...)
}

// Misbehave sets the misbehaviour. The zero value ends it.
func (s *Server) Misbehave(l Misbehavior) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.misbehavior = l
	s.accounts.setTokenLifetime(l.TokenLifetime)
}

func (s *Server) currentMisbehavior() Misbehavior {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.misbehavior
}

// Expire makes the MCP server reject all access tokens seen so far.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token := range s.usedTokens {
		s.expiredTokens[token] = true
	}
}

// ReplaceSecret replaces the secret of a client.
func (s *Server) ReplaceSecret(client, secret string) {
	s.accounts.mu.Lock()
	defer s.accounts.mu.Unlock()
	s.accounts.secrets[client] = secret
}

// WithdrawConsents makes the authorization server forget all consents of a user.
func (s *Server) WithdrawConsents(person string) { s.accounts.withdrawConsents(person) }

// Count returns how often an endpoint was requested: "authorize", "token", "register", "revoke" or
// "metadata".
func (s *Server) Count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[what]
}

// count increments the counter of an endpoint and returns its new value.
func (s *Server) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
	return s.counts[what]
}

// Consent opens a consent page as a user, who signs in and agrees. An empty name refuses consent. It
// returns the address that the browser is redirected to.
func (s *Server) Consent(ctx context.Context, page, person string) (string, error) {
	u, err := url.Parse(page)
	if err != nil {
		return "", err
	}
	login, err := s.redirectTarget(ctx, page)
	if err != nil {
		return "", err
	}
	if person == "" {
		q := u.Query()
		return q.Get("redirect_uri") + "?" + url.Values{"error": {"access_denied"}, "state": {q.Get("state")}, "iss": {s.Issuer}}.Encode(), nil
	}
	at, err := url.Parse(login)
	if err != nil {
		return "", err
	}
	id := at.Query().Get("authRequestID")
	if err := s.accounts.CheckUsernamePassword(person, person, id); err != nil {
		return "", fmt.Errorf("%w: %s", err, login)
	}
	return s.redirectTarget(ctx, s.Issuer+"/authorize/callback?id="+url.QueryEscape(id))
}

// redirectTarget returns the address that a page redirects to.
func (s *Server) redirectTarget(ctx context.Context, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusFound {
		return "", fmt.Errorf("%s answered %s", req.URL.Path, resp.Status)
	}
	return resp.Header.Get("Location"), nil
}

// resourceHandler returns the handler of the MCP server.
func (s *Server) resourceHandler() http.Handler {
	mux := http.NewServeMux()
	tools := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		person := r.Header.Get(personHeader)
		server := newToolServer(person, person == s.currentMisbehavior().ReadOnlyFor)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sessions = append(s.sessions, server)
		return server
	}, &sdk.StreamableHTTPOptions{JSONResponse: true})
	about := strings.TrimSuffix(s.URL, "/mcp") + "/.well-known/oauth-protected-resource/mcp"
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		wire.WriteJSON(w, http.StatusOK, "application/json", s.resourceMetadata())
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		lies := s.currentMisbehavior()
		person := s.tokenOwner(r)
		switch {
		case lies.NoSignIn:
		case lies.RejectTokens || person == "":
			// RFC 9728, section 5.1.
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", resource_metadata="`+about+`"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		case lies.MissingScope != "":
			// RFC 6750, section 3.1.
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+lies.MissingScope+`", resource_metadata="`+about+`"`)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		r.Header.Set(personHeader, person)
		tools.ServeHTTP(w, r)
	})
	return mux
}

// resourceMetadata returns the metadata of the MCP server.
func (s *Server) resourceMetadata() map[string]any {
	said := map[string]any{"resource": s.URL, "authorization_servers": []string{s.Issuer}, "scopes_supported": []string{"openid", "email"}}
	if lie := s.currentMisbehavior().Resource; lie != nil {
		lie(said)
	}
	return said
}

// tokenOwner returns the owner of a request's token, or "" if the token is rejected.
func (s *Server) tokenOwner(r *http.Request) string {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	expired := s.expiredTokens[token]
	s.usedTokens[token] = true
	s.mu.Unlock()
	if !ok || expired {
		return ""
	}
	id, person, ok := strings.Cut(s.decryptToken(token), ":")
	if !ok || !s.accounts.isLive(id) {
		return ""
	}
	return person
}

// decryptToken returns the content of a token, or "" if it cannot be decrypted.
func (s *Server) decryptToken(token string) string {
	text, err := s.provider.Crypto().Decrypt(token)
	if err != nil {
		return ""
	}
	return text
}

// personHeader names the owner of a request's token.
const personHeader = "X-Person"

// newToolServer returns the server of one session, whose instructions name the user who began it. It has two tools that
// return that user, and the token's owner if that is another one: whoami is marked as read-only, erase may be.
func newToolServer(user string, onlyReads bool) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "notes", Title: "Notes of " + user, Version: "1"}, &sdk.ServerOptions{Instructions: "Keeps notes of " + user + "."})
	object := &jsonschema.Schema{Type: "object"}
	said := func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		text := "it is " + user
		if req.Extra != nil && req.Extra.Header.Get(personHeader) != user {
			text += ", with a token of " + req.Extra.Header.Get(personHeader)
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
	}
	server.AddTool(&sdk.Tool{
		Name: "whoami", Description: "Says whose account it is", InputSchema: object, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true},
	}, said)
	server.AddTool(&sdk.Tool{Name: "erase", Description: "Erases all notes", InputSchema: object, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: onlyReads}}, said)
	return server
}

// accounts is the provider's storage, extended by registered clients.
type accounts struct {
	*storage.Storage

	mu            sync.Mutex
	clients       map[string]*storage.Client
	secrets       map[string]string
	tokenOwners   map[string]string // ids of valid access tokens, with their owners
	tokenLifetime time.Duration     // announced lifetime of new tokens
}

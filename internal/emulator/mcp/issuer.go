package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"oneclaw/internal/emulator/wire"
)

// userStore has the users. Each user's password is the user's name.
type userStore struct{}

func (userStore) GetUserByID(id string) *storage.User { return userStore{}.GetUserByUsername(id) }

func (userStore) GetUserByUsername(name string) *storage.User {
	if name != Ada && name != Grace {
		return nil
	}
	return &storage.User{ID: name, Username: name, Password: name, Email: name + "@example.com"}
}

func (userStore) ExampleClientID() string { return "" }

func newAccounts() *accounts {
	return &accounts{
		Storage: storage.NewStorageWithClients(userStore{}, map[string]*storage.Client{}),
		clients: map[string]*storage.Client{}, secrets: map[string]string{}, tokenOwners: map[string]string{},
	}
}

// GetClientByClientID returns a registered client.
func (a *accounts) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.clients[id]; ok {
		return c, nil
	}
	return nil, errors.New("client not found")
}

// AuthorizeClientIDSecret checks a client's secret. It refuses a client that has none.
func (a *accounts) AuthorizeClientIDSecret(_ context.Context, id, secret string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.secrets[id]; !ok || known != secret {
		return errors.New("invalid secret")
	}
	return nil
}

// CreateAccessAndRefreshTokens records the owner of the new access token, and announces the lifetime
// that setTokenLifetime has set, if any.
func (a *accounts) CreateAccessAndRefreshTokens(ctx context.Context, req op.TokenRequest, current string) (id, refresh string, expires time.Time, err error) {
	id, refresh, expires, err = a.Storage.CreateAccessAndRefreshTokens(ctx, req, current)
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.tokenOwners[id] = req.GetSubject()
		if a.tokenLifetime > 0 {
			expires = time.Now().Add(a.tokenLifetime)
		}
	}
	return id, refresh, expires, err
}

// setTokenLifetime sets the announced lifetime of tokens.
func (a *accounts) setTokenLifetime(life time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokenLifetime = life
}

// CreateAccessToken records the owner of the access token of a consent without refresh tokens.
func (a *accounts) CreateAccessToken(ctx context.Context, req op.TokenRequest) (string, time.Time, error) {
	id, expires, err := a.Storage.CreateAccessToken(ctx, req)
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.tokenOwners[id] = req.GetSubject()
	}
	return id, expires, err
}

// RevokeToken revokes one token. The MCP server goes on accepting the access token of a revoked refresh
// token.
func (a *accounts) RevokeToken(ctx context.Context, token, person, client string) *oidc.Error {
	err := a.Storage.RevokeToken(ctx, token, person, client)
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.tokenOwners, token)
	}
	return err
}

func (a *accounts) isLive(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.tokenOwners[id]
	return ok
}

// withdrawConsents ends all consents of a user.
func (a *accounts) withdrawConsents(person string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, whose := range a.tokenOwners {
		if whose == person {
			delete(a.tokenOwners, id)
		}
	}
	for id := range a.clients {
		_ = a.TerminateSession(context.Background(), person, id) // the example storage never fails here
	}
}

// registration is a registration request (RFC 7591, section 2).
type registration struct {
	RedirectURIs            []string `json:"redirect_uris"`
	TokenEndpointAuthMethod string   `json:"token_endpoint_auth_method"`
	GrantTypes              []string `json:"grant_types"`
}

// handleRegister registers a client, with a secret unless its authentication method is none.
func (s *Server) handleRegister(w http.ResponseWriter, r *http.Request) {
	var asked registration
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&asked) != nil || len(asked.RedirectURIs) == 0 ||
		slices.ContainsFunc(asked.RedirectURIs, func(one string) bool { u, err := url.Parse(one); return err != nil || u.Host == "" }) {
		wire.WriteJSON(w, http.StatusBadRequest, "application/json", map[string]string{"error": "invalid_redirect_uri"})
		return
	}
	id := "client-" + strconv.Itoa(s.count("register"))
	said := map[string]any{"client_id": id, "redirect_uris": asked.RedirectURIs, "token_endpoint_auth_method": asked.TokenEndpointAuthMethod, "grant_types": asked.GrantTypes}
	s.accounts.mu.Lock()
	defer s.accounts.mu.Unlock()
	if asked.TokenEndpointAuthMethod == "none" {
		s.accounts.clients[id] = storage.NativeClient(id, asked.RedirectURIs...)
	} else {
		s.accounts.clients[id], s.accounts.secrets[id] = storage.WebClient(id, "secret of "+id, asked.RedirectURIs...), "secret of "+id
		said["client_secret"], said["client_secret_expires_at"] = "secret of "+id, 0
	}
	wire.WriteJSON(w, http.StatusCreated, "application/json", said)
}

// serveMetadata serves the authorization server's metadata (RFC 8414, section 2).
func (s *Server) serveMetadata(w http.ResponseWriter, _ *http.Request) {
	s.count("metadata")
	said := map[string]any{
		"issuer": s.Issuer, "authorization_endpoint": s.Issuer + "/authorize", "token_endpoint": s.Issuer + "/oauth/token",
		"revocation_endpoint": s.Issuer + "/revoke", "registration_endpoint": s.Issuer + "/register", "response_types_supported": []string{"code"},
		"scopes_supported": []string{"openid", "email", "offline_access"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none", "client_secret_basic"},
		"authorization_response_iss_parameter_supported": true,
	}
	if lie := s.currentMisbehavior().Metadata; lie != nil {
		lie(said)
	}
	wire.WriteJSON(w, http.StatusOK, "application/json", said)
}

// authorizationHandler serves authorisation. Beyond the provider's checks, requests must name
// the resource (RFC 8707) and use PKCE, and responses name the issuer (RFC 9207).
func (s *Server) authorizationHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", s.serveMetadata)
	mux.HandleFunc("POST /register", s.handleRegister)
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		s.count("authorize")
		q := r.URL.Query()
		if q.Get("resource") != s.resourceMetadata()["resource"] || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 {
			http.Error(w, "resource or code_challenge is missing", http.StatusBadRequest)
			return
		}
		s.provider.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /authorize/callback", func(w http.ResponseWriter, r *http.Request) {
		s.provider.ServeHTTP(&issuerWriter{ResponseWriter: w, issuer: s.advertisedIssuer()}, r)
	})
	mux.HandleFunc("POST /oauth/token", func(w http.ResponseWriter, r *http.Request) {
		s.count("token")
		switch err := r.ParseForm(); {
		case err != nil || r.PostForm.Get("resource") != s.resourceMetadata()["resource"]:
			wire.WriteJSON(w, http.StatusBadRequest, "application/json", map[string]string{"error": "invalid_target"})
		case s.currentMisbehavior().TokenEndpointDown:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			s.serveToken(w, r)
		}
	})
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		s.count("revoke")
		s.provider.ServeHTTP(w, r)
	})
	return mux
}

// serveToken serves the token endpoint.
func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	lie := s.currentMisbehavior().Token
	if lie == nil {
		s.provider.ServeHTTP(w, r)
		return
	}
	answer := &bufferedResponse{header: http.Header{}, status: http.StatusOK}
	s.provider.ServeHTTP(answer, r)
	var said map[string]any
	if json.Unmarshal(answer.body.Bytes(), &said) == nil && answer.status == http.StatusOK {
		lie(said)
	}
	wire.WriteJSON(w, answer.status, "application/json", said)
}

// bufferedResponse keeps a response.
type bufferedResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the header of the response.
func (b *bufferedResponse) Header() http.Header { return b.header }

// WriteHeader sets the status.
func (b *bufferedResponse) WriteHeader(status int) { b.status = status }

// Write adds to the body.
func (b *bufferedResponse) Write(data []byte) (int, error) { return b.body.Write(data) }

// advertisedIssuer returns the issuer that responses name.
func (s *Server) advertisedIssuer() string {
	if lie := s.currentMisbehavior().Issuer; lie != "" {
		return lie
	}
	return s.Issuer
}

// issuerWriter adds the issuer to redirects with a code, unless it is "-".
type issuerWriter struct {
	http.ResponseWriter
	issuer string
}

// WriteHeader adds the issuer to the redirect's address.
func (n *issuerWriter) WriteHeader(status int) {
	if to := n.Header().Get("Location"); strings.Contains(to, "code=") && n.issuer != "-" {
		n.Header().Set("Location", to+"&iss="+url.QueryEscape(n.issuer))
	}
	n.ResponseWriter.WriteHeader(status)
}

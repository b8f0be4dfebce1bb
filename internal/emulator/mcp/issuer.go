package mcp

import (
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
)

// people are the users; the password is the name.
type people struct{}

func (people) GetUserByID(id string) *storage.User { return people{}.GetUserByUsername(id) }

func (people) GetUserByUsername(name string) *storage.User {
	if name != Ada && name != Grace {
		return nil
	}
	return &storage.User{ID: name, Username: name, Password: name, Email: name + "@example.com"}
}

func (people) ExampleClientID() string { return "" }

func newAccounts() *accounts {
	return &accounts{
		Storage: storage.NewStorageWithClients(people{}, map[string]*storage.Client{}),
		clients: map[string]*storage.Client{}, secrets: map[string]string{}, live: map[string]string{},
	}
}

// GetClientByClientID finds registered clients.
func (a *accounts) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.clients[id]; ok {
		return c, nil
	}
	return nil, errors.New("client not found")
}

// AuthorizeClientIDSecret checks a client's secret, if it has one.
func (a *accounts) AuthorizeClientIDSecret(_ context.Context, id, secret string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.secrets[id]; !ok || known != secret {
		return errors.New("invalid secret")
	}
	return nil
}

// CreateAccessAndRefreshTokens records the valid access token, which replaces the previous one.
func (a *accounts) CreateAccessAndRefreshTokens(ctx context.Context, req op.TokenRequest, current string) (id, refresh string, expires time.Time, err error) {
	id, refresh, expires, err = a.Storage.CreateAccessAndRefreshTokens(ctx, req, current)
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.live[id] = req.GetSubject()
		if a.life > 0 {
			expires = time.Now().Add(a.life)
		}
	}
	return id, refresh, expires, err
}

// say sets the announced lifetime of tokens.
func (a *accounts) say(life time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.life = life
}

// CreateAccessToken is for consents without refresh tokens.
func (a *accounts) CreateAccessToken(ctx context.Context, req op.TokenRequest) (string, time.Time, error) {
	id, expires, err := a.Storage.CreateAccessToken(ctx, req)
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.live[id] = req.GetSubject()
	}
	return id, expires, err
}

// RevokeToken revokes one token, and with a refresh token all of that consent.
func (a *accounts) RevokeToken(ctx context.Context, token, person, client string) *oidc.Error {
	err := a.Storage.RevokeToken(ctx, token, person, client)
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.live, token)
	}
	return err
}

func (a *accounts) knows(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.live[id]
	return ok
}

// withdraw ends all consents of a user.
func (a *accounts) withdraw(person string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, whose := range a.live {
		if whose == person {
			delete(a.live, id)
		}
	}
	for id := range a.clients {
		_ = a.TerminateSession(context.Background(), person, id) // the example never fails here
	}
}

// registration is a registration request (RFC 7591, section 2).
type registration struct {
	Redirects []string `json:"redirect_uris"`
	Method    string   `json:"token_endpoint_auth_method"`
	Grants    []string `json:"grant_types"`
}

// register registers a client, with a secret if requested.
func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var asked registration
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&asked) != nil || len(asked.Redirects) == 0 ||
		slices.ContainsFunc(asked.Redirects, func(one string) bool { u, err := url.Parse(one); return err != nil || u.Host == "" }) {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_redirect_uri"})
		return
	}
	id := "client-" + strconv.Itoa(s.count("register"))
	said := map[string]any{"client_id": id, "redirect_uris": asked.Redirects, "token_endpoint_auth_method": asked.Method, "grant_types": asked.Grants}
	s.accounts.mu.Lock()
	defer s.accounts.mu.Unlock()
	if asked.Method == "none" {
		s.accounts.clients[id] = storage.NativeClient(id, asked.Redirects...)
	} else {
		s.accounts.clients[id], s.accounts.secrets[id] = storage.WebClient(id, "secret of "+id, asked.Redirects...), "secret of "+id
		said["client_secret"], said["client_secret_expires_at"] = "secret of "+id, 0
	}
	answer(w, http.StatusCreated, said)
}

// metadata serves the authorisation server's metadata (RFC 8414, section 2).
func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	s.count("metadata")
	said := map[string]any{
		"issuer": s.Issuer, "authorization_endpoint": s.Issuer + "/authorize", "token_endpoint": s.Issuer + "/oauth/token",
		"revocation_endpoint": s.Issuer + "/revoke", "registration_endpoint": s.Issuer + "/register", "response_types_supported": []string{"code"},
		"scopes_supported": []string{"openid", "email", "offline_access"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none", "client_secret_basic"},
		"authorization_response_iss_parameter_supported": true,
	}
	if lie := s.lying().Metadata; lie != nil {
		lie(said)
	}
	answer(w, http.StatusOK, said)
}

// authorization is the authorisation server. Beyond the provider's checks, requests must name
// the resource (RFC 8707) and use PKCE, and responses name the issuer (RFC 9207).
func (s *Server) authorization() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", s.metadata)
	mux.HandleFunc("POST /register", s.register)
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		s.count("authorize")
		q := r.URL.Query()
		if q.Get("resource") != s.URL || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 {
			http.Error(w, "resource or code_challenge is missing", http.StatusBadRequest)
			return
		}
		s.provider.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /authorize/callback", func(w http.ResponseWriter, r *http.Request) {
		s.provider.ServeHTTP(&issuerWriter{ResponseWriter: w, issuer: s.named()}, r)
	})
	mux.HandleFunc("POST /oauth/token", func(w http.ResponseWriter, r *http.Request) {
		s.count("token")
		switch err := r.ParseForm(); {
		case err != nil || r.PostForm.Get("resource") != s.URL:
			answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_target"})
		case s.lying().Down:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			s.provider.ServeHTTP(w, r)
		}
	})
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		s.count("revoke")
		s.provider.ServeHTTP(w, r)
	})
	return mux
}

// named returns the issuer that responses name.
func (s *Server) named() string {
	if lie := s.lying().Issuer; lie != "" {
		return lie
	}
	return s.Issuer
}

// issuerWriter adds the issuer to redirects.
type issuerWriter struct {
	http.ResponseWriter
	issuer string
}

// WriteHeader adds it to the address.
func (n *issuerWriter) WriteHeader(status int) {
	if to := n.Header().Get("Location"); strings.Contains(to, "code=") && n.issuer != "-" {
		n.Header().Set("Location", to+"&iss="+url.QueryEscape(n.issuer))
	}
	n.ResponseWriter.WriteHeader(status)
}

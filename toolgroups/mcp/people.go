package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"oneclaw/internal/guard"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp/oauth"
)

// maxIdleUsers bounds the users of a server that are kept without a connection.
const maxIdleUsers = 100

// personalServers holds the personal connections of users to a server.
type personalServers struct {
	mu     sync.Mutex
	byUser map[string]*personalServer
	closed bool
}

// personalServer is a server with the personal connection of one user.
type personalServer struct {
	*server
	connectedAt time.Time // the time of the consent to the account that it uses
	activeCalls int       // running calls, guarded by personalServers.mu
}

// isPersonal reports whether each user has a personal connection.
func (s *server) isPersonal() bool { return s.cfg.Auth == AuthOAuth }

// oauthServer returns the server as package oauth needs it.
func (s *server) oauthServer() oauth.Server {
	return oauth.Server{
		Name: s.name, URL: s.cfg.URL, ClientID: s.cfg.ClientID, ClientSecret: s.clientSecret, Issuer: s.cfg.Issuer, Scopes: s.cfg.Scopes, HTTP: s.authClient,
	}
}

// forUser returns the server that the user of a call has to use, and a function to call at the end.
// It checks the user's sign-in before it contacts anything.
func (s *server) forUser(ctx context.Context, user string) (*server, func(), error) {
	if !s.isPersonal() {
		return s, func() {}, nil
	}
	if s.clientCfg.accounts == nil {
		return nil, nil, s.noSignInError()
	}
	token, err := s.clientCfg.accounts.Token(ctx, s.oauthServer(), user, "")
	if err != nil {
		return nil, nil, err
	}
	v, err := s.acquirePersonal(user, token.ConnectedAt)
	if err != nil {
		return nil, nil, err
	}
	return v.server, func() {
		s.userServers.mu.Lock()
		defer s.userServers.mu.Unlock()
		v.activeCalls--
	}, nil
}

func (s *server) noSignInError() error {
	return toolgroups.Errorf(CodeUnavailable, "MCP server '%s' wants people to sign in, which this bot cannot do here.", s.name)
}

// checkReady returns an error if the user of a call cannot use the server, without contacting it.
func (s *server) checkReady(ctx context.Context, call toolgroups.Call) error {
	switch {
	case !s.isPersonal():
		return nil
	case s.clientCfg.accounts == nil:
		return s.noSignInError()
	}
	return s.clientCfg.accounts.CheckConnected(ctx, s.oauthServer(), call.User)
}

// acquirePersonal returns the personal server of a user, new if necessary, and counts its use. One from
// before connectedAt is replaced: another replica has connected an account since, and the server may
// keep the old one in its session.
func (s *server) acquirePersonal(user string, connectedAt time.Time) (*personalServer, error) {
	s.userServers.mu.Lock()
	defer s.userServers.mu.Unlock()
	if s.userServers.closed {
		return nil, errClosed
	}
	v := s.userServers.byUser[user]
	if v != nil && !v.connectedAt.Equal(connectedAt) {
		s.running.Go(v.close)
		v = nil
	}
	if v == nil {
		for _, idle := range s.userServers.dropIdle() {
			s.running.Go(idle.close) // which may wait for one that waits for the lock
		}
		one, err := s.newPersonal(user)
		if err != nil {
			return nil, err
		}
		v = &personalServer{server: one, connectedAt: connectedAt}
		if s.userServers.byUser == nil {
			s.userServers.byUser = map[string]*personalServer{}
		}
		s.userServers.byUser[user] = v
	}
	v.activeCalls++
	return v, nil
}

// newPersonal makes the server of one user. All users share the list of tools that it learns, see [personalServers.withinAll].
func (s *server) newPersonal(user string) (*server, error) {
	family := s.clientCfg
	family.Accounts.KV = nil
	one, err := newServer(family, s.name, s.cfg)
	if err != nil {
		return nil, err
	}
	one.parent = s
	reach := one.dial.(*httpDialer)
	reach.client.Transport = &oauth.Transport{Accounts: s.clientCfg.accounts, Server: s.oauthServer(), User: user, Base: reach.client.Transport}
	return one, nil
}

// withinAll returns entries with only those permissions that they have for everybody who is connected: a tool is judged
// before it is known what the server lists for the person.
func (p *personalServers) withinAll(entries []entry) []entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.byUser {
		own := v.listed()
		for i, e := range entries {
			if o, ok := own[e.Name]; ok {
				entries[i] = e.within(o)
			}
		}
	}
	return entries
}

// listed returns the tools that the server has listed last, by their names there.
func (s *server) listed() map[string]entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return byName(s.record.Listed.Tools)
}

// dropIdle drops users without a connection if there are many users, and returns them to be closed. The lock must be held.
func (p *personalServers) dropIdle() (idle []*personalServer) {
	if len(p.byUser) < maxIdleUsers {
		return nil
	}
	for user, v := range p.byUser {
		if v.activeCalls == 0 && v.isIdle() {
			idle = append(idle, v)
			delete(p.byUser, user)
		}
	}
	return idle
}

// isIdle reports whether the server is neither connected nor connecting.
func (s *server) isIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn == nil && s.attempt == nil
}

// closeUser closes the connection of a user.
func (p *personalServers) closeUser(user string) {
	p.mu.Lock()
	v := p.byUser[user]
	delete(p.byUser, user)
	p.mu.Unlock()
	if v != nil {
		v.close()
	}
}

// close closes all connections.
func (p *personalServers) close() {
	p.mu.Lock()
	p.closed = true
	all := p.byUser
	p.byUser = nil
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, v := range all {
		wg.Go(v.close)
	}
	wg.Wait()
}

// addStatus adds the states of all personal connections to st.
func (p *personalServers) addStatus(st *Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.byUser {
		one := v.status()
		st.Connected = st.Connected || one.Connected
		if one.LastAsked.After(st.LastAsked) {
			st.LastAsked = one.LastAsked
		}
		if one.Problem != "" {
			st.Problem, st.NextRetry = one.Problem, one.NextRetry
		}
	}
	if st.Connected {
		st.Problem = ""
	}
}

// signInClient returns the HTTP client for a server's sign-in, which reaches public addresses and
// the private ones that the operator permits for the server.
func signInClient(ranges []netip.Prefix, family Config) *http.Client {
	client := guard.NewClient(guard.Config{AllowPrivate: append(slices.Clip(ranges), family.AllowPrivate...), Resolver: family.Resolver})
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects || req.Method != http.MethodGet || !sameOrigin(req.URL, via[0].URL) {
			return errors.New("it redirects to another host, which is not followed")
		}
		return nil
	}
	return client
}

// userFixableError returns the error for the model within err if the user can fix it and the server
// is not at fault; nil for other errors.
func userFixableError(err error) error {
	known, ok := errors.AsType[*toolgroups.Error](err)
	if !ok || known.Code != oauth.CodeNotConnected && known.Code != oauth.CodeSignIn && known.Code != toolgroups.CodeDenied {
		return nil
	}
	return known
}

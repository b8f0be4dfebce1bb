package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync"

	"oneclaw/internal/guard"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp/oauth"
)

// maxPeople bounds the users of a server that are kept without a connection.
const maxPeople = 100

// personalServers are the connections of a server of which each user has a personal one.
type personalServers struct {
	mu     sync.Mutex
	by     map[string]*personalServer
	closed bool
}

// personalServer is a server as one user uses it.
type personalServer struct {
	*server
	users int // running calls, guarded by people's lock
}

// personal reports whether each user has a personal connection.
func (s *server) personal() bool { return s.cfg.Auth == AuthOAuth }

// target returns the server as package oauth needs it.
func (s *server) target() oauth.Server {
	return oauth.Server{
		Name: s.name, URL: s.cfg.URL, ClientID: s.cfg.ClientID, ClientSecret: s.secret, Issuer: s.cfg.Issuer, Scopes: s.cfg.Scopes, HTTP: s.signIn,
	}
}

// asUser returns the server as the user of a call uses it, and a function to call at the end. It
// checks the user's sign-in first, before it contacts anything.
func (s *server) asUser(ctx context.Context, user string) (*server, func(), error) {
	if !s.personal() {
		return s, func() {}, nil
	}
	if s.family.accounts == nil {
		return nil, nil, s.noSignIn()
	}
	if _, err := s.family.accounts.Token(ctx, s.target(), user, ""); err != nil {
		return nil, nil, err
	}
	v, err := s.visit(user)
	if err != nil {
		return nil, nil, err
	}
	return v.server, func() {
		s.people.mu.Lock()
		defer s.people.mu.Unlock()
		v.users--
	}, nil
}

func (s *server) noSignIn() error {
	return toolgroups.Errorf(CodeUnavailable, "MCP server '%s' wants people to sign in, which this bot cannot do here.", s.name)
}

// ready returns why the user of a call cannot use the server, without contacting it.
func (s *server) ready(ctx context.Context, call toolgroups.Call) error {
	switch {
	case !s.personal():
		return nil
	case s.family.accounts == nil:
		return s.noSignIn()
	}
	return s.family.accounts.Ready(ctx, s.target(), call.User)
}

// visit returns the connection of a user, new if necessary, and counts its use.
func (s *server) visit(user string) (*personalServer, error) {
	s.people.mu.Lock()
	defer s.people.mu.Unlock()
	if s.people.closed {
		return nil, errClosed
	}
	v := s.people.by[user]
	if v == nil {
		s.people.sweep()
		one, err := s.newPersonal(user)
		if err != nil {
			return nil, err
		}
		v = &personalServer{server: one}
		if s.people.by == nil {
			s.people.by = map[string]*personalServer{}
		}
		s.people.by[user] = v
	}
	v.users++
	return v, nil
}

// newPersonal makes the server of one user. The list that it learns is shared by all.
func (s *server) newPersonal(user string) (*server, error) {
	family := s.family
	family.DataDir, family.Accounts.KV = "", nil
	one, err := newServer(family, s.name, s.cfg)
	if err != nil {
		return nil, err
	}
	one.host = s
	reach := one.dial.(*httpDialer)
	reach.client.Transport = &oauth.Transport{Accounts: s.family.accounts, Server: s.target(), User: user, Base: reach.client.Transport}
	return one, nil
}

// sweep drops users without a connection if there are many. The lock must be held.
func (p *personalServers) sweep() {
	if len(p.by) < maxPeople {
		return
	}
	for user, v := range p.by {
		if v.users == 0 && v.idle() {
			v.close() // it has nothing to wait for
			delete(p.by, user)
		}
	}
}

// idle reports whether nothing is connected or connecting.
func (s *server) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link == nil && s.attempt == nil
}

// leave ends the connection of a user.
func (p *personalServers) leave(user string) {
	p.mu.Lock()
	v := p.by[user]
	delete(p.by, user)
	p.mu.Unlock()
	if v != nil {
		v.close()
	}
}

// close ends all connections.
func (p *personalServers) close() {
	p.mu.Lock()
	p.closed = true
	all := p.by
	p.by = nil
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, v := range all {
		wg.Go(v.close)
	}
	wg.Wait()
}

// status adds up the states of all connections.
func (p *personalServers) status(st *Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.by {
		one := v.status()
		st.Connected = st.Connected || one.Connected
		if one.Problem != "" {
			st.Problem, st.Retry = one.Problem, one.Retry
		}
	}
	if st.Connected {
		st.Problem = ""
	}
}

// signInClient returns the client for a server's sign-in, which reaches public addresses and
// those that the operator permits for the server.
func signInClient(ranges []netip.Prefix, family Config) *http.Client {
	client := guard.NewClient(guard.Config{AllowPrivate: append(slices.Clip(ranges), family.AllowPrivate...), Resolver: family.Resolver})
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects || req.Method != http.MethodGet || !sameOrigin(req.URL, via[0].URL) {
			return errors.New("it redirects to another place, which is not followed")
		}
		return nil
	}
	return client
}

// userFixable returns the part of an error that the user can fix and that is no fault of the
// server; nil for other errors.
func userFixable(err error) error {
	known, ok := errors.AsType[*toolgroups.Error](err)
	if !ok || known.Code != oauth.CodeNotConnected && known.Code != oauth.CodeSignIn && known.Code != toolgroups.CodeDenied {
		return nil
	}
	return known
}

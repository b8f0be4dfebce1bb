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

// maxPeople is how many people of a server are remembered although they use it no more.
const maxPeople = 100

// people are the connections of a server to which each person has one of their own.
type people struct {
	mu     sync.Mutex
	by     map[string]*visitor
	closed bool
}

// visitor is a server as one person uses it.
type visitor struct {
	*server
	users int // calls that run, guarded by the lock of people
}

// personal reports whether each person has a connection of their own.
func (s *server) personal() bool { return s.cfg.Auth == AuthOAuth }

// target is what tokens of the server are for.
func (s *server) target() oauth.Server {
	return oauth.Server{
		Name: s.name, URL: s.cfg.URL, ClientID: s.cfg.ClientID, ClientSecret: s.secret, Issuer: s.cfg.Issuer, Scopes: s.cfg.Scopes, HTTP: s.signIn,
	}
}

// as returns the server as the person of a call uses it, and what to call at the end. The
// person's sign-in is looked at first: without one nothing is reached.
func (s *server) as(ctx context.Context, user string) (*server, func(), error) {
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

// ready returns why the person of a call cannot use the server, as far as that is known without asking it.
func (s *server) ready(ctx context.Context, call toolgroups.Call) error {
	switch {
	case !s.personal():
		return nil
	case s.family.accounts == nil:
		return s.noSignIn()
	}
	return s.family.accounts.Ready(ctx, s.target(), call.User)
}

// visit returns the connection of a person, made where there is none, and counts its user.
func (s *server) visit(user string) (*visitor, error) {
	s.people.mu.Lock()
	defer s.people.mu.Unlock()
	if s.people.closed {
		return nil, errClosed
	}
	v := s.people.by[user]
	if v == nil {
		s.people.sweep()
		one, err := s.guest(user)
		if err != nil {
			return nil, err
		}
		v = &visitor{server: one}
		if s.people.by == nil {
			s.people.by = map[string]*visitor{}
		}
		s.people.by[user] = v
	}
	v.users++
	return v, nil
}

// guest makes the server of one person. What it learns is the list of all.
func (s *server) guest(user string) (*server, error) {
	family := s.family
	family.DataDir, family.Accounts.KV = "", nil
	one, err := newServer(family, s.name, s.cfg)
	if err != nil {
		return nil, err
	}
	one.host = s
	reach := one.dial.(*web)
	reach.client.Transport = &oauth.Transport{Accounts: s.family.accounts, Server: s.target(), User: user, Base: reach.client.Transport}
	return one, nil
}

// sweep forgets people who have no connection, where there are many. It needs the lock.
func (p *people) sweep() {
	if len(p.by) < maxPeople {
		return
	}
	for user, v := range p.by {
		if v.users == 0 && v.idle() {
			v.close() // It has nothing to wait for.
			delete(p.by, user)
		}
	}
}

// idle reports whether nothing is connected, and nothing begins to be.
func (s *server) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link == nil && s.attempt == nil
}

// leave ends the connection of a person.
func (p *people) leave(user string) {
	p.mu.Lock()
	v := p.by[user]
	delete(p.by, user)
	p.mu.Unlock()
	if v != nil {
		v.close()
	}
}

// close ends the connections of all.
func (p *people) close() {
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

// status adds up the connections of all.
func (p *people) status(st *Status) {
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

// signInClient reaches the sign-in of a server: what is public, and what the operator lets
// the server be beside that.
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

// mendable returns what an error says that the person can mend and that is no fault of the
// server: nil for any other.
func mendable(err error) error {
	known, ok := errors.AsType[*toolgroups.Error](err)
	if !ok || known.Code != oauth.CodeNotConnected && known.Code != oauth.CodeSignIn && known.Code != toolgroups.CodeDenied {
		return nil
	}
	return known
}

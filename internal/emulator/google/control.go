package google

import (
	"crypto/rsa"
	"net/url"
)

// Reset restores the initial content of every account, and forgets the requests and faults.
// Sign-ins stay.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.worlds)
	s.seen, s.faults = nil, nil
}

// SignIns returns how many tokens were issued.
func (s *Server) SignIns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.auth.issued
}

// Grant adds scopes to everything an account has consented to.
func (s *Server) Grant(account string, scopes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tokens := range []map[string]grant{s.auth.access, s.auth.refresh} {
		for token, g := range tokens {
			if g.account == account {
				g.scopes = append(g.scopes, scopes...)
				tokens[token] = g
			}
		}
	}
}

// Consent presses the button of the consent page at an address and returns where the browser is
// redirected. An empty account denies.
func (s *Server) Consent(page, account string) (string, error) {
	u, err := url.Parse(page)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.auth.decide(u.Query(), account)
}

// Revoke revokes the consent of an account, as its owner can on Google's pages.
func (s *Server) Revoke(account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auth.revokeAccount(account)
}

// Granted reports whether an account has a consent that can be refreshed.
func (s *Server) Granted(account string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.auth.refresh {
		if g.account == account {
			return true
		}
	}
	return false
}

// ExpireTokens expires all access tokens; refresh tokens stay.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.auth.access)
}

// TrustServiceAccount lets a service account act for every account of the server,
// as an administrator of a Workspace domain can.
func (s *Server) TrustServiceAccount(email string, key *rsa.PublicKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auth.trusted[email] = key
}

// Receive delivers a raw message to the inbox of an account.
func (s *Server) Receive(account, id, raw string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, err := s.world(account)
	if err != nil {
		return err
	}
	l, err := w.mail.letterOf(id, []byte(raw), "", "INBOX", "UNREAD")
	if err != nil {
		return err
	}
	w.mail.deliver(l)
	return nil
}

// Requests returns the requests so far, without those of the sign-in, the oldest first, at most
// the last 2000.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.seen...)
}

// Forget forgets the requests so far and pending faults.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.faults = nil, nil
}

// Inject adds a fault. The first that matches a request applies.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
}

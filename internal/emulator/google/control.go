package google

import (
	"crypto/rsa"
	"net/url"
)

// Reset restores the initial content of every account, and removes the recorded requests and the faults.
// Consents and tokens stay valid.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.accounts)
	s.requests, s.faults = nil, nil
}

// IssuedTokens returns how many tokens were issued.
func (s *Server) IssuedTokens() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.auth.issuedTokens
}

// AddScopes adds scopes to all consents of an account.
func (s *Server) AddScopes(account string, scopes ...string) {
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

// Consent presses the button on the consent page at an address, and returns the address to which the
// browser is redirected. An empty account refuses consent.
func (s *Server) Consent(page, account string) (string, error) {
	u, err := url.Parse(page)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.auth.redirectURL(u.Query(), account)
}

// RevokeConsent revokes the consent of an account, as its owner can on Google's pages.
func (s *Server) RevokeConsent(account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auth.revokeAccount(account)
}

// HasConsent reports whether an account has a refresh token.
func (s *Server) HasConsent(account string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.auth.refresh {
		if g.account == account {
			return true
		}
	}
	return false
}

// ExpireTokens expires all access tokens. Refresh tokens stay valid.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.auth.access)
}

// TrustServiceAccount lets a service account act for every account of the server, as an administrator
// of a Workspace domain can.
func (s *Server) TrustServiceAccount(email string, key *rsa.PublicKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auth.serviceKeys[email] = key
}

// DeliverMail delivers a raw message to the inbox of an account.
func (s *Server) DeliverMail(account, id, raw string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, err := s.account(account)
	if err != nil {
		return err
	}
	l, err := w.mail.parseEmail(id, []byte(raw), "", "INBOX", "UNREAD")
	if err != nil {
		return err
	}
	w.mail.deliver(l)
	return nil
}

// Requests returns the last 2000 requests at most, the oldest first. It leaves out those of the
// sign-in.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// ClearRequests removes the recorded requests and the pending faults.
func (s *Server) ClearRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.faults = nil, nil
}

// Inject adds a fault. The first fault that matches a request applies.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
}

package google

// Reset gives every account what it began with, and forgets the requests and the
// faults. Who is signed in stays signed in.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.worlds)
	s.seen, s.faults = nil, nil
}

// SignIns returns how many requests for tokens were answered with one.
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

// Receive puts a message into the inbox of an account. raw is as it travels.
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

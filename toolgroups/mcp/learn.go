package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"oneclaw/internal/retry"
)

// reloadTools reads the server's list of tools again.
func (s *server) reloadTools(l *serverConn) {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.StartTimeout)
	defer cancel()
	known, err := fetchTools(ctx, l.session)
	if err != nil {
		s.log.Warn("cannot read the changed tool list of an MCP server", "err", s.redactor.line(withoutURL(err).Error()))
		return
	}
	s.updateTools(known)
}

// updateTools stores a list of tools, and calls the change handler if the group has changed.
func (s *server) updateTools(l toolList) {
	if s.parent != nil {
		s.mu.Lock()
		s.record.Listed = l
		s.mu.Unlock()
		s.parent.updateTools(l)
		return
	}
	l.Fingerprint = s.fingerprint
	data, _ := json.Marshal(l) // never fails: strings, and raw JSON that was encoded before
	sum := digest(sha256.Sum256(data))
	s.mu.Lock()
	same := s.record.hasList() && s.listDigest == sum
	s.mu.Unlock()
	if same {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	r, err := s.change(ctx, func(r *record) { *r = r.withList(s, l) })
	s.mu.Lock()
	if err != nil {
		s.log.Error("cannot store what an MCP server lists: its new tools need approval for now", "err", err)
		sum = digest{} // check the list again at the next connection
		r = s.record
		r.Listed = l
	}
	differs := s.use(r)
	s.listDigest, s.useOldProtocol = sum, l.OldProtocol
	waiting := s.pending(r)
	s.mu.Unlock()
	if waiting.first {
		waiting.Changes = nil
	}
	for _, change := range waiting.Changes {
		s.log.Warn("a change of an MCP server waits for an administrator, see /mcp", "tool", s.redactor.line(change.Tool), "change", change.Description)
	}
	if differs && s.clientCfg.OnChange != nil {
		s.clientCfg.OnChange()
	}
}

// discover tries to connect until the list of tools is known, at most discoverTries times.
func (s *server) discover(ctx context.Context, slots chan struct{}) {
	for range discoverTries {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		l, err := s.acquire(ctx)
		if err == nil {
			s.release(l, true)
		}
		<-slots
		if err == nil || errors.Is(err, errClosed) || !s.lacksList() {
			return
		}
		if retry.Wait(ctx, s.status().NextRetry.Sub(s.clientCfg.Now())) != nil {
			return
		}
	}
}

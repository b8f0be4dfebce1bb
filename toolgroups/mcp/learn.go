package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"oneclaw/internal/retry"
)

// reload reads the list again.
func (s *server) reload(l *link) {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.StartTimeout)
	defer cancel()
	known, err := fetch(ctx, l.session)
	if err != nil {
		s.log.Warn("changed tool list of an MCP server was not read", "err", s.redact.line(reason(err).Error()))
		return
	}
	s.learn(known)
}

// learn stores a list, and reports it if the group has changed.
func (s *server) learn(l list) {
	if s.host != nil {
		s.host.learn(l)
		return
	}
	l.Fingerprint = s.cache.fingerprint
	data, err := json.Marshal(l)
	if err != nil {
		s.log.Warn("tool list of an MCP server was not kept", "err", err)
		return
	}
	sum := digest(sha256.Sum256(data))
	s.mu.Lock()
	same := s.known && s.listed == sum
	s.mu.Unlock()
	if same {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), pinTime)
	defer cancel()
	p, err := s.pin(ctx, l)
	if err != nil {
		s.log.Error("new tools of an MCP server ask for now", "err", err)
		sum = digest{} // check it again at the next connection
	}
	s.mu.Lock()
	if err == nil {
		s.pins = p
	}
	g := s.build(pinned(l, s.pins.Allowed), true)
	differs := !s.known || !sameTools(s.group, g)
	s.listed, s.seen, s.known, s.group, s.old = sum, l, true, g, l.Old
	changes, _ := s.waiting()
	s.mu.Unlock()
	for _, change := range changes {
		s.log.Warn("a change of an MCP server waits for an administrator, see /mcp", "tool", s.redact.line(change.Tool), "change", change.What)
	}
	if err := s.cache.write(data); err != nil {
		s.log.Warn("tool list of an MCP server was not kept", "err", err)
	}
	if !differs {
		return
	}
	if s.family.Changed != nil {
		s.family.Changed()
	}
	s.log.Info("tools of an MCP server changed", "group", g.Name, "tools", len(g.Tools)) // the next request uses them
}

// discover connects until the list is known.
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
		if err == nil || errors.Is(err, errClosed) || !s.unknown() {
			return
		}
		if retry.Wait(ctx, s.status().Retry.Sub(s.family.Now())) != nil {
			return
		}
	}
}

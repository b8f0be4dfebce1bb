package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/storage"
)

// PinPrefix begins the keys of the records of what servers said about their tools when they were
// allowed, one record per server.
const PinPrefix = "mcp/pin/"

const (
	// maxPinned bounds either half of a record, in bytes. Tools beyond it count as new ones.
	maxPinned = 3 << 20
	// pinTime bounds reading and writing a record.
	pinTime = 10 * time.Second
	// maxShown bounds a server's text that is shown to an administrator, in characters.
	maxShown = 500
)

// pins is what an administrator allowed a server to say about its tools, by adding or allowing
// it, and what it says differently now. For a server of the settings the first list counts as
// allowed.
type pins struct {
	Allowed list `json:"allowed"`
	// Waiting has the tools whose description has changed, and the server's new description of
	// itself.
	Waiting list `json:"waiting,omitzero"`
}

// Change is a change in what a server says since it was allowed.
type Change struct {
	// Tool is the server's name for the tool; empty for a change of the server itself.
	Tool string
	// What describes the change. Is is the new text, if any, bounded.
	What, Is string
}

// pinned returns a list as it is offered: with the allowed texts, and with a permission only if
// it was both allowed and is claimed now. A tool that was not allowed has none.
func pinned(l, allowed list) list {
	known := byName(allowed.Tools)
	l.Title, l.Instructions = allowed.Title, allowed.Instructions
	l.Tools = slices.Clone(l.Tools)
	for i, e := range l.Tools {
		p, ok := known[e.Name]
		if ok {
			e.Description, e.Parameters = p.Description, p.Parameters
		}
		e.ReadOnly, e.Harmless = ok && p.ReadOnly && e.ReadOnly, ok && p.Harmless && e.Harmless
		l.Tools[i] = e
	}
	return l
}

func byName(entries []entry) map[string]entry {
	m := make(map[string]entry, len(entries))
	for _, e := range entries {
		m[e.Name] = e
	}
	return m
}

// withList returns the record after the server has sent this list. New tools are recorded as
// needing approval.
func (p pins) withList(s *server, l list) pins {
	if p.Allowed.Fingerprint != l.Fingerprint {
		l.Tools = bounded(slices.DeleteFunc(slices.Clone(l.Tools), func(e entry) bool { return e.Fault != "" }))
		return pins{Allowed: l}
	}
	known := byName(p.Allowed.Tools)
	var waiting []entry
	p.Allowed.Tools = slices.Clone(p.Allowed.Tools)
	for _, e := range l.Tools {
		was, ok := known[e.Name]
		if e.Fault != "" || !s.cfg.offers(e.Name) {
			continue
		}
		if !ok {
			was = e
			was.ReadOnly, was.Harmless = false, false
			known[e.Name] = was
			p.Allowed.Tools = append(p.Allowed.Tools, was)
		}
		if len(s.changes(was, e)) > 0 {
			waiting = append(waiting, e)
		}
	}
	p.Allowed.Tools, p.Waiting = bounded(p.Allowed.Tools), list{}
	if len(waiting) > 0 || l.Title != p.Allowed.Title || firstSentence(l.Instructions) != firstSentence(p.Allowed.Instructions) {
		p.Waiting = list{Fingerprint: l.Fingerprint, Title: l.Title, Instructions: l.Instructions, Tools: bounded(waiting)}
	}
	return p
}

// bounded drops the entries beyond [maxPinned].
func bounded(entries []entry) []entry {
	total := 0
	for i, e := range entries {
		if total += len(e.Name) + len(e.Description) + len(e.Parameters) + 100; total > maxPinned {
			return entries[:i]
		}
	}
	return entries
}

// changes describes the changes of a tool that loosen its rules or may mislead.
func (s *server) changes(was, now entry) []Change {
	var all []Change
	say := func(what, is string) {
		all = append(all, Change{Tool: clean(now.Name, maxName), What: what, Is: clean(is, maxShown)})
	}
	both := now
	both.ReadOnly, both.Harmless = now.ReadOnly && was.ReadOnly, now.Harmless && was.Harmless
	if s.effect(now) != s.effect(both) {
		if now.ReadOnly {
			say("says now that it only reads, so that it would run without asking", "")
		} else {
			say("says now that it destroys nothing", "")
		}
	}
	if was.Description != now.Description {
		say("is described otherwise", now.Description)
	}
	if !sameJSON(was.Parameters, now.Parameters) {
		say("takes other parameters", string(now.Parameters))
	}
	return all
}

// sameJSON compares values regardless of escapes.
func sameJSON(a, b json.RawMessage) bool {
	one, errOne := json.Marshal(a)
	other, errOther := json.Marshal(b)
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}

// waiting returns the changes that wait for an administrator, and their code.
func (s *server) waiting() (all []Change, code string) {
	w, allowed := s.pins.Waiting, s.pins.Allowed
	if w.Fingerprint == "" {
		return nil, ""
	}
	if w.Title != allowed.Title {
		all = append(all, Change{What: "calls itself otherwise", Is: clean(w.Title, maxShown)})
	}
	if text := firstSentence(w.Instructions); text != firstSentence(allowed.Instructions) {
		all = append(all, Change{What: "describes itself otherwise", Is: text})
	}
	known := byName(allowed.Tools)
	for _, e := range w.Tools {
		all = append(all, s.changes(known[e.Name], e)...)
	}
	if len(all) == 0 {
		return nil, ""
	}
	data, _ := json.Marshal(w) // strings and raw JSON that was encoded before
	sum := sha256.Sum256(data)
	return all, hex.EncodeToString(sum[:4])
}

// loadPins reads the record. An unreadable one is an error; a missing one, or one of another
// server of the same name, is not.
func (s *server) loadPins(ctx context.Context) (p pins, data []byte, rev storage.Revision, err error) {
	entry, err := s.family.Accounts.KV.Get(ctx, PinPrefix+s.name)
	if errors.Is(err, storage.ErrNotFound) {
		return pins{}, nil, storage.Absent, nil
	}
	if err == nil {
		err = json.Unmarshal(entry.Value, &p)
	}
	if err != nil {
		return pins{}, nil, 0, fmt.Errorf("read what was allowed: %w", err)
	}
	if p.Allowed.Fingerprint != s.cache.fingerprint {
		p = pins{}
	}
	return p, entry.Value, entry.Revision, nil
}

// pin compares a list with the allowed one and stores changes in the record, which other
// processes may write concurrently.
func (s *server) pin(ctx context.Context, l list) (pins, error) {
	if s.family.Accounts.KV == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.pins.withList(s, l), nil
	}
	for {
		p, data, rev, err := s.loadPins(ctx)
		if err != nil {
			return pins{}, err
		}
		p = p.withList(s, l)
		now, err := json.Marshal(p)
		if err != nil || bytes.Equal(now, data) {
			return p, err
		}
		_, err = s.family.Accounts.KV.Put(ctx, PinPrefix+s.name, now, rev)
		if !errors.Is(err, storage.ErrConflict) {
			return p, err
		}
	}
}

// repin reads the record again and reports whether that has changed the group.
func (s *server) repin(ctx context.Context) (bool, error) {
	p, _, _, err := s.loadPins(ctx)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pins = p
	if !s.known {
		return false, nil
	}
	g := s.build(pinned(s.seen, p.Allowed), true)
	differs := !sameTools(s.group, g)
	s.group = g
	return differs, nil
}

// Repin reads the records again, which other processes may have changed.
func (c *Client) Repin(ctx context.Context) error {
	if c.cfg.Accounts.KV == nil {
		return nil
	}
	var errs []error
	changed := false
	for _, s := range c.all() {
		differs, err := s.repin(ctx)
		changed = changed || differs
		if err != nil {
			errs = append(errs, fmt.Errorf("mcp: server %q: %w", s.name, err))
		}
	}
	if changed && c.cfg.Changed != nil {
		c.cfg.Changed()
	}
	return errors.Join(errs...)
}

// Allow allows the changes that wait under the code, and reports whether there were any: later
// changes have another code.
func (c *Client) Allow(ctx context.Context, name, code string) (bool, error) {
	s, ok := c.find(name)
	if !ok || c.cfg.Accounts.KV == nil {
		return false, nil
	}
	for {
		p, _, rev, err := s.loadPins(ctx)
		if err != nil {
			return false, err
		}
		s.mu.Lock()
		s.pins = p
		_, waits := s.waiting()
		s.mu.Unlock()
		if waits == "" || !strings.EqualFold(waits, code) {
			return false, nil
		}
		now := byName(p.Waiting.Tools)
		for i, e := range p.Allowed.Tools {
			if other, ok := now[e.Name]; ok {
				p.Allowed.Tools[i] = other
			}
		}
		p.Allowed.Title, p.Allowed.Instructions = p.Waiting.Title, p.Waiting.Instructions
		p.Allowed.Tools, p.Waiting = bounded(p.Allowed.Tools), list{}
		data, err := json.Marshal(p)
		if err == nil {
			_, err = c.cfg.Accounts.KV.Put(ctx, PinPrefix+s.name, data, rev)
		}
		if errors.Is(err, storage.ErrConflict) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("mcp: server %q: keep what was allowed: %w", s.name, err)
		}
		return true, c.Repin(ctx)
	}
}

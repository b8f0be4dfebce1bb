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

// PinPrefix begins the keys of the pins, one record per server: the descriptions of its tools when
// the server was allowed.
const PinPrefix = "mcp/pin/"

const (
	// maxPinned bounds either half of a record, in bytes. Tools beyond it count as new.
	maxPinned = 3 << 20
	// pinTime bounds reading and writing a record.
	pinTime = 10 * time.Second
	// maxShown bounds a text from a server that is shown to an administrator, in characters.
	maxShown = 500
)

// pins holds the descriptions of tools that an administrator allowed by adding the server or allowing
// its changes, and the changes since then. For a server in the settings the first list counts as
// allowed.
type pins struct {
	Allowed toolList `json:"allowed"`
	// Pending has the tools whose description has changed, and the server's new description of
	// itself.
	Pending toolList `json:"waiting,omitzero"`
}

// Change is a change in a server's descriptions since they were allowed.
type Change struct {
	// Tool is the server's name for the tool; empty for a change of the server itself.
	Tool string
	// Description describes the change. NewText is the new text, if any, shortened.
	Description, NewText string
}

// applyPins returns a list as it is offered: with the allowed texts, and with only those permissions
// that were allowed and are still claimed. A tool that was not allowed has no permissions.
func applyPins(l, allowed toolList) toolList {
	known := byName(allowed.Tools)
	l.Title, l.Instructions = allowed.Title, allowed.Instructions
	l.Tools = slices.Clone(l.Tools)
	for i, e := range l.Tools {
		e.current = e.hash()
		p, ok := known[e.Name]
		if ok {
			e.Description, e.Parameters = p.Description, p.Parameters
		}
		e.ReadOnly, e.NonDestructive = ok && p.ReadOnly && e.ReadOnly, ok && p.NonDestructive && e.NonDestructive
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

// withList returns the pins updated for a list that the server has sent. New tools are pinned as
// needing approval.
func (p pins) withList(s *server, l toolList) pins {
	if p.Allowed.Fingerprint != l.Fingerprint {
		l.Tools = limitSize(slices.DeleteFunc(slices.Clone(l.Tools), func(e entry) bool { return e.Fault != "" }))
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
			was.ReadOnly, was.NonDestructive = false, false
			known[e.Name] = was
			p.Allowed.Tools = append(p.Allowed.Tools, was)
		}
		if len(s.changes(was, e)) > 0 {
			waiting = append(waiting, e)
		}
	}
	p.Allowed.Tools, p.Pending = limitSize(p.Allowed.Tools), toolList{}
	if len(waiting) > 0 || l.Title != p.Allowed.Title || l.Instructions != p.Allowed.Instructions {
		p.Pending = toolList{Fingerprint: l.Fingerprint, Title: l.Title, Instructions: l.Instructions, Tools: limitSize(waiting)}
	}
	return p
}

// limitSize drops the entries beyond maxPinned bytes.
func limitSize(entries []entry) []entry {
	total := 0
	for i, e := range entries {
		if total += len(e.Name) + len(e.Description) + len(e.Parameters) + 100; total > maxPinned {
			return entries[:i]
		}
	}
	return entries
}

// changes describes those changes of a tool that loosen its rules or may mislead.
func (s *server) changes(was, now entry) []Change {
	var all []Change
	say := func(what, is string) {
		all = append(all, Change{Tool: clean(now.Name, maxName), Description: what, NewText: clean(is, maxShown)})
	}
	both := now
	both.ReadOnly, both.NonDestructive = now.ReadOnly && was.ReadOnly, now.NonDestructive && was.NonDestructive
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

// sameJSON reports whether two values are equal regardless of white space and HTML escapes.
func sameJSON(a, b json.RawMessage) bool {
	one, errOne := json.Marshal(a)
	other, errOther := json.Marshal(b)
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}

// pendingChanges returns the changes that wait for an administrator, and the code that allows them.
func (s *server) pendingChanges() (all []Change, code string) {
	w, allowed := s.pins.Pending, s.pins.Allowed
	if w.Fingerprint == "" {
		return nil, ""
	}
	if w.Title != allowed.Title {
		all = append(all, Change{Description: "calls itself otherwise", NewText: clean(w.Title, maxShown)})
	}
	if w.Instructions != allowed.Instructions {
		all = append(all, Change{Description: "describes itself otherwise", NewText: clean(w.Instructions, maxShown)})
	}
	known := byName(allowed.Tools)
	for _, e := range w.Tools {
		all = append(all, s.changes(known[e.Name], e)...)
	}
	if len(all) == 0 {
		return nil, ""
	}
	data, _ := json.Marshal(w) // never fails: strings, and raw JSON that was encoded before
	sum := sha256.Sum256(data)
	return all, hex.EncodeToString(sum[:4])
}

// loadPins reads the pins of the server. Unreadable pins are an error. Missing pins, and those of
// another server of the same name, are returned as empty.
func (s *server) loadPins(ctx context.Context) (p pins, data []byte, rev storage.Revision, err error) {
	entry, err := s.clientCfg.Accounts.KV.Get(ctx, PinPrefix+s.name)
	if errors.Is(err, storage.ErrNotFound) {
		return pins{}, nil, storage.Absent, nil
	}
	if err == nil {
		err = json.Unmarshal(entry.Value, &p)
	}
	if err != nil {
		return pins{}, nil, 0, fmt.Errorf("read the pins: %w", err)
	}
	if p.Allowed.Fingerprint != s.cache.fingerprint {
		p = pins{}
	}
	return p, entry.Value, entry.Revision, nil
}

// updatePins compares a list with the allowed one and stores the changes in the pins, which other
// processes may write concurrently.
func (s *server) updatePins(ctx context.Context, l toolList) (pins, error) {
	if s.clientCfg.Accounts.KV == nil {
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
		_, err = s.clientCfg.Accounts.KV.Put(ctx, PinPrefix+s.name, now, rev)
		if !errors.Is(err, storage.ErrConflict) {
			return p, err
		}
	}
}

// reloadPins reads the pins again and reports whether that has changed the group.
func (s *server) reloadPins(ctx context.Context) (bool, error) {
	p, _, _, err := s.loadPins(ctx)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pins = p
	if !s.hasList {
		return false, nil
	}
	g := s.buildGroup(applyPins(s.lastList, p.Allowed), true)
	differs := !sameTools(s.group, g)
	s.group = g
	return differs, nil
}

// ReloadPins reads the pins again, which other processes may have changed.
func (c *Client) ReloadPins(ctx context.Context) error {
	if c.cfg.Accounts.KV == nil {
		return nil
	}
	var errs []error
	changed := false
	for _, s := range c.currentServers() {
		differs, err := s.reloadPins(ctx)
		changed = changed || differs
		if err != nil {
			errs = append(errs, fmt.Errorf("mcp: server %q: %w", s.name, err))
		}
	}
	if changed && c.cfg.OnChange != nil {
		c.cfg.OnChange()
	}
	return errors.Join(errs...)
}

// AllowChanges allows the pending changes that have this code, and reports whether there were any.
// Later changes have another code.
func (c *Client) AllowChanges(ctx context.Context, name, code string) (bool, error) {
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
		_, waits := s.pendingChanges()
		s.mu.Unlock()
		if waits == "" || !strings.EqualFold(waits, code) {
			return false, nil
		}
		now := byName(p.Pending.Tools)
		for i, e := range p.Allowed.Tools {
			if other, ok := now[e.Name]; ok {
				p.Allowed.Tools[i] = other
			}
		}
		p.Allowed.Title, p.Allowed.Instructions = p.Pending.Title, p.Pending.Instructions
		p.Allowed.Tools, p.Pending = limitSize(p.Allowed.Tools), toolList{}
		data, err := json.Marshal(p)
		if err == nil {
			_, err = c.cfg.Accounts.KV.Put(ctx, PinPrefix+s.name, data, rev)
		}
		if errors.Is(err, storage.ErrConflict) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("mcp: server %q: store the pins: %w", s.name, err)
		}
		return true, c.ReloadPins(ctx)
	}
}

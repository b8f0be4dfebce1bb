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
	"unicode/utf8"

	"oneclaw/storage"
)

// RecordPrefix begins the keys of the records, one per server.
const RecordPrefix = "mcp/pin/"

const (
	// maxStored bounds each of the two lists in a record, in bytes. What is beyond it counts as new at the
	// next connection.
	maxStored = 3 << 20
	// storeTime bounds reading and writing a record.
	storeTime = 10 * time.Second
	// maxShown bounds the changes that an administrator is shown at once, in characters, unless a single one
	// is longer.
	maxShown = 30_000
)

// record is what is known of a server from its connections. What it lists otherwise than it was allowed to waits
// for an administrator.
type record struct {
	// Allowed has the tools as an administrator allowed them by adding the server or allowing its changes.
	// For a server in the settings the first list counts as allowed, but for what one with accounts says of
	// itself; for one that was added in a chat before its tools were known it counts without permissions. It
	// may be that of anybody's account.
	Allowed toolList `json:"allowed"`
	// Listed is what the server listed last, so that its tools are known while it is not connected.
	Listed toolList `json:"listed,omitzero"`
	// Line is the group's line in the prompt as it was allowed: for a server in the settings that of the first
	// list, for one that was added in a chat what the administrator was shown. Empty means none yet.
	Line string `json:"line,omitempty"`
}

func (r record) hasList() bool { return r.Listed.Fingerprint != "" }

// Change is a change in a server's descriptions since they were allowed.
type Change struct {
	// Tool is the server's name for the tool; empty for a change of the server itself.
	Tool string
	// Description describes the change. NewText is the new text, if any.
	Description, NewText string
}

// pending is what waits for an administrator, as far as it is shown at once. It is allowed as a whole.
type pending struct {
	Changes                   []Change
	Line, Title, Instructions string
	Tools                     []entry
	// left is the number of changes that are shown when these have been allowed.
	left int
	// first is set if these are only what the server says of itself to whoever signs in, and nobody was ever shown: that is
	// worth no notice.
	first bool
}

// code returns the code that allows what is pending; "" if nothing is. It has so many bits that a server cannot
// make two changes with one code.
func (p pending) code() string {
	if len(p.Changes) == 0 {
		return ""
	}
	data, _ := json.Marshal(p) // never fails: strings, and raw JSON that was encoded before
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:20])
}

// offered returns the list as it is offered: with the allowed texts, and with only those permissions
// that were allowed and are still claimed. A tool that was not allowed has no permissions.
func (r record) offered() toolList {
	known, l := byName(r.Allowed.Tools), r.Listed
	l.Title, l.Instructions = r.Allowed.Title, r.Allowed.Instructions
	l.Tools = slices.Clone(l.Tools)
	for i, e := range l.Tools {
		e.current, e.saysItReads = e.hash(), e.ReadOnly
		p, ok := known[e.Name]
		if ok {
			e.Description, e.Parameters = p.Description, p.Parameters
		}
		l.Tools[i] = e.within(p)
	}
	return l
}

// within returns the entry with only those permissions that another one has too.
func (e entry) within(other entry) entry {
	e.ReadOnly, e.NonDestructive = e.ReadOnly && other.ReadOnly, e.NonDestructive && other.NonDestructive
	return e
}

// byName returns entries by their names. Of several with one name the first counts, as it is offered, with the permissions
// that all have.
func byName(entries []entry) map[string]entry {
	m := make(map[string]entry, len(entries))
	for _, e := range entries {
		if first, ok := m[e.Name]; ok {
			e = first.within(e)
		}
		m[e.Name] = e
	}
	return m
}

// newRecord returns the record of a server whose list is allowed as it is.
func (s *server) newRecord(l toolList) record {
	r := record{Allowed: l, Listed: l, Line: s.ownLine(l)}
	r.Allowed.Tools = slices.DeleteFunc(slices.Clone(l.Tools), func(e entry) bool { return e.Fault != "" })
	return r
}

// withList returns the record after the server has sent a list. New tools have no permissions. What the server says of
// itself to whoever signs in first may be about that account, so everybody else learns it only once it is allowed.
func (r record) withList(s *server, l toolList) record {
	isFirst := r.Allowed.Fingerprint != l.Fingerprint
	switch {
	case isFirst && s.cfg.addedInChat: // no administrator has seen any of its tools
		r.Allowed = l
		r.Allowed.Tools = nil
	case isFirst:
		r = s.newRecord(l)
	}
	if isFirst && s.isPersonal() {
		r.Line, r.Allowed.Title, r.Allowed.Instructions = "", "", ""
	}
	r.Listed = l
	known := byName(r.Allowed.Tools)
	r.Allowed.Tools = slices.Clone(r.Allowed.Tools)
	for _, e := range l.Tools {
		if _, ok := known[e.Name]; ok || e.Fault != "" || !s.cfg.offers(e.Name) {
			continue
		}
		e = e.within(entry{})
		known[e.Name] = e
		r.Allowed.Tools = append(r.Allowed.Tools, e)
	}
	return r
}

// pending returns what the server lists otherwise than it was allowed to: first the tools that would ask less.
func (s *server) pending(r record) pending {
	p := pending{Line: r.Line, Title: r.Allowed.Title, Instructions: r.Allowed.Instructions}
	if r.Allowed.Fingerprint == "" || !r.hasList() { // deleted with the server: there is nothing to compare with
		return p
	}
	size := 0
	add := func(changes []Change, allow func()) {
		n := 0
		for _, c := range changes {
			n += utf8.RuneCountInString(c.Tool + c.Description + c.NewText)
		}
		switch {
		case n == 0:
			return
		case p.left > 0 || size > 0 && size+n > maxShown:
			p.left += len(changes)
			return
		}
		size += n
		p.Changes = append(p.Changes, changes...)
		allow()
	}
	known := byName(r.Allowed.Tools)
	addTools := func(loosened bool) {
		for _, e := range r.Listed.Tools {
			was, ok := known[e.Name]
			if !ok {
				was = e.within(entry{})
			}
			differs := s.effect(e) != s.effect(e.within(was))
			if !differs {
				e = e.within(was) // a permission that makes no difference is not shown, so it is not allowed either
			}
			if differs == loosened && e.Fault == "" && s.cfg.offers(e.Name) {
				add(s.changes(was, e), func() { p.Tools = append(p.Tools, e) })
			}
		}
	}
	addTools(true)
	add(s.ownChanges(r), func() {
		p.Title, p.Instructions = r.Listed.Title, r.Listed.Instructions
		if s.cfg.Description == "" {
			p.Line = s.ownLine(r.Listed)
		}
	})
	addTools(false)
	p.first = s.isPersonal() && r.Line+r.Allowed.Title+r.Allowed.Instructions == "" && len(p.Tools) == 0
	return p
}

// limitSize drops the entries beyond maxStored bytes.
func limitSize(entries []entry) []entry {
	total := 0
	for i, e := range entries {
		if total += len(e.Name) + len(e.Description) + len(e.Parameters) + 100; total > maxStored {
			return entries[:i]
		}
	}
	return entries
}

// ownChanges describes the changes of what the server says of itself.
func (s *server) ownChanges(r record) (all []Change) {
	if r.Listed.Title != r.Allowed.Title {
		all = append(all, Change{Description: "has a title", NewText: r.Listed.Title})
	}
	if r.Listed.Instructions != r.Allowed.Instructions {
		all = append(all, Change{Description: "has instructions", NewText: r.Listed.Instructions})
	}
	if line := s.ownLine(r.Listed); line != r.Line && s.cfg.Description == "" {
		all = append(all, Change{Description: "has another line in the prompt of every conversation", NewText: line})
	}
	return all
}

// changes describes those changes of a tool that loosen its rules or may mislead.
func (s *server) changes(was, now entry) (all []Change) {
	say := func(what, is string) {
		all = append(all, Change{Tool: now.Name, Description: what, NewText: is})
	}
	if s.effect(now) != s.effect(now.within(was)) {
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

// load reads the record of the server. An unreadable one is an error. A missing one, and that of another
// server of the same name, is returned as empty.
func (s *server) load(ctx context.Context) (r record, data []byte, rev storage.Revision, err error) {
	entry, err := storage.Find(ctx, s.clientCfg.Accounts.KV, RecordPrefix+s.name)
	if err == nil && entry.Revision != storage.Absent {
		err = json.Unmarshal(entry.Value, &r)
	}
	if err != nil {
		return record{}, nil, 0, fmt.Errorf("read the record: %w", err)
	}
	if r.Allowed.Fingerprint != s.fingerprint {
		r = record{}
	}
	return r, entry.Value, entry.Revision, nil
}

// encode returns the JSON of a record, without what is beyond the bounds.
func (r record) encode() []byte {
	r.Allowed.Tools, r.Listed.Tools = limitSize(r.Allowed.Tools), limitSize(r.Listed.Tools)
	data, _ := json.Marshal(r) // never fails: strings, and raw JSON that was encoded before
	return data
}

// change changes the record, which other processes may write concurrently.
func (s *server) change(ctx context.Context, change func(*record)) (r record, err error) {
	if s.clientCfg.Accounts.KV == nil {
		s.mu.Lock()
		r = s.record
		s.mu.Unlock()
		change(&r)
		return r, nil
	}
	err = storage.Retry(ctx, func() error {
		found, data, rev, err := s.load(ctx)
		if r = found; err != nil {
			return err
		}
		change(&r)
		now := r.encode()
		if bytes.Equal(now, data) {
			return nil
		}
		_, err = s.clientCfg.Accounts.KV.Put(ctx, RecordPrefix+s.name, now, rev)
		return err
	})
	return r, err
}

// forgetWords drops what the server has said of itself and was not allowed: it may be about the account of anybody who leaves.
func (s *server) forgetWords(ctx context.Context) error {
	if s.lacksList() {
		return nil
	}
	_, err := s.change(ctx, func(r *record) { r.Listed.Title, r.Listed.Instructions = r.Allowed.Title, r.Allowed.Instructions })
	if err == nil {
		_, err = s.reload(ctx)
	}
	return err
}

// reload reads the record again and reports whether that has changed the group.
func (s *server) reload(ctx context.Context) (bool, error) {
	r, _, _, err := s.load(ctx)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listDigest = digest{} // the record may be another process's
	if !r.hasList() {       // nothing is stored, or by an administrator who has just added it
		r.Listed = s.record.Listed
	}
	return s.use(r), nil
}

// use makes a record the current one, and reports whether that has changed the tools. The caller holds s.mu.
func (s *server) use(r record) bool {
	g := s.buildGroup(r)
	differs := r.hasList() && (!s.record.hasList() || !sameTools(s.group, g))
	s.record, s.group = r, g
	if differs {
		s.log.Info("tools of an MCP server changed", "group", g.Name, "tools", len(g.Tools)) // the next request uses them
	}
	return differs
}

// Reload reads the records again, which other processes may have changed.
func (c *Client) Reload(ctx context.Context) error {
	if c.cfg.Accounts.KV == nil {
		return nil
	}
	var errs []error
	changed := false
	for _, s := range c.currentServers() {
		differs, err := s.reload(ctx)
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
	allowed := false
	_, err := s.change(ctx, func(r *record) {
		p := s.pending(*r)
		if allowed = len(p.Changes) > 0 && strings.EqualFold(p.code(), code); !allowed {
			return
		}
		now := byName(p.Tools)
		for i, e := range r.Allowed.Tools {
			if other, ok := now[e.Name]; ok {
				r.Allowed.Tools[i] = other
			}
		}
		r.Line, r.Allowed.Title, r.Allowed.Instructions = p.Line, p.Title, p.Instructions
	})
	if err != nil {
		return false, fmt.Errorf("mcp: server %q: allow its changes: %w", s.name, err)
	}
	if !allowed {
		return false, nil
	}
	return true, c.Reload(ctx)
}

package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// maxName bounds the name of a tool, as providers do, in bytes.
const maxName = 64

// maxDescription bounds the description of a tool in each request, in characters, and maxManual the whole.
const (
	maxDescription = 2000
	maxManual      = 16_000
)

// timeoutSlack is added to the timeout of a tool, so that the server's own limit is reported first.
const timeoutSlack = 5 * time.Second

var invalidNameChars = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// toolNames makes the names of one server's tools. They depend only on the configuration and the
// tool, so that a tool keeps its name whatever else changes.
type toolNames struct {
	server string
	taken  map[string]bool
	// foreignPrefixes are the prefixes that belong to servers with a longer name.
	foreignPrefixes []string
}

func newToolNames(cfg Config, server string) toolNames {
	n := toolNames{server: server, taken: map[string]bool{toolgroups.LoadToolGroup: true}}
	for _, name := range cfg.TakenNames {
		n.taken[name] = true
	}
	for other := range cfg.Servers {
		if strings.HasPrefix(other, server+"_") {
			n.foreignPrefixes = append(n.foreignPrefixes, other+"_")
		}
	}
	return n
}

// name returns <server>_<tool>, with a hash of the tool's name if it is too long, has other
// characters, or could be another tool's name.
func (n toolNames) name(tool string) string {
	plain := n.server + "_" + invalidNameChars.ReplaceAllString(tool, "_")
	foreign := slices.ContainsFunc(n.foreignPrefixes, func(p string) bool { return strings.HasPrefix(plain, p) })
	if plain == n.server+"_"+tool && len(plain) <= maxName && !n.taken[plain] && !foreign && plain != n.connectName() {
		return plain
	}
	sum := sha256.Sum256([]byte(n.server + "\x00" + tool))
	suffix := "_" + hex.EncodeToString(sum[:])[:8]
	return plain[:min(len(plain), maxName-len(suffix))] + suffix
}

// connectName returns the name of the placeholder for unknown tools.
func (n toolNames) connectName() string { return n.server + "_connect" }

// buildGroup makes the group from a record, which may have no list yet.
func (s *server) buildGroup(r record) toolgroups.Group {
	l := r.offered()
	l.Tools = s.userServers.withinAll(l.Tools)
	g := toolgroups.Group{
		Name:        groupPrefix + s.name,
		DisplayName: strings.TrimSuffix(s.name+" (MCP): "+l.Title, ": "), // shortened, it still has the name that the operator chose
		Description: s.line(r),
		Source:      "mcp:" + s.name,
		Role:        s.role,
		Notes:       l.Instructions,
	}
	if !r.hasList() {
		g.Tools = []toolgroups.Tool{s.newConnectTool()}
		return g
	}
	seen := map[string]bool{}
	for _, e := range l.Tools {
		if !s.cfg.offers(e.Name) {
			continue
		}
		t, err := s.newTool(e)
		if err == nil && seen[t.Name] {
			err = errors.New("it is listed twice")
		}
		if err != nil {
			g.LeftOut = append(g.LeftOut, toolgroups.LeftOut{Name: s.naming.name(e.Name), Reason: s.redactor.line(err.Error())})
			continue
		}
		seen[t.Name] = true
		g.Tools = append(g.Tools, t)
	}
	s.logLeftOut(g.LeftOut)
	slices.SortFunc(g.Tools, func(a, b toolgroups.Tool) int { return strings.Compare(a.Name, b.Name) })
	return g
}

// line returns the group's line in the prompt.
func (s *server) line(r record) string {
	return cmp.Or(clean(s.cfg.Description, toolgroups.MaxDescription), r.Line, "Tools of the MCP server "+s.name)
}

// ownLine returns the line that a list would have: the first sentence of the server's instructions, or the
// offered names of its tools without their prefix.
func (s *server) ownLine(l toolList) string {
	if text := firstSentence(l.Instructions); text != "" {
		return text
	}
	var names []string
	for _, e := range l.Tools {
		if e.Fault == "" && s.cfg.offers(e.Name) {
			names = append(names, strings.TrimPrefix(s.naming.name(e.Name), s.name+"_"))
		}
	}
	slices.Sort(names)
	return clean("Tools of the MCP server "+s.name+": "+strings.Join(slices.Compact(names), ", "), toolgroups.MaxDescription)
}

// maxLogged bounds the tools left out that are logged one by one.
const maxLogged = 20

func (s *server) logLeftOut(all []toolgroups.LeftOut) {
	for _, t := range all[:min(len(all), maxLogged)] {
		s.log.Warn("tool of an MCP server left out", "tool", t.Name, "reason", t.Reason)
	}
	if more := len(all) - maxLogged; more > 0 {
		s.log.Warn("further tools of an MCP server left out", "tools", more)
	}
}

// newTool makes a tool from an entry.
func (s *server) newTool(e entry) (toolgroups.Tool, error) {
	if e.Fault != "" {
		return toolgroups.Tool{}, errors.New(e.Fault)
	}
	offered, err := offeredSchema(e.Parameters)
	if err != nil {
		return toolgroups.Tool{}, err
	}
	description, manual := wording.Clip(e.Description, maxDescription), ""
	if description != e.Description {
		manual = e.Description
	}
	return toolgroups.Tool{
		Name:          s.naming.name(e.Name),
		Description:   cmp.Or(description, "The tool "+clean(e.Name, maxName)+" of the MCP server "+s.name),
		Manual:        manual,
		Parameters:    offered,
		Accepts:       e.Parameters,
		Timeout:       s.cfg.StartTimeout + s.cfg.Timeout + timeoutSlack,
		Wait:          maxAsking,
		Effect:        s.effect(e),
		Personal:      s.isPersonal(),
		Fetches:       true,
		External:      true,
		SaysItReads:   e.saysItReads,
		NeedsApproval: func(toolgroups.Call) bool { return s.cfg.Trust != TrustFull },
		CheckReady:    s.checkReady,
		Version:       s.fingerprint + " " + e.current,
		Run:           s.handler(e),
	}, nil
}

// effect derives the effect of a tool from the server's hints and the configuration.
func (s *server) effect(e entry) toolgroups.Effect {
	hints := s.cfg.Trust != TrustNone
	switch {
	case matchesAny(s.cfg.ReadOnly, e.Name), hints && e.ReadOnly:
		return toolgroups.ReadOnly
	case hints && e.NonDestructive, s.cfg.Trust == TrustFull:
		return toolgroups.Changes
	}
	return toolgroups.Consequential
}

// newConnectTool makes the placeholder in a group whose tools are unknown.
func (s *server) newConnectTool() toolgroups.Tool {
	return toolgroups.Tool{
		Name: s.naming.connectName(),
		Description: "Connect to the MCP server " + s.name + ", whose tools are not known yet. " +
			"Once it is connected, its own tools take the place of this one.",
		Timeout: s.cfg.StartTimeout + timeoutSlack,
		Effect:  toolgroups.ReadOnly, Personal: s.isPersonal(),
		Run: s.runConnect,
	}
}

// firstSentence returns the first sentence of a server's instructions, on one line.
func firstSentence(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text = strings.TrimSpace(strings.TrimLeft(text, "# "))
	if i := strings.Index(text, ". "); i > 0 {
		text = text[:i]
	}
	return clean(strings.TrimSuffix(text, "."), toolgroups.MaxDescription)
}

// sameTools reports whether two groups look the same to models and policies.
func sameTools(a, b toolgroups.Group) bool {
	return a.Description == b.Description && a.DisplayName == b.DisplayName && a.Notes == b.Notes && slices.Equal(a.LeftOut, b.LeftOut) &&
		slices.EqualFunc(a.Tools, b.Tools, func(x, y toolgroups.Tool) bool {
			return x.Name == y.Name && x.Description == y.Description && x.Manual == y.Manual && x.Effect == y.Effect && x.Version == y.Version &&
				string(x.Parameters) == string(y.Parameters) && string(x.Accepts) == string(y.Accepts)
		})
}

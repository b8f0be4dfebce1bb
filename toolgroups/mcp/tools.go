package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"oneclaw/toolgroups"
)

// maxName is how long the name of a tool may be (that of a function at providers).
const maxName = 64

// maxDescription bounds the description of a tool, in characters.
const maxDescription = 2000

// slack is so much more than the server's time that the server's limit is reported.
const slack = 5 * time.Second

var notInName = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// naming makes the names of one server's tools. They depend on nothing but the
// configuration and the tool, so that a tool keeps its name whatever else changes.
type naming struct {
	server string
	taken  map[string]bool
	// foreign are beginnings of names that belong to servers whose name is longer.
	foreign []string
}

func newNaming(cfg Config, server string) naming {
	n := naming{server: server, taken: map[string]bool{toolgroups.LoadToolGroup: true}}
	for _, name := range cfg.Taken {
		n.taken[name] = true
	}
	for other := range cfg.Servers {
		if strings.HasPrefix(other, server+"_") {
			n.foreign = append(n.foreign, other+"_")
		}
	}
	return n
}

// name returns <server>_<tool>, with a hash of the tool's name where that alone is
// too long, holds other characters, or could be the name of another tool.
func (n naming) name(tool string) string {
	plain := n.server + "_" + notInName.ReplaceAllString(tool, "_")
	foreign := slices.ContainsFunc(n.foreign, func(p string) bool { return strings.HasPrefix(plain, p) })
	if plain == n.server+"_"+tool && len(plain) <= maxName && !n.taken[plain] && !foreign && plain != n.connect() {
		return plain
	}
	sum := sha256.Sum256([]byte(n.server + "\x00" + tool))
	suffix := "_" + hex.EncodeToString(sum[:])[:8]
	return plain[:min(len(plain), maxName-len(suffix))] + suffix
}

// connect is the name of the tool that stands for tools not yet known.
func (n naming) connect() string { return n.server + "_connect" }

// build makes the group out of a list; known is false where there is no list yet.
func (s *server) build(l list, known bool) toolgroups.Group {
	g := toolgroups.Group{
		Name:        GroupPrefix + s.name,
		DisplayName: cmp.Or(l.Title, s.name+" (MCP)"),
		Description: cmp.Or(clean(s.cfg.Description, toolgroups.MaxDescription), firstSentence(l.Instructions)),
		Source:      "mcp:" + s.name,
		Role:        s.role,
	}
	if !known {
		g.Description = cmp.Or(g.Description, "Tools of the MCP server "+s.name)
		g.Tools = []toolgroups.Tool{s.connectTool()}
		return g
	}
	seen := map[string]bool{}
	var names []string
	for _, e := range l.Tools {
		if !s.cfg.offers(e.Name) {
			continue
		}
		names = append(names, clean(e.Name, maxName))
		t, err := s.tool(e)
		switch {
		case err != nil:
			s.log.Warn("tool of an MCP server left out", "tool", s.redact.line(e.Name), "reason", s.redact.line(err.Error()))
		case seen[t.Name]:
			s.log.Warn("tool of an MCP server left out", "tool", s.redact.line(e.Name), "reason", "it is listed twice")
		default:
			seen[t.Name] = true
			g.Tools = append(g.Tools, t)
		}
	}
	slices.SortFunc(g.Tools, func(a, b toolgroups.Tool) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(names)
	g.Description = cmp.Or(g.Description, "Tools of the MCP server "+s.name+": "+strings.Join(names, ", "))
	return g
}

// tool makes one tool out of an entry.
func (s *server) tool(e entry) (toolgroups.Tool, error) {
	if e.Fault != "" {
		return toolgroups.Tool{}, errors.New(e.Fault)
	}
	return toolgroups.Tool{
		Name:        s.naming.name(e.Name),
		Description: cmp.Or(e.Description, "The tool "+clean(e.Name, maxName)+" of the MCP server "+s.name),
		Parameters:  e.Parameters,
		Timeout:     s.cfg.StartTimeout + s.cfg.Timeout + slack,
		Wait:        maxAsking,
		Effect:      s.effect(e),
		Personal:    s.personal(),
		Asks:        func(json.RawMessage) bool { return s.cfg.Trust != TrustFull },
		Ready:       s.ready,
		Run:         s.handler(e.Name),
	}, nil
}

// effect weighs what the server says about a tool.
func (s *server) effect(e entry) toolgroups.Effect {
	hints := s.cfg.Trust != TrustNone
	switch {
	case matches(s.cfg.ReadOnly, e.Name), hints && e.ReadOnly:
		return toolgroups.ReadOnly
	case hints && e.Harmless, s.cfg.Trust == TrustFull:
		return toolgroups.Changes
	}
	return toolgroups.Consequential
}

// connectTool stands in a group whose tools have never been seen.
func (s *server) connectTool() toolgroups.Tool {
	return toolgroups.Tool{
		Name: s.naming.connect(),
		Description: "Connect to the MCP server " + s.name + ", whose tools are not known yet. " +
			"Once it is connected, its own tools take the place of this one.",
		Timeout: s.cfg.StartTimeout + slack,
		Effect:  toolgroups.ReadOnly,
		Run:     s.runConnect,
	}
}

// firstSentence is that of a server's instructions, of one line at most.
func firstSentence(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text = strings.TrimSpace(strings.TrimLeft(text, "# "))
	if i := strings.Index(text, ". "); i > 0 {
		text = text[:i]
	}
	return clean(strings.TrimSuffix(text, "."), toolgroups.MaxDescription)
}

// sameTools reports whether two groups look the same to a model and to policies.
func sameTools(a, b toolgroups.Group) bool {
	return a.Description == b.Description && a.DisplayName == b.DisplayName &&
		slices.EqualFunc(a.Tools, b.Tools, func(x, y toolgroups.Tool) bool {
			return x.Name == y.Name && x.Description == y.Description && x.Effect == y.Effect &&
				string(x.Parameters) == string(y.Parameters)
		})
}

package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of a server's list.
const (
	maxTools = 500
	// maxListed bounds the tools that are read at all.
	maxListed = 5000
	// maxInstructions bounds what a server says of itself, in characters.
	maxInstructions = 4000
	// maxOwnName bounds the server's name for a tool, in bytes.
	maxOwnName = 256
	maxPages   = 500
)

// toolList is a server's description of itself and its tools, from the last connection.
type toolList struct {
	// Fingerprint identifies the server. The list is not used for another one.
	Fingerprint  string `json:"fingerprint"`
	Title        string `json:"title,omitempty"`
	Instructions string `json:"instructions,omitempty"`
	// OldProtocol is true if the server was connected with [oldProtocol].
	OldProtocol bool    `json:"old_protocol,omitempty"`
	Tools       []entry `json:"tools"`
}

// entry is a tool as the server describes it.
type entry struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Parameters is the server's own schema, from which the offered one is made; Fault says why the tool
	// cannot be offered.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Fault      string          `json:"fault,omitempty"`
	ReadOnly   bool            `json:"read_only,omitempty"`
	// NonDestructive is the server's hint that the tool is not destructive.
	NonDestructive bool `json:"harmless,omitempty"`
	// ReadsResources is true for the tool of this package that reads the server's resources.
	ReadsResources bool `json:"reads_resources,omitempty"`
	// current is the hash of the server's own description of the tool, which may not be allowed yet.
	current string
	// saysItReads is the server's own hint that the tool only reads, which may not be allowed yet.
	saysItReads bool
}

// listFormat is increased when lists in the older format become unusable.
const listFormat = "2"

// fingerprint returns a hash that identifies a server by its URL or command line, without its headers
// and variables.
func fingerprint(s Server) string {
	h := sha256.New()
	_, _ = h.Write([]byte(listFormat))
	for _, part := range append([]string{s.URL, s.Command, s.Dir}, s.Args...) {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// fetchTools reads the tools of a connected server. Those beyond maxTools have a fault.
func fetchTools(ctx context.Context, session *sdk.ClientSession) (toolList, error) {
	var l toolList
	if init := session.InitializeResult(); init != nil {
		l.Instructions = clean(init.Instructions, maxInstructions)
		if info := init.ServerInfo; info != nil {
			l.Title = clean(info.Title, 60)
		}
		if init.Capabilities != nil && init.Capabilities.Resources != nil {
			l.Tools = append(l.Tools, newResourceEntry())
		}
		if init.Capabilities != nil && init.Capabilities.Tools == nil {
			return l, nil // the server declares no tools, and may not know the request
		}
	}
	cursor, seen := "", map[string]bool{}
	for range maxPages {
		page, err := session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if errorResponse(err) != nil && len(seen) > 0 {
			return l, nil // an old cursor, or one that the server has made up: what is known can be used
		}
		if err != nil {
			return l, fmt.Errorf("list tools: %w", err)
		}
		seen[cursor] = true
		for _, t := range page.Tools {
			e := newEntry(t)
			switch {
			case len(l.Tools) == maxListed:
				return l, nil
			case len(l.Tools) >= maxTools:
				e = entry{Name: e.Name, Fault: fmt.Sprintf("only %d tools of a server are offered", maxTools)}
			}
			l.Tools = slices.DeleteFunc(l.Tools, func(other entry) bool { return other.ReadsResources && other.Name == e.Name })
			l.Tools = append(l.Tools, e)
		}
		if cursor = page.NextCursor; cursor == "" || seen[cursor] {
			return l, nil
		}
	}
	return l, nil
}

// newEntry reads a tool. What cannot be read of it is left out; only a tool that cannot be called has a
// fault.
func newEntry(t *sdk.Tool) entry {
	own := unpackTool(t)
	hints := objectFields(own["annotations"])
	title := cmp.Or(stringOf(own["title"]), stringOf(hints["title"]))
	e := entry{
		Name: t.Name, Description: clean(cmp.Or(stringOf(own["description"]), title), maxManual),
		ReadOnly: isTruth(hints["readOnlyHint"], "true"), NonDestructive: isTruth(hints["destructiveHint"], "false"),
	}
	var err error
	switch {
	case t.Name == "":
		err = errors.New("it has no name")
	case len(t.Name) > maxOwnName || !utf8.ValidString(t.Name):
		e.Name, err = clean(t.Name, maxName), fmt.Errorf("its name is not valid text of at most %d bytes", maxOwnName)
	case stringOf(objectFields(own["execution"])["taskSupport"]) == "required":
		err = errors.New("it runs only as a task of the server, which is not supported")
	case !isForModels(own["_meta"]):
		err = errors.New("it is for the server's own pages, not for models")
	}
	if err == nil {
		e.Parameters, err = ownSchema(own["inputSchema"])
	}
	if err == nil {
		_, err = offeredSchema(e.Parameters)
	}
	if err != nil {
		e.Fault = clean(err.Error(), maxReason)
	}
	return e
}

// newResourceEntry returns the tool that reads a server's resources: results name them by their address. A
// server's own tool of that name takes its place.
func newResourceEntry() entry {
	return entry{
		Name: "read_resource", ReadsResources: true, ReadOnly: true,
		Description: "Read a resource of this server by its address, such as one that a result of its tools names.",
		Parameters:  json.RawMessage(`{"type":"object","properties":{"uri":{"type":"string","description":"The address as it was named"}},"required":["uri"]}`),
	}
}

// isTruth reports whether a hint has a value, which some servers write as a text.
func isTruth(raw json.RawMessage, want string) bool {
	return string(raw) == want || strings.EqualFold(stringOf(raw), want)
}

// isForModels reports whether a tool may be called by models (the extension "MCP Apps").
func isForModels(meta json.RawMessage) bool {
	var visibility []string
	if json.Unmarshal(objectFields(objectFields(meta)["ui"])["visibility"], &visibility) != nil {
		return true
	}
	return slices.Contains(visibility, "model")
}

// hash returns a hash of the entry.
func (e entry) hash() string {
	data, _ := json.Marshal(e) // never fails: strings, and raw JSON that was encoded before
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// digest is the hash of a list, for comparing lists without keeping them.
type digest [sha256.Size]byte

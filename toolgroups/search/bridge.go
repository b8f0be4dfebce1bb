package search

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"oneclaw/toolgroups"
)

// The names of the bridge tools. No other tool may have them.
const (
	ToolSearch   = toolgroups.ToolSearch
	ToolDescribe = toolgroups.ToolDescribe
	ToolCall     = toolgroups.ToolCall
)

// Bounds of the bridge tools.
const (
	// MaxQueries bounds the queries of one search, and MaxNames the names of one description.
	MaxQueries = 7
	MaxNames   = 10

	maxQueryText = 500
	maxEcho      = 64
	maxSchemas   = 24 << 10 // bytes of schemas in one description
)

// BridgeConfig configures a [Bridge].
type BridgeConfig struct {
	// Config is the block tools.tool_search.
	Config Config
	// Catalogue holds the tools that can be found and called. Nil means none.
	Catalogue *Catalogue
	// Direct are the names of the tools in the tools array. Those that are in the catalogue too (a
	// loaded group) may be called either way; calls of the others (the core) through the bridge are
	// refused, with the advice to call them directly.
	Direct []string
	// CallOnly leaves out the search and keeps [ToolDescribe] and [ToolCall]: their texts and the
	// answers to mistakes then refer to load_tool_group, and never change.
	CallOnly bool
	// Outside returns the error for a name that is in neither: a disabled tool, or one that this
	// conversation may not use; nil for an unknown one. A nil Outside knows none.
	Outside func(name string) *toolgroups.Error
	// Unavailable are configured sources that cannot be reached.
	Unavailable []Unavailable
	// Turn are the calls of bridge tools in this turn so far, oldest first, to stop fruitless
	// searches.
	Turn []toolgroups.PastCall
	// Shown, if not nil, returns the answers of loads, searches and descriptions that the model
	// still sees.
	Shown func() []string
	// Limit bounds the text of a description, in characters. 0 means [toolgroups.MaxText].
	Limit int
	// Ranker ranks the tools. Nil means [Words].
	Ranker Ranker
}

// Unavailable is a source whose tools cannot be used now.
type Unavailable struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Bridge makes the bridge tools for one request of one conversation. It is immutable and may be
// used concurrently.
type Bridge struct{ cfg BridgeConfig }

func newBridge(cfg BridgeConfig) *Bridge {
	cfg.Catalogue = cmp.Or(cfg.Catalogue, NewCatalogue(nil))
	cfg.Limit, cfg.Ranker = cmp.Or(cfg.Limit, toolgroups.MaxText), cmp.Or[Ranker](cfg.Ranker, Words{})
	return &Bridge{cfg: cfg}
}

// Assemble returns the tools array: the visible tools in their order without an earlier bridge,
// the bridge tools, and the tools loaded since, so that a load changes nothing in front of it.
// With an empty catalogue there is no bridge.
func (b *Bridge) Assemble(visible, loaded []toolgroups.Tool) []toolgroups.Tool {
	out := Strip(visible)
	if b.cfg.Catalogue.Len() > 0 {
		out = append(out, b.Tools()...)
	}
	return append(out, Strip(loaded)...)
}

// Strip returns the tools without bridge tools.
func Strip(tools []toolgroups.Tool) []toolgroups.Tool {
	return slices.DeleteFunc(slices.Clone(tools), func(t toolgroups.Tool) bool { return toolgroups.Reserved(t.Name) })
}

// Tools returns the bridge tools in their fixed order. The search's text names the number
// of tools in the catalogue; the other texts are always the same.
func (b *Bridge) Tools() []toolgroups.Tool {
	if b.cfg.CallOnly {
		return []toolgroups.Tool{
			b.describeTool("Show parameters of loaded tools, or a group's tools.", `{"type":"object","properties":`+
				`{"names":{"type":"array","items":{"type":"string"}}},"required":["names"]}`),
			b.callTool("Run a loaded tool not listed."),
		}
	}
	n := b.cfg.Catalogue.Len()
	return []toolgroups.Tool{
		{
			Name: ToolSearch,
			Description: fmt.Sprintf("Find more tools, in English, among %d by action and thing. Search before you say that "+
				"something cannot be done. Parameters without a type are strings. A group's name lists all of it.", n),
			Parameters: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},` +
				`"queries":{"type":"array","items":{"type":"string"},"description":"One for each capability, up to 7"},` +
				`"limit":{"type":"integer"}}}`),
			Effect: toolgroups.ReadOnly, OwnArguments: true, Run: b.search,
		},
		b.describeTool("Show all parameters of found tools.", `{"type":"object","properties":{"name":{"type":"string"},`+
			`"names":{"type":"array","items":{"type":"string"},"description":"Up to 10"}}}`),
		b.callTool("Run a found tool. Those listed here are called directly."),
	}
}

func (b *Bridge) describeTool(description, parameters string) toolgroups.Tool {
	return toolgroups.Tool{
		Name: ToolDescribe, Description: description, Parameters: json.RawMessage(parameters),
		Effect: toolgroups.ReadOnly, OwnArguments: true, OwnText: true, Run: b.describe,
	}
}

// callTool only exists to be unwrapped: the caller runs the tool that it stands for.
func (b *Bridge) callTool(description string) toolgroups.Tool {
	return toolgroups.Tool{
		Name: ToolCall, Description: description,
		Parameters: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},` +
			`"arguments":{"type":"object"}},"required":["name","arguments"]}`),
		OwnArguments: true,
	}
}

// shown returns the earlier answers that the model still sees.
func (b *Bridge) shown() []string {
	if b.cfg.Shown == nil {
		return nil
	}
	return b.cfg.Shown()
}

// find searches the catalogue, with the embedder if there is one. The exact name of a tool puts
// it first; the exact name of a group or source returns all its tools.
func (b *Bridge) find(ctx context.Context, query string, limit int) Found {
	c := b.cfg.Catalogue
	_, exact := c.Lookup(query)
	if f, whole := c.whole(query); whole {
		return f
	}
	if exact {
		return c.found(c.index().Search(query, limit))
	}
	return c.found(b.cfg.Ranker.Search(ctx, c.index(), query, limit))
}

// unknown returns the error for a name that is not in the catalogue.
func (b *Bridge) unknown(name string) *toolgroups.Error {
	if toolgroups.Reserved(name) && (name != ToolSearch || !b.cfg.CallOnly) {
		return toolgroups.Errorf(toolgroups.CodeBridge, "'%s' is itself a bridge tool and cannot be reached through another one. Call it directly.",
			name)
	}
	if slices.Contains(b.cfg.Direct, name) {
		return toolgroups.Errorf(toolgroups.CodeBridge, "'%s' is not a deferred tool: it is listed directly, with its parameters. "+
			"Call it directly by its name.", name)
	}
	if b.cfg.Outside != nil {
		if fault := b.cfg.Outside(name); fault != nil {
			return fault
		}
	}
	text := fmt.Sprintf("Tool '%s' not found.", clip(name, maxEcho))
	if like := b.cfg.Catalogue.similarTo(name); len(like) > 0 {
		text += " Did you mean " + list(like) + "?"
	}
	return &toolgroups.Error{Code: toolgroups.CodeNotFound, Message: text +
		" Check the spelling with " + b.finder() + "; do not repeat this call."}
}

// advice says how to run a tool of the catalogue that is not in the tools array.
func (b *Bridge) advice(name string) string {
	if _, ok := b.cfg.Catalogue.Lookup(name); !ok {
		return ""
	}
	return fmt.Sprintf("It is not listed by itself: run it with %s(name=%q, arguments={...}).", ToolCall, name)
}

// finder returns the name of the tool that lists tools.
func (b *Bridge) finder() string {
	if b.cfg.CallOnly {
		return toolgroups.LoadToolGroup
	}
	return ToolSearch
}

// list formats names as 'a', 'b' or 'c'.
func list(names []string) string {
	text := "'" + strings.Join(names, "', '") + "'"
	if at := strings.LastIndex(text, ", "); at >= 0 {
		text = text[:at] + " or " + text[at+2:]
	}
	return text
}

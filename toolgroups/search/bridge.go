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

// Bounds of the bridge tools.
const (
	// maxQueries bounds the queries of one search, and maxNames the names of one description.
	maxQueries = 7
	maxNames   = 10

	maxQueryText = 500
	maxEcho      = 64
	maxSchemas   = 24 << 10 // bytes of schemas in one description
)

// bridgeConfig configures a [bridge].
type bridgeConfig struct {
	// config is the block tools.tool_search.
	config Config
	// catalogue holds the tools that can be found and called. Nil means none.
	catalogue *catalogue
	// directTools are the names of the tools in the tools array. Those that are also in the catalogue
	// (of a loaded group) may be called either way. The others (the core) cannot be called through
	// the bridge; the error asks the model to call them directly.
	directTools []string
	// callOnly leaves out the search and keeps [toolgroups.ToolDescribe] and [toolgroups.ToolCall]. Their descriptions and
	// errors then speak of loading groups instead of searching.
	callOnly bool
	// refusal returns the error for a tool that is neither in catalogue nor in directTools: a disabled
	// tool, or one that this conversation may not use. It returns nil for an unknown tool. A nil
	// refusal knows no tool.
	refusal func(name string) *toolgroups.Error
	// unavailable are the configured sources that cannot be reached.
	unavailable []UnavailableSource
	// pastCalls are the calls of bridge tools in this turn so far, oldest first. The search is refused
	// after too many fruitless ones.
	pastCalls []toolgroups.PastCall
	// shownTexts, if not nil, returns the results of earlier loads, searches and descriptions that
	// are still in the model's context.
	shownTexts func() []string
	// textLimit bounds the text of a description, in characters. 0 means [toolgroups.MaxText].
	textLimit int
	// hybrid ranks the tools. Nil means by words alone.
	hybrid *hybrid
}

// UnavailableSource is a source whose tools cannot be used now.
type UnavailableSource struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// bridge makes the bridge tools for one request of one conversation. It is immutable and may be
// used concurrently.
type bridge struct{ cfg bridgeConfig }

func newBridge(cfg bridgeConfig) *bridge {
	cfg.catalogue = cmp.Or(cfg.catalogue, newCatalogue(nil))
	cfg.textLimit = cmp.Or(cfg.textLimit, toolgroups.MaxText)
	return &bridge{cfg: cfg}
}

// assemble returns the tools array: the visible tools in their order, without the tools of an
// earlier bridge, then the bridge tools, then the loaded tools. Loading a group thus only appends
// to the array. With an empty catalogue there are no bridge tools.
func (b *bridge) assemble(visible, loaded []toolgroups.Tool) []toolgroups.Tool {
	out := stripBridgeTools(visible)
	if len(b.cfg.catalogue.entries) > 0 {
		out = append(out, b.tools()...)
	}
	return append(out, stripBridgeTools(loaded)...)
}

// stripBridgeTools returns the tools without bridge tools.
func stripBridgeTools(tools []toolgroups.Tool) []toolgroups.Tool {
	return slices.DeleteFunc(slices.Clone(tools), func(t toolgroups.Tool) bool { return toolgroups.Reserved(t.Name) })
}

// tools returns the bridge tools in their fixed order. The description of tool_search contains
// the number of tools in the catalogue; the other descriptions are always the same.
func (b *bridge) tools() []toolgroups.Tool {
	if b.cfg.callOnly {
		return []toolgroups.Tool{
			b.newDescribeTool("Show parameters of loaded tools, or a group's tools.", `{"type":"object","properties":`+
				`{"names":{"type":"array","items":{"type":"string"}}},"required":["names"]}`),
			b.newCallTool("Run a loaded tool not listed."),
		}
	}
	n := len(b.cfg.catalogue.entries)
	return []toolgroups.Tool{
		{
			Name: toolgroups.ToolSearch,
			Description: fmt.Sprintf("Find more tools, in English, among %d by action and thing. Search before you say that "+
				"something cannot be done. Parameters without a type are strings. A group's name lists all of it.", n),
			Parameters: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},` +
				`"queries":{"type":"array","items":{"type":"string"},"description":"One for each capability, up to 7"},` +
				`"limit":{"type":"integer"}}}`),
			Effect: toolgroups.ReadOnly, ChecksArguments: true, Run: b.search,
		},
		b.newDescribeTool("Show all parameters of found tools.", `{"type":"object","properties":{"name":{"type":"string"},`+
			`"names":{"type":"array","items":{"type":"string"},"description":"Up to 10"}}}`),
		b.newCallTool("Run a found tool. Those listed here are called directly."),
	}
}

func (b *bridge) newDescribeTool(description, parameters string) toolgroups.Tool {
	return toolgroups.Tool{
		Name: toolgroups.ToolDescribe, Description: description, Parameters: json.RawMessage(parameters),
		Effect: toolgroups.ReadOnly, ChecksArguments: true, BoundsText: true, Run: b.describe,
	}
}

// newCallTool returns tool_call, which never runs: [bridge.resolve] replaces a call of it by the inner call.
func (b *bridge) newCallTool(description string) toolgroups.Tool {
	return toolgroups.Tool{
		Name: toolgroups.ToolCall, Description: description,
		Parameters: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},` +
			`"arguments":{"type":"object"}},"required":["name","arguments"]}`),
		ChecksArguments: true,
	}
}

// shownTexts returns the earlier results that are still in the model's context.
func (b *bridge) shownTexts() []string {
	if b.cfg.shownTexts == nil {
		return nil
	}
	return b.cfg.shownTexts()
}

// find answers a query. For the name of a group or source it returns all its tools. For the exact name
// of a tool it searches by words alone, and that tool comes first.
func (b *bridge) find(ctx context.Context, query string, limit int, index *wordIndex) findResult {
	c := b.cfg.catalogue
	_, exact := c.lookup(query)
	if f, whole := c.lookupOrigin(query); whole {
		return f
	}
	if exact || b.cfg.hybrid == nil {
		return c.resultOf(index.search(query, limit))
	}
	return c.resultOf(b.cfg.hybrid.search(ctx, index, query, limit))
}

// unknownError returns the error for a name that is not in the catalogue.
func (b *bridge) unknownError(name string) *toolgroups.Error {
	if toolgroups.Reserved(name) && (name != toolgroups.ToolSearch || !b.cfg.callOnly) {
		return toolgroups.OwnErrorf(toolgroups.CodeBridge, "'%s' is itself a bridge tool and cannot be reached through another one. Call it directly.",
			name)
	}
	if slices.Contains(b.cfg.directTools, name) {
		return toolgroups.OwnErrorf(toolgroups.CodeBridge, "'%s' is not a deferred tool: it is listed directly, with its parameters. "+
			"Call it directly by its name.", name)
	}
	if b.cfg.refusal != nil {
		if fault := b.cfg.refusal(name); fault != nil {
			return fault
		}
	}
	text := fmt.Sprintf("Tool '%s' not found.", clipLine(name, maxEcho))
	like := b.cfg.catalogue.similar(name)
	if len(like) > 0 {
		text += " Did you mean " + joinNames(toolgroups.Names(toolsOf(like))) + "?"
	}
	return &toolgroups.Error{
		Code: toolgroups.CodeNotFound, Message: text + " Check the spelling with " + b.finderName() + "; do not repeat this call.",
		Own: !slices.ContainsFunc(like, func(e entry) bool { return e.source != toolgroups.SourceBuiltin }), // a server chooses the names of its tools
	}
}

// advice tells the model how to run a tool of the catalogue that is not in the tools array.
func (b *bridge) advice(name string) string {
	if _, ok := b.cfg.catalogue.lookup(name); !ok {
		return ""
	}
	return fmt.Sprintf("It is not listed by itself: run it with %s(name=%q, arguments={...}).", toolgroups.ToolCall, name)
}

// finderName returns the name of the tool that lists tools.
func (b *bridge) finderName() string {
	if b.cfg.callOnly {
		return toolgroups.LoadToolGroup
	}
	return toolgroups.ToolSearch
}

// joinNames formats names as 'a', 'b' or 'c'.
func joinNames(names []string) string {
	text := "'" + strings.Join(names, "', '") + "'"
	if at := strings.LastIndex(text, ", "); at >= 0 {
		text = text[:at] + " or " + text[at+2:]
	}
	return text
}

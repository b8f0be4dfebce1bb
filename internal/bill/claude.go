package bill

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"oneclaw/toolgroups"
)

// claudeRequest is the billed part of a request to the Messages API.
type claudeRequest struct {
	Tools  []json.RawMessage `json:"tools"`
	System []json.RawMessage `json:"system"`

	Messages []struct {
		Role    string            `json:"role"`
		Content []json.RawMessage `json:"content"`
	} `json:"messages"`
}

// claudeTool is a tool of the array.
type claudeTool struct {
	Name         string `json:"name"`
	DeferLoading bool   `json:"defer_loading"`
}

// claudeBlock is a block of a message.
type claudeBlock struct {
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
}

// cacheControlPattern matches a cache mark, which is not part of the cached content.
var cacheControlPattern = regexp.MustCompile(`,?"cache_control":\{[^}]*\}`)

// splitClaudeRequest is a request in segments: the tools that are not deferred, the prompt, and the
// blocks of the messages, each followed by the definitions of the tools that it references.
type splitClaudeRequest struct {
	request
	toolView
	definitions map[string]string
	found       map[string]bool
}

func (c *splitClaudeRequest) add(meter *meter, raw json.RawMessage, more string) {
	text := string(raw)
	if strings.Contains(text, "cache_control") {
		c.cachedForHour = c.cachedForHour || strings.Contains(text, `"ttl":"1h"`)
		text = cacheControlPattern.ReplaceAllString(text, "")
	}
	c.segments, c.marks = append(c.segments, meter.intern(text+more+",")), append(c.marks, len(text) != len(raw))
}

func (p *player) splitClaude(body []byte) (*splitClaudeRequest, error) {
	var r claudeRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("bill: decode the request: %w", err)
	}
	c := &splitClaudeRequest{
		request: request{at: p.elapsed}, toolView: toolView{direct: map[string]bool{}, deferred: map[string]bool{}},
		definitions: map[string]string{}, found: map[string]bool{},
	}
	for _, raw := range r.Tools {
		t, ok := p.claudeTools[string(raw)]
		if !ok {
			if err := json.Unmarshal(raw, &t); err != nil {
				return nil, fmt.Errorf("bill: decode a tool: %w", err)
			}
			p.claudeTools[string(raw)] = t
		}
		if t.DeferLoading {
			c.deferred[t.Name], c.definitions[t.Name] = true, string(raw)
			continue
		}
		c.direct[t.Name] = true
		c.add(p.meter, raw, "")
	}
	for _, raw := range r.System {
		c.add(p.meter, raw, "")
	}
	for _, m := range r.Messages {
		for _, raw := range m.Content {
			var b claudeBlock
			if err := json.Unmarshal(raw, &b); err != nil {
				return nil, fmt.Errorf("bill: decode a block: %w", err)
			}
			c.add(p.meter, raw, c.resolveReferences(b))
			if b.Type == "tool_result" {
				c.texts = append(c.texts, textOf(b.Content))
			}
		}
	}
	return c, nil
}

// referencePattern matches the name of a found tool.
var referencePattern = regexp.MustCompile(`"tool_name":"([^"]+)"`)

// resolveReferences returns the definitions of the tools that a block references, and marks the tools as
// found.
func (c *splitClaudeRequest) resolveReferences(b claudeBlock) (definitions string) {
	if b.Type != "tool_result" && b.Type != "tool_search_tool_result" {
		return ""
	}
	for _, m := range referencePattern.FindAllStringSubmatch(string(b.Content), -1) {
		c.found[m[1]] = true
		definitions += c.definitions[m[1]]
	}
	return definitions
}

func textOf(content json.RawMessage) string {
	var parts []struct{ Text string }
	_ = json.Unmarshal(content, &parts) // other content has no text
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(p.Text)
	}
	return all.String()
}

// answerMessages answers a request to the Messages API. If a tool has to be found first, the provider
// searches within the same reply. Assumed: it then reads the request once more, with the found tools.
func (p *player) answerMessages(body []byte) (string, error) {
	c, err := p.splitClaude(body)
	if err != nil {
		return "", err
	}
	text, calls := p.nextReply(c.toolView)
	if p.err != nil {
		return "", p.err
	}
	var blocks []map[string]any
	if text != "" {
		blocks = append(blocks, map[string]any{"type": "text", "text": text})
	}
	searched := c.request
	searched.segments, searched.marks = slices.Clone(c.segments), slices.Clone(c.marks)
	for _, call := range calls {
		c.output += call.name + call.arguments
		if !c.deferred[call.name] || c.found[call.name] {
			continue
		}
		id, query := "srvtoolu_"+call.id, strings.ReplaceAll(call.name, "_", " ")
		c.output += query
		found := map[string]any{"type": "tool_search_tool_result", "tool_use_id": id, "content": map[string]any{
			"type": "tool_search_tool_search_result", "tool_references": c.search(call.name, p.groups),
		}}
		blocks = append(blocks, map[string]any{"type": "server_tool_use", "id": id, "name": "tool_search_tool_bm25", "input": map[string]any{"query": query}}, found)
		raw, err := toolgroups.EncodeJSON(found)
		if err != nil {
			return "", err
		}
		searched.segments = append(searched.segments, p.meter.intern(string(raw)+c.resolveReferences(claudeBlock{Type: "tool_result", Content: raw})))
		searched.marks = append(searched.marks, false)
	}
	for _, call := range calls {
		blocks = append(blocks, map[string]any{"type": "tool_use", "id": call.id, "name": call.name, "input": json.RawMessage(call.arguments)})
	}
	c.output += text
	c.turn, searched.turn = p.turn, p.turn
	p.requests = append(p.requests, c.request)
	if len(searched.segments) > len(c.segments) {
		p.requests = append(p.requests, searched)
	}
	total := 0
	for _, s := range c.segments {
		total += p.meter.size(s)
	}
	return encodeClaude(blocks, len(calls) > 0, total)
}

// toolsPerSearch is the assumed number of tools that a search finds.
const toolsPerSearch = 5

// search finds a tool, along with others from its group that were not found yet.
func (c *splitClaudeRequest) search(tool string, groups map[string]string) []map[string]string {
	names := []string{tool}
	c.found[tool] = true
	for _, name := range slices.Sorted(maps.Keys(c.deferred)) {
		if len(names) < toolsPerSearch && groups[name] == groups[tool] && !c.found[name] {
			names = append(names, name)
		}
	}
	refs := make([]map[string]string, len(names))
	for i, name := range names {
		refs[i] = map[string]string{"type": "tool_reference", "tool_name": name}
	}
	return refs
}

// encodeClaude encodes a reply as server-sent events.
func encodeClaude(blocks []map[string]any, calls bool, input int) (string, error) {
	var b strings.Builder
	var failed error
	emit := func(kind string, fields map[string]any) {
		fields["type"] = kind
		event, err := toolgroups.EncodeJSON(fields)
		if err != nil {
			failed = err
		}
		b.WriteString("event: " + kind + "\ndata: " + string(event) + "\n\n")
	}
	stop := "end_turn"
	if calls {
		stop = "tool_use"
	}
	emit("message_start", map[string]any{"message": map[string]any{"id": "msg", "type": "message", "role": "assistant", "model": "scripted", "content": []any{}, "usage": map[string]any{"input_tokens": input}}})
	for i, block := range blocks {
		emit("content_block_start", map[string]any{"index": i, "content_block": block})
		emit("content_block_stop", map[string]any{"index": i})
	}
	emit("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop}, "usage": map[string]any{"output_tokens": 1}})
	emit("message_stop", map[string]any{})
	return b.String(), failed
}

package anthropic

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"oneclaw/internal/emulator/openai"
)

// decoded is a valid request.
type decoded struct {
	Model       string          `json:"model"`
	MaxTokens   int             `json:"max_tokens"`
	Stream      bool            `json:"stream"`
	Temperature *float64        `json:"temperature"`
	Thinking    *thinking       `json:"thinking"`
	Output      *outputConfig   `json:"output_config"`
	System      json.RawMessage `json:"system"`
	Tools       []tool          `json:"tools"`
	Messages    []message       `json:"messages"`

	system []block
}

type thinking struct {
	Type    string `json:"type"`
	Budget  int    `json:"budget_tokens"`
	Display string `json:"display"`
}

type outputConfig struct {
	Effort string `json:"effort"`
}

type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Defer       bool            `json:"defer_loading"`
	Cache       *cacheControl   `json:"cache_control"`
}

type cacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`

	blocks []block
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
	Source    struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
	ToolName string        `json:"tool_name"`
	Cache    *cacheControl `json:"cache_control"`

	raw   json.RawMessage
	parts []block
}

var (
	toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	callID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	// olderModels accept a temperature; later ones refuse it (about-claude/models, migration
	// guides).
	olderModels = regexp.MustCompile(`claude-(3|[a-z]+-4(-[0-6])?(-[0-9]{8})?$)`)
	// budgeted models get a thinking budget; adaptive ones decide themselves.
	budgeted = regexp.MustCompile(`claude-(3-7|[a-z]+-4(-[0-5])?(-[0-9]{8})?$)`)
	// always matches models whose thinking cannot be disabled.
	always = regexp.MustCompile(`claude-(fable|mythos)|claude-[a-z]+-5-5`)
)

// decode parses and checks a request.
func (s *Server) decode(body []byte) (*decoded, *openai.Error) {
	d := &decoded{}
	strict := json.NewDecoder(bytes.NewReader(body))
	strict.DisallowUnknownFields()
	if err := strict.Decode(d); err != nil {
		return d, invalid("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	switch {
	case d.Model != s.cfg.Model:
		return d, refuse(404, "not_found_error", "model: %s", d.Model)
	case d.MaxTokens < 1:
		return d, invalid("max_tokens: Field required")
	case d.MaxTokens > 64_000:
		return d, invalid("max_tokens: %d > 64000, which is the maximum allowed number of output tokens for %s", d.MaxTokens, d.Model)
	case len(d.Messages) == 0:
		return d, invalid("messages: at least one message is required")
	}
	for _, check := range []func() *openai.Error{d.checkThinking, d.checkTools, d.read, d.checkMarks, d.checkOrder, func() *openai.Error { return s.checkThoughts(d) }} {
		if refused := check(); refused != nil {
			return d, refused
		}
	}
	return d, nil
}

func (d *decoded) checkThinking() *openai.Error {
	if t := d.Temperature; t != nil && (*t < 0 || *t > 1) {
		return invalid("temperature: range: 0..1")
	}
	if d.Temperature != nil && !olderModels.MatchString(d.Model) {
		return invalid("`temperature` is deprecated for this model.")
	}
	if d.Output != nil && !slices.Contains([]string{"low", "medium", "high", "xhigh", "max"}, d.Output.Effort) {
		return invalid("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
	}
	if d.Output != nil && budgeted.MatchString(d.Model) && !strings.Contains(d.Model, "opus-4-5") {
		return invalid("This model does not support the effort parameter.")
	}
	if d.Thinking == nil {
		return nil
	}
	return d.checkThinkingKind()
}

func (d *decoded) checkThinkingKind() *openai.Error {
	fixed := budgeted.MatchString(d.Model)
	switch kind := d.Thinking.Type; {
	case kind == "adaptive" && fixed:
		return invalid("adaptive thinking is not supported on this model")
	case kind == "disabled" && always.MatchString(d.Model), kind == "enabled" && !fixed && !strings.Contains(d.Model, "4-6"):
		return invalid(`"thinking.type.%s" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`, kind)
	case kind == "enabled" && d.Thinking.Budget < 1024:
		return invalid("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case kind == "enabled" && d.Thinking.Budget >= d.MaxTokens:
		return invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
	case kind == "enabled" && d.Temperature != nil && *d.Temperature != 1:
		return invalid("`temperature` may only be set to 1 when thinking is enabled.")
	}
	return nil
}

func (d *decoded) checkTools() *openai.Error {
	seen, deferred := map[string]bool{}, 0
	for i, t := range d.Tools {
		server := t.Type != "" && t.Type != "custom"
		switch {
		case server && t.Type != "tool_search_tool_bm25_20251119" && t.Type != "tool_search_tool_regex_20251119":
			return invalid("tools.%d: Input tag '%s' found using 'type' does not match any of the expected tags", i, t.Type)
		case !toolName.MatchString(t.Name):
			return invalid("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		case seen[t.Name]:
			return invalid("tools: Tool names must be unique.")
		case t.Defer && t.Cache != nil:
			return invalid("Tool '%s' cannot have both defer_loading=true and cache_control set. Tools with defer_loading cannot use prompt caching.", t.Name)
		}
		seen[t.Name] = true
		if t.Defer {
			deferred++
		}
		if refused := t.checkSchema(i); !server && refused != nil {
			return refused
		}
	}
	return d.checkDeferred(deferred)
}

func (d *decoded) checkDeferred(deferred int) *openai.Error {
	if deferred > 0 && deferred == len(d.Tools) {
		return invalid("At least one tool must have defer_loading=false. The API requires at least one tool to be available without deferred loading.")
	}
	if deferred > 10_000 {
		return invalid("tools: at most 10000 tools can be deferred")
	}
	return nil
}

func (t *tool) checkSchema(i int) *openai.Error {
	var schema map[string]any
	if json.Unmarshal(t.Schema, &schema) != nil || schema["type"] != "object" {
		return invalid("tools.%d.custom.input_schema.type: Field required", i)
	}
	for _, key := range []string{"oneOf", "allOf", "anyOf"} {
		if schema[key] != nil {
			return invalid("tools.%d.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
		}
	}
	return nil
}

// read decodes the contents, strings or blocks.
func (d *decoded) read() (refused *openai.Error) {
	if d.system, refused = readBlocks(d.System, "system"); refused != nil {
		return refused
	}
	for i := range d.Messages {
		m := &d.Messages[i]
		if m.Role != "user" && m.Role != "assistant" {
			return invalid("messages.%d.role: Input should be 'user' or 'assistant'", i)
		}
		if m.blocks, refused = readBlocks(m.Content, "messages"); refused != nil {
			return refused
		}
		if len(m.blocks) == 0 {
			return invalid("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
	}
	return nil
}

func readBlocks(content json.RawMessage, where string) ([]block, *openai.Error) {
	if len(content) == 0 {
		return nil, nil
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []block{{Type: "text", Text: text, raw: content}}, nil
	}
	var raw []json.RawMessage
	if json.Unmarshal(content, &raw) != nil {
		return nil, invalid("%s: Input should be a valid list", where)
	}
	blocks := make([]block, len(raw))
	for i := range raw {
		b := &blocks[i]
		if err := json.Unmarshal(raw[i], b); err != nil {
			return nil, invalid("%s: %v", where, err)
		}
		b.raw = raw[i]
		if refused := b.check(where); refused != nil {
			return nil, refused
		}
	}
	return blocks, nil
}

// check checks a block on its own.
func (b *block) check(where string) (refused *openai.Error) {
	switch b.Type {
	case "text":
		if strings.TrimSpace(b.Text) == "" {
			return invalid("%s: text content blocks must contain non-whitespace text", where)
		}
	case "tool_result":
		b.parts, refused = readBlocks(b.Content, where)
	case "image":
		if b.Source.Type != "base64" || !strings.HasPrefix(b.Source.MediaType, "image/") || b.Source.Data == "" {
			return invalid("%s: image.source: Invalid", where)
		}
	case "thinking", "redacted_thinking":
		if b.Cache != nil {
			return invalid("%s: thinking blocks cannot have cache_control", where)
		}
	case "tool_use", "server_tool_use", "tool_search_tool_result", "tool_reference":
	default:
		return invalid("%s: Input tag '%s' found using 'type' does not match any of the expected tags", where, b.Type)
	}
	return refused
}

// checkMarks permits four marks (prompt-caching).
func (d *decoded) checkMarks() *openai.Error {
	n := 0
	for _, t := range d.Tools {
		if t.Cache != nil {
			n++
		}
	}
	for _, p := range d.positions() {
		if p.marked && !p.tool {
			n++
		}
	}
	if n > 4 {
		return invalid("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	return nil
}

// offered returns the names of all tools.
func (d *decoded) offered() map[string]bool {
	names := map[string]bool{}
	for _, t := range d.Tools {
		names[t.Name] = true
	}
	return names
}

// checkOrder requires the user first and last, and the results of calls at the beginning of the
// next message, each once (tool-use).
func (d *decoded) checkOrder() *openai.Error {
	if d.Messages[0].Role != "user" {
		return invalid("messages: first message must use the \"user\" role")
	}
	if d.Messages[len(d.Messages)-1].Role != "user" {
		return invalid("This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	seen := map[string]bool{}
	var open []string
	for i := range d.Messages {
		m := &d.Messages[i]
		if m.Role == "user" {
			if refused := d.results(i, open); refused != nil {
				return refused
			}
			open = nil
			continue
		}
		if len(open) > 0 {
			return missing(i, open)
		}
		for j, b := range m.blocks {
			if refused := d.checkSaid(i, j); refused != nil {
				return refused
			}
			if b.Type == "tool_use" {
				if seen[b.ID] {
					return invalid("messages.%d: `tool_use` ids must be unique", i)
				}
				seen[b.ID] = true
				open = append(open, b.ID)
			}
		}
	}
	return nil
}

// checkSaid checks a block of a reply.
func (d *decoded) checkSaid(i, j int) *openai.Error {
	m := &d.Messages[i]
	b := &m.blocks[j]
	switch b.Type {
	case "tool_use":
		var input map[string]any
		if !callID.MatchString(b.ID) || json.Unmarshal(b.Input, &input) != nil || !toolName.MatchString(b.Name) {
			return invalid("messages.%d.content.%d.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", i, j)
		}
	case "tool_result", "image", "tool_reference":
		return invalid("messages.%d.content.%d: `%s` blocks are not allowed in assistant messages", i, j, b.Type)
	case "server_tool_use":
		if j+1 >= len(m.blocks) || m.blocks[j+1].Type != "tool_search_tool_result" || m.blocks[j+1].ToolUseID != b.ID {
			return invalid("messages.%d: `server_tool_use` ids were found without a corresponding `tool_search_tool_result` block", i)
		}
	}
	return nil
}

func missing(i int, open []string) *openai.Error {
	return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i-1, strings.Join(open, ", "))
}

func (d *decoded) results(i int, open []string) *openai.Error {
	left, others := slices.Clone(open), false
	for j, b := range d.Messages[i].blocks {
		switch b.Type {
		case "tool_result":
			at := slices.Index(left, b.ToolUseID)
			if at < 0 {
				return invalid("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, b.ToolUseID)
			}
			if others {
				return invalid("messages.%d: `tool_result` blocks must come first in the content", i)
			}
			left = slices.Delete(left, at, at+1)
			for _, part := range b.parts {
				if part.Type != "tool_reference" {
					continue
				}
				if !d.offered()[part.ToolName] {
					return invalid("Tool reference '%s' not found in available tools", part.ToolName)
				}
				if slices.ContainsFunc(b.parts, func(p block) bool { return p.Type != "tool_reference" }) {
					return invalid("messages.%d.content.%d: tool_reference blocks stand alone (assumed)", i, j)
				}
			}
		case "text", "image":
			others = true
		default:
			return invalid("messages.%d.content.%d: `%s` blocks are not allowed in user messages", i, j, b.Type)
		}
	}
	if len(left) > 0 {
		return missing(i, left)
	}
	return nil
}

package anthropic

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"oneclaw/internal/emulator/openai"
)

// messagesRequest is a decoded request.
type messagesRequest struct {
	Model        string          `json:"model"`
	MaxTokens    int             `json:"max_tokens"`
	Stream       bool            `json:"stream"`
	Temperature  *float64        `json:"temperature"`
	Thinking     *thinking       `json:"thinking"`
	OutputConfig *outputConfig   `json:"output_config"`
	System       json.RawMessage `json:"system"`
	Tools        []tool          `json:"tools"`
	Messages     []message       `json:"messages"`

	system []block
}

type thinking struct {
	Type         string `json:"type"`
	BudgetTokens int    `json:"budget_tokens"`
	Display      string `json:"display"`
}

type outputConfig struct {
	Effort string `json:"effort"`
}

type tool struct {
	Type         string          `json:"type"`
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl *cacheControl   `json:"cache_control"`
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
	CacheControl *cacheControl `json:"cache_control"`

	raw   json.RawMessage
	parts []block
}

var (
	toolNamePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	callIDPattern   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	// olderModels accept a temperature; later models refuse it (about-claude/models, migration
	// guides).
	olderModels = regexp.MustCompile(`claude-(3|[a-z]+-4(-[0-6])?(-[0-9]{8})?$)`)
	// budgetModels take a thinking budget; adaptive models choose their own.
	budgetModels = regexp.MustCompile(`claude-(3-7|[a-z]+-4(-[0-5])?(-[0-9]{8})?$)`)
	// alwaysThinkingModels are models whose thinking cannot be disabled.
	alwaysThinkingModels = regexp.MustCompile(`claude-(fable|mythos)|claude-[a-z]+-5-5`)
)

// decode parses and checks a request.
func (s *Server) decode(body []byte) (*messagesRequest, *openai.Error) {
	d := &messagesRequest{}
	strict := json.NewDecoder(bytes.NewReader(body))
	strict.DisallowUnknownFields()
	if err := strict.Decode(d); err != nil {
		return d, invalidRequest("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	switch {
	case d.Model != s.cfg.Model:
		return d, newError(404, "not_found_error", "model: %s", d.Model)
	case d.MaxTokens < 1:
		return d, invalidRequest("max_tokens: Field required")
	case d.MaxTokens > 64_000:
		return d, invalidRequest("max_tokens: %d > 64000, which is the maximum allowed number of output tokens for %s", d.MaxTokens, d.Model)
	case len(d.Messages) == 0:
		return d, invalidRequest("messages: at least one message is required")
	}
	for _, check := range []func() *openai.Error{d.checkThinking, d.checkTools, d.readContents, d.checkBreakpoints, d.checkOrder, func() *openai.Error { return s.checkThoughts(d) }} {
		if refused := check(); refused != nil {
			return d, refused
		}
	}
	return d, nil
}

func (d *messagesRequest) checkThinking() *openai.Error {
	if t := d.Temperature; t != nil && (*t < 0 || *t > 1) {
		return invalidRequest("temperature: range: 0..1")
	}
	if d.Temperature != nil && !olderModels.MatchString(d.Model) {
		return invalidRequest("`temperature` is deprecated for this model.")
	}
	if d.OutputConfig != nil && !slices.Contains([]string{"low", "medium", "high", "xhigh", "max"}, d.OutputConfig.Effort) {
		return invalidRequest("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
	}
	if d.OutputConfig != nil && budgetModels.MatchString(d.Model) && !strings.Contains(d.Model, "opus-4-5") {
		return invalidRequest("This model does not support the effort parameter.")
	}
	if d.OutputConfig != nil && slices.Contains(missingEfforts(d.Model), d.OutputConfig.Effort) {
		return invalidRequest("This model does not support effort level '%s'. Supported levels: high, low, medium.", d.OutputConfig.Effort)
	}
	if d.Thinking == nil {
		return nil
	}
	return d.checkThinkingKind()
}

// missingEfforts returns the efforts that a model with efforts lacks (code.claude.com/docs/en/model-config;
// dario PR 491 has the wording).
func missingEfforts(model string) []string {
	switch {
	case strings.Contains(model, "4-5"):
		return []string{"xhigh", "max"}
	case strings.Contains(model, "4-6"):
		return []string{"xhigh"}
	}
	return nil
}

func (d *messagesRequest) checkThinkingKind() *openai.Error {
	fixed := budgetModels.MatchString(d.Model)
	switch kind := d.Thinking.Type; {
	case kind == "adaptive" && fixed:
		return invalidRequest("adaptive thinking is not supported on this model")
	case kind == "disabled" && alwaysThinkingModels.MatchString(d.Model), kind == "enabled" && !fixed && !strings.Contains(d.Model, "4-6"):
		return invalidRequest(`"thinking.type.%s" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`, kind)
	case kind == "enabled" && d.Thinking.BudgetTokens < 1024:
		return invalidRequest("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case kind == "enabled" && d.Thinking.BudgetTokens >= d.MaxTokens:
		return invalidRequest("`max_tokens` must be greater than `thinking.budget_tokens`.")
	case kind == "enabled" && d.Temperature != nil && *d.Temperature != 1:
		return invalidRequest("`temperature` may only be set to 1 when thinking is enabled.")
	}
	return nil
}

func (d *messagesRequest) checkTools() *openai.Error {
	seen := map[string]bool{}
	for i, t := range d.Tools {
		switch {
		case t.Type != "" && t.Type != "custom":
			return invalidRequest("tools.%d: Input tag '%s' found using 'type' does not match any of the expected tags", i, t.Type)
		case !toolNamePattern.MatchString(t.Name):
			return invalidRequest("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		case seen[t.Name]:
			return invalidRequest("tools: Tool names must be unique.")
		}
		seen[t.Name] = true
		if refused := t.checkSchema(i); refused != nil {
			return refused
		}
	}
	return nil
}

func (t *tool) checkSchema(i int) *openai.Error {
	if problem := openai.ClaudeSchemaError(t.InputSchema); problem != "" {
		return invalidRequest("tools.%d.custom.%s", i, problem)
	}
	return nil
}

// readContents decodes the contents of the prompt and the messages, which are strings or blocks.
func (d *messagesRequest) readContents() (refused *openai.Error) {
	if d.system, refused = readBlocks(d.System, "system"); refused != nil {
		return refused
	}
	for i := range d.Messages {
		m := &d.Messages[i]
		if m.Role != "user" && m.Role != "assistant" {
			return invalidRequest("messages.%d.role: Input should be 'user' or 'assistant'", i)
		}
		if m.blocks, refused = readBlocks(m.Content, "messages"); refused != nil {
			return refused
		}
		if len(m.blocks) == 0 {
			return invalidRequest("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
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
		return nil, invalidRequest("%s: Input should be a valid list", where)
	}
	blocks := make([]block, len(raw))
	for i := range raw {
		b := &blocks[i]
		if err := json.Unmarshal(raw[i], b); err != nil {
			return nil, invalidRequest("%s: %v", where, err)
		}
		b.raw = raw[i]
		if refused := b.check(where); refused != nil {
			return nil, refused
		}
	}
	return blocks, nil
}

// check checks a block by itself.
func (b *block) check(where string) (refused *openai.Error) {
	switch b.Type {
	case "text":
		if strings.TrimSpace(b.Text) == "" {
			return invalidRequest("%s: text content blocks must contain non-whitespace text", where)
		}
	case "tool_result":
		b.parts, refused = readBlocks(b.Content, where)
	case "image":
		if b.Source.Type != "base64" || !strings.HasPrefix(b.Source.MediaType, "image/") || b.Source.Data == "" {
			return invalidRequest("%s: image.source: Invalid", where)
		}
	case "thinking", "redacted_thinking":
		if b.CacheControl != nil {
			return invalidRequest("%s: thinking blocks cannot have cache_control", where)
		}
	case "tool_use":
	default:
		return invalidRequest("%s: Input tag '%s' found using 'type' does not match any of the expected tags", where, b.Type)
	}
	return refused
}

// checkBreakpoints permits at most four cache breakpoints (prompt-caching).
func (d *messagesRequest) checkBreakpoints() *openai.Error {
	n := 0
	for _, t := range d.Tools {
		if t.CacheControl != nil {
			n++
		}
	}
	for _, p := range d.promptBlocks() {
		if p.marked && !p.tool {
			n++
		}
	}
	if n > 4 {
		return invalidRequest("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	return nil
}

// checkOrder requires that the first and last message are the user's, and that the message after tool
// calls begins with the results of all of them, each once (tool-use).
func (d *messagesRequest) checkOrder() *openai.Error {
	if d.Messages[0].Role != "user" {
		return invalidRequest("messages: first message must use the \"user\" role")
	}
	if d.Messages[len(d.Messages)-1].Role != "user" {
		return invalidRequest("This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	seen := map[string]bool{}
	var open []string
	for i := range d.Messages {
		m := &d.Messages[i]
		if m.Role == "user" {
			if refused := d.checkResults(i, open); refused != nil {
				return refused
			}
			open = nil
			continue
		}
		if len(open) > 0 {
			return missingResults(i, open)
		}
		for j, b := range m.blocks {
			if refused := d.checkReplyBlock(i, j); refused != nil {
				return refused
			}
			if b.Type == "tool_use" {
				if seen[b.ID] {
					return invalidRequest("messages.%d: `tool_use` ids must be unique", i)
				}
				seen[b.ID] = true
				open = append(open, b.ID)
			}
		}
	}
	return nil
}

// checkReplyBlock checks a block of an assistant message.
func (d *messagesRequest) checkReplyBlock(i, j int) *openai.Error {
	m := &d.Messages[i]
	b := &m.blocks[j]
	switch b.Type {
	case "tool_use":
		var input map[string]any
		if !callIDPattern.MatchString(b.ID) || json.Unmarshal(b.Input, &input) != nil || !toolNamePattern.MatchString(b.Name) {
			return invalidRequest("messages.%d.content.%d.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", i, j)
		}
	case "tool_result", "image":
		return invalidRequest("messages.%d.content.%d: `%s` blocks are not allowed in assistant messages", i, j, b.Type)
	}
	return nil
}

func missingResults(i int, open []string) *openai.Error {
	return invalidRequest("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i-1, strings.Join(open, ", "))
}

func (d *messagesRequest) checkResults(i int, open []string) *openai.Error {
	left, others := slices.Clone(open), false
	for j, b := range d.Messages[i].blocks {
		switch b.Type {
		case "tool_result":
			at := slices.Index(left, b.ToolUseID)
			if at < 0 {
				return invalidRequest("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, b.ToolUseID)
			}
			if others {
				return invalidRequest("messages.%d: `tool_result` blocks must come first in the content", i)
			}
			left = slices.Delete(left, at, at+1)
		case "text", "image":
			others = true
		default:
			return invalidRequest("messages.%d.content.%d: `%s` blocks are not allowed in user messages", i, j, b.Type)
		}
	}
	if len(left) > 0 {
		return missingResults(i, left)
	}
	return nil
}

package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"oneclaw/agent"
	"oneclaw/agent/provider"
)

// maxCalls bounds how many calls in a reply are decoded.
const maxCalls = 1024

var (
	errIncomplete = errors.New("the stream ended without a finish reason")
	errBroken     = errors.New("the provider reported an error in its reply")
)

var (
	// brokenReasons are the finish reasons of replies that are not complete: OpenRouter's, DeepSeek's
	// (api-docs.deepseek.com/api/create-chat-completion), Z.ai's and vLLM's.
	brokenReasons = []string{"error", "insufficient_system_resource", "network_error", "abort"}
	// limitReasons are those of replies that reached the output limit or, at Mistral, the context
	// (docs.mistral.ai/api).
	limitReasons = []string{string(api.FinishReasonLength), "model_length", "max_tokens"}
)

// chunk is a stream event, or the whole reply of a server that does not stream. In the latter, choices
// have a message instead of a delta.
type chunk struct {
	Model   provider.Text
	Choices []choice
	// Usage is decoded apart: a wrong type in it must not cost the reply.
	Usage json.RawMessage
	// Error is an object or a text. Some servers put its fields at the top level instead.
	Error json.RawMessage
	provider.ErrorBody
}

// usage holds a server's token counts. Some servers report the cache in Anthropic's fields.
type usage struct {
	PromptTokens        provider.Count `json:"prompt_tokens"`
	CompletionTokens    provider.Count `json:"completion_tokens"`
	TotalTokens         provider.Count `json:"total_tokens"`
	PromptTokensDetails cacheCounts    `json:"prompt_tokens_details"`
	// CacheRead and CacheCreation are Anthropic's (Portkey, LiteLLM).
	CacheRead     provider.Count `json:"cache_read_input_tokens"`
	CacheCreation provider.Count `json:"cache_creation_input_tokens"`
}

// cacheCounts are the counts about a cache, in both APIs.
type cacheCounts struct {
	CachedTokens     provider.Count `json:"cached_tokens"`
	CacheWriteTokens provider.Count `json:"cache_write_tokens"`
}

// counts returns the counts.
func (u *usage) counts() provider.Counts {
	return provider.Counts{
		Input: int(u.PromptTokens), Output: int(u.CompletionTokens), Total: int(u.TotalTokens),
		Cached: int(max(u.PromptTokensDetails.CachedTokens, u.CacheRead)), Written: int(max(u.PromptTokensDetails.CacheWriteTokens, u.CacheCreation)),
	}
}

type choice struct {
	Index        provider.Count
	Delta        delta
	Message      *delta
	FinishReason provider.Text `json:"finish_reason"`
}

// delta is a piece of a reply. Servers use different fields for reasoning.
type delta struct {
	Content          contentText
	Refusal          provider.Text
	ReasoningContent provider.Text `json:"reasoning_content"`
	Reasoning        provider.Text
	ReasoningDetails []detail   `json:"reasoning_details"`
	ToolCalls        []toolCall `json:"tool_calls"`
}

// contentText is the content of a message: a string, or text and thinking parts.
type contentText struct{ text, reasoning string }

// UnmarshalJSON decodes a string or a list of parts.
func (s *contentText) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		data = slices.Concat([]byte("["), data, []byte("]"))
	}
	if len(data) > 0 && data[0] != '[' {
		_ = json.Unmarshal(data, &s.text) // anything else is no text
		return nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	for _, raw := range parts {
		var p contentPart
		if json.Unmarshal(raw, &p.Text) != nil && json.Unmarshal(raw, &p) != nil {
			continue // one odd part
		}
		s.text += p.Text
		s.reasoning += p.Thinking.text
	}
	return nil
}

// contentPart is a part of a content.
type contentPart struct {
	Text     string
	Thinking contentText
}

// toolCall is a piece of a call, with the extra content that some servers require back. Some servers send a
// number as id, a text as index, and the arguments as an object (llama.cpp #20198).
type toolCall struct {
	Index    *provider.Count
	ID       provider.Text
	Function struct {
		Name      provider.Text
		Arguments provider.Arguments
	}
	ExtraContent json.RawMessage `json:"extra_content"`
}

// accumulator assembles a reply from its pieces.
type accumulator struct {
	onText    func(text string) // to the observer
	origin    string
	text      strings.Builder
	refusal   strings.Builder
	reasoning strings.Builder
	// reasoningField is the name of the field that contained reasoning.
	reasoningField string
	details        []detail
	calls          []*call
	finishReason   string
	// isWhole is set for the reply of a server that does not stream, hasDeltas once a delta has said something.
	isWhole, hasDeltas bool

	reported *usage
	model    string
	family   provider.Family
}

type call struct {
	index     int
	id, name  string
	arguments strings.Builder
	extra     json.RawMessage
}

// handleEvent adds one event to the reply.
func (a *accumulator) handleEvent(raw []byte) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	var c chunk
	if err := provider.DecodeLoosely(raw, &c); err != nil {
		return fmt.Errorf("decode a piece of the reply: %w", err)
	}
	if said, wrong := chunkError(&c); wrong {
		return said
	}
	if c.Model != "" {
		a.model = string(c.Model)
	}
	if reported := (usage{}); provider.IsPresent(c.Usage) && json.Unmarshal(c.Usage, &reported) == nil {
		a.reported = &reported
	}
	for i := range c.Choices {
		if c.Choices[i].Index != 0 {
			continue
		}
		d := &c.Choices[i].Delta
		a.hasDeltas = a.hasDeltas || d.Content.text != "" || d.ReasoningContent != "" || d.Reasoning != "" || len(d.ToolCalls) > 0
		a.addDelta(d)
		// Beside deltas, a message repeats what they have said so far (Perplexity: open-webui #9927), as one at the
		// end of a stream does.
		if m := c.Choices[i].Message; m != nil && !a.hasDeltas {
			a.isWhole = true
			a.addDelta(m)
		}
		if f := string(c.Choices[i].FinishReason); f != "" && f != string(api.FinishReasonNull) {
			a.finishReason = f
		}
	}
	return nil
}

func (a *accumulator) addDelta(d *delta) {
	a.text.WriteString(d.Content.text)
	a.onText(d.Content.text)
	a.refusal.WriteString(string(d.Refusal))
	switch {
	case d.ReasoningContent != "":
		a.addReasoning(fieldContent, string(d.ReasoningContent))
	case d.Reasoning != "":
		a.addReasoning(fieldReasoning, string(d.Reasoning))
	case d.Content.reasoning != "":
		a.addReasoning(fieldParts, d.Content.reasoning)
	}
	a.addDetails(d.ReasoningDetails)
	for i := range d.ToolCalls {
		a.addCall(&d.ToolCalls[i])
	}
}

// addReasoning adds a piece of reasoning. A reply uses the same field for all pieces.
func (a *accumulator) addReasoning(field, text string) {
	a.reasoningField = field
	a.reasoning.WriteString(text)
}

func (a *accumulator) addCall(t *toolCall) {
	c := a.findCall(t)
	if c == nil {
		if len(a.calls) >= maxCalls {
			return
		}
		c = &call{index: -1, id: string(t.ID)}
		if t.Index != nil {
			c.index = int(*t.Index)
		}
		a.calls = append(a.calls, c)
	}
	if c.id == "" {
		c.id = string(t.ID)
	}
	if c.name == "" {
		c.name = string(t.Function.Name)
	}
	c.arguments.WriteString(string(t.Function.Arguments))
	if len(t.ExtraContent) > 0 && len(t.ExtraContent) <= maxExtra && string(t.ExtraContent) != "null" {
		c.extra = t.ExtraContent
	}
}

// findCall returns the call that a piece continues, or nil for the first piece of a call. Calls are
// matched by index. But some servers omit the index and send whole calls, and some give every call the
// index 0. Therefore a piece with a name begins a new call if it has another id, or if it has no id and
// the previous call is complete.
func (a *accumulator) findCall(t *toolCall) *call {
	for _, c := range slices.Backward(a.calls) {
		id := string(t.ID)
		if t.Index != nil && c.index != int(*t.Index) {
			continue
		}
		begins := t.Function.Name != "" && (t.Index == nil || id != "" || json.Valid([]byte(c.arguments.String()))) && c.name != ""
		if begins && (id != c.id || id == "") {
			return nil
		}
		if t.Index == nil && id != "" && c.id != id {
			continue
		}
		return c
	}
	return nil
}

// reply returns the assembled reply. err, the error that ended the events, matters only if it is a
// refusal, or if the server has sent no finish reason.
func (a *accumulator) reply(err error) (agent.Reply, error) {
	_, told := errors.AsType[*provider.Refusal](err)
	switch {
	case told:
		return agent.Reply{}, err
	case a.finishReason == "" && a.isComplete(err): // NVIDIA NIM sends no finish reason
	case a.finishReason == "" && errors.Is(err, io.EOF):
		return agent.Reply{}, errIncomplete
	case a.finishReason == "":
		return agent.Reply{}, err
	case slices.Contains(brokenReasons, a.finishReason):
		return agent.Reply{}, errBroken
	}
	filtered := a.finishReason == string(api.FinishReasonContentFilter)
	r := agent.Reply{
		Text: a.text.String(), Reasoning: a.encodeReplay(), Model: a.model,
		Truncated: filtered || slices.Contains(limitReasons, a.finishReason), Filtered: filtered,
	}
	if r.Text == "" {
		r.Text = a.refusal.String()
	}
	if !slices.ContainsFunc(a.calls, func(c *call) bool { return c.index < 0 }) {
		slices.SortStableFunc(a.calls, func(c, d *call) int { return c.index - d.index }) // they may come by turns
	}
	for _, c := range a.calls {
		if c.name == "" && c.arguments.Len() == 0 {
			continue // a server that has no call says so with an empty one
		}
		r.Calls = append(r.Calls, agent.Call{ID: c.id, Name: c.name, Arguments: c.arguments.String()})
	}
	if filtered && r.Text == "" {
		return agent.Reply{}, provider.ErrFiltered
	}
	r.Usage, _ = a.usage()
	return r, nil
}

// isComplete reports whether a reply without a finish reason is complete nevertheless: the server has ended the
// stream as such, or does not stream, and all arguments are valid. err is the error that ended the events.
func (a *accumulator) isComplete(err error) bool {
	if !errors.Is(err, provider.ErrDone) && (!a.isWhole || !errors.Is(err, io.EOF)) {
		return false
	}
	for _, c := range a.calls {
		if c.name == "" || c.arguments.Len() > 0 && !json.Valid([]byte(c.arguments.String())) {
			return false
		}
	}
	return len(a.calls) > 0 || a.text.Len() > 0
}

// usage returns the usage that the server has reported, and how many bytes of the reply it has sent.
func (a *accumulator) usage() (reported agent.Usage, received int) {
	received = a.text.Len() + a.refusal.Len() + a.reasoning.Len()
	for _, c := range a.calls {
		received += len(c.name) + c.arguments.Len()
	}
	if a.reported != nil {
		family := a.family
		if family == provider.FamilyOther {
			family = provider.FamilyOf(a.model)
		}
		reported = a.reported.counts().Usage(family)
	}
	return reported, received
}

// chunkError returns the error in a stream event, if there is one.
func chunkError(c *chunk) (*provider.Refusal, bool) {
	if !provider.IsError(c.Error) && c.Object != "error" {
		return nil, false
	}
	return provider.DecodeErrorObject(c.Error, c.ErrorBody), true
}

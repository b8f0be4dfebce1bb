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

// maxCalls bounds how many calls of a reply are read.
const maxCalls = 1024

var (
	errIncomplete = errors.New("the stream ended without a finish reason")
	errBroken     = errors.New("the provider reported an error in its reply")
)

// chunk is one event of a stream, or the whole reply of a server that does not stream: then choices
// have a message instead of a delta.
type chunk struct {
	Model   string
	Choices []choice
	Usage   *usage
	// Error is an object or a text; a flat one has its fields next to it.
	Error json.RawMessage
	provider.ErrorBody
}

// usage holds a server's token counts. Chat Completions has the Responses API's names for tokens that
// were written to a cache; the library knows them only there.
type usage struct {
	PromptTokens        int                            `json:"prompt_tokens"`
	CompletionTokens    int                            `json:"completion_tokens"`
	PromptTokensDetails api.ResponseInputTokensDetails `json:"prompt_tokens_details"`
}

type choice struct {
	Index        int
	Delta        delta
	Message      delta
	FinishReason string `json:"finish_reason"`
}

// delta is a piece of a reply. Reasoning has several names.
type delta struct {
	Content          contentText
	Refusal          string
	ReasoningContent string `json:"reasoning_content"`
	Reasoning        string
	ReasoningDetails []detail   `json:"reasoning_details"`
	ToolCalls        []toolCall `json:"tool_calls"`
}

// contentText is a content: a string, or parts, each of text or of thinking.
type contentText struct{ said, thought string }

// UnmarshalJSON reads a string or parts.
func (s *contentText) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] != '[' {
		return json.Unmarshal(data, &s.said)
	}
	var parts []struct {
		Type, Text string
		Thinking   contentText
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		s.said += p.Text
		s.thought += p.Thinking.said
	}
	return nil
}

// toolCall is a piece of a call, with the fields that some servers want back.
type toolCall struct {
	api.ToolCall
	Extra json.RawMessage `json:"extra_content"`
}

// accumulator assembles a reply from its pieces.
type accumulator struct {
	show      func(text string) // to the observer
	origin    string
	text      strings.Builder
	refusal   strings.Builder
	reasoning strings.Builder
	// field is the name of the field that held reasoning.
	field   string
	details []detail
	calls   []*call
	finish  string
	usage   *usage
	model   string
}

type call struct {
	index     int
	id, name  string
	arguments strings.Builder
	extra     json.RawMessage
}

// add handles one event.
func (a *accumulator) add(raw []byte) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("decode a piece of the reply: %w", err)
	}
	if said, wrong := reported(&c); wrong {
		return said
	}
	if c.Model != "" {
		a.model = c.Model
	}
	if c.Usage != nil {
		a.usage = c.Usage
	}
	for i := range c.Choices {
		if c.Choices[i].Index != 0 {
			continue
		}
		a.addDelta(&c.Choices[i].Delta)
		a.addDelta(&c.Choices[i].Message)
		if f := c.Choices[i].FinishReason; f != "" && f != string(api.FinishReasonNull) {
			a.finish = f
		}
	}
	return nil
}

func (a *accumulator) addDelta(d *delta) {
	a.text.WriteString(d.Content.said)
	a.show(d.Content.said)
	a.refusal.WriteString(d.Refusal)
	switch {
	case d.ReasoningContent != "":
		a.think(fieldContent, d.ReasoningContent)
	case d.Reasoning != "":
		a.think(fieldReasoning, d.Reasoning)
	case d.Content.thought != "":
		a.think(fieldParts, d.Content.thought)
	}
	a.addDetails(d.ReasoningDetails)
	for i := range d.ToolCalls {
		a.addCall(&d.ToolCalls[i])
	}
}

// think adds a piece of reasoning, which has one name within a reply.
func (a *accumulator) think(field, text string) {
	a.field = field
	a.reasoning.WriteString(text)
}

func (a *accumulator) addCall(t *toolCall) {
	c := a.find(t)
	if c == nil {
		if len(a.calls) >= maxCalls {
			return
		}
		c = &call{index: -1, id: t.ID}
		if t.Index != nil {
			c.index = *t.Index
		}
		a.calls = append(a.calls, c)
	}
	if c.id == "" {
		c.id = t.ID
	}
	if c.name == "" {
		c.name = t.Function.Name
	}
	c.arguments.WriteString(t.Function.Arguments)
	if len(t.Extra) > 0 && len(t.Extra) <= maxExtra && string(t.Extra) != "null" {
		c.extra = t.Extra
	}
}

// find returns the call that a piece continues, or nil for the first piece of one. The index decides,
// but some servers leave it out and send whole calls, and some give every call the index 0: so a piece
// with a name and another id is a new call, and so is one without an id if the previous call is
// complete.
func (a *accumulator) find(t *toolCall) *call {
	for _, c := range slices.Backward(a.calls) {
		if t.Index != nil && c.index != *t.Index {
			continue
		}
		begins := t.Function.Name != "" && (t.Index == nil || t.ID != "" || json.Valid([]byte(c.arguments.String()))) && c.name != ""
		if begins && (t.ID != c.id || t.ID == "") {
			return nil
		}
		if t.Index == nil && t.ID != "" && c.id != t.ID {
			continue
		}
		return c
	}
	return nil
}

// end returns the reply when the stream has ended with err.
func (a *accumulator) end(err error) (agent.Reply, error) {
	_, told := errors.AsType[*provider.Refusal](err)
	switch {
	case told:
		return agent.Reply{}, err
	case a.finish == "" && errors.Is(err, io.EOF):
		return agent.Reply{}, errIncomplete
	case a.finish == "":
		return agent.Reply{}, err
	case a.finish == "error":
		return agent.Reply{}, errBroken
	}
	r := agent.Reply{
		Text: a.text.String(), Reasoning: a.carry(), Model: a.model,
		Truncated: a.finish == string(api.FinishReasonLength) || a.finish == string(api.FinishReasonContentFilter),
	}
	if r.Text == "" {
		r.Text = a.refusal.String()
	}
	for _, c := range a.calls {
		r.Calls = append(r.Calls, agent.Call{ID: c.id, Name: c.name, Arguments: c.arguments.String()})
	}
	if a.finish == string(api.FinishReasonContentFilter) && r.Text == "" {
		return agent.Reply{}, provider.ErrFiltered
	}
	if u := a.usage; u != nil {
		r.Usage.Input, r.Usage.Output = u.PromptTokens, u.CompletionTokens
		r.Usage.Cached, r.Usage.Written = u.PromptTokensDetails.CachedTokens, u.PromptTokensDetails.CacheWriteTokens
	}
	return r, nil
}

// reported returns the error in an event of a stream, if there is one.
func reported(c *chunk) (*provider.Refusal, bool) {
	if !provider.Present(c.Error) && c.Object != "error" {
		return nil, false
	}
	return provider.ErrorOf(c.Error, c.ErrorBody), true
}

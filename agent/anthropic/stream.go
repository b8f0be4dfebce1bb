package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"oneclaw/agent"
	"oneclaw/agent/provider"
)

// Stop reasons.
const (
	stopRefusal  = "refusal"
	stopTokens   = "max_tokens"
	stopOverflow = "model_context_window_exceeded"
)

// answer is built from the events of one stream.
type answer struct {
	onText func(text string) // to the observer
	model  string
	// stopReason is set by message_delta; complete is set by message_stop.
	stopReason string
	complete   bool
	usage      usage
	blocks     []*piece
	// open holds the last block with each index. Gateways leave indices out, or begin with another.
	open map[provider.Count]*piece
}

// usage counts tokens. Each event overwrites the fields that it contains.
type usage struct {
	Input         provider.Count `json:"input_tokens"`
	CacheWritten  provider.Count `json:"cache_creation_input_tokens"`
	CacheRead     provider.Count `json:"cache_read_input_tokens"`
	CacheCreation struct {
		OneHour provider.Count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Output provider.Count `json:"output_tokens"`
}

// sum returns the usage as the agent counts it.
func (u usage) sum() agent.Usage {
	return agent.Usage{
		Input: int(u.Input + u.CacheRead + u.CacheWritten), Cached: int(u.CacheRead), CacheWritten: int(u.CacheWritten), CacheWrittenHour: int(u.CacheCreation.OneHour),
		Output: int(u.Output),
	}
}

// spent returns the usage of an answer that was not completed; zero if no content was received.
func (a *answer) spent(req *agent.Request) agent.Usage {
	received := 0
	for _, p := range a.blocks {
		received += len(p.Text) + p.text.Len() + len(p.Thinking) + p.thinking.Len() + p.input.Len()
	}
	if received == 0 {
		return agent.Usage{}
	}
	return provider.Spent(req, a.usage.sum(), received)
}

// event is a stream event. Unknown types are ignored.
type event struct {
	Type    string
	Index   provider.Count
	Message struct {
		Model string
		Usage json.RawMessage
	}
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        struct {
		Type, Text, Thinking, Signature string

		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	}
	Usage json.RawMessage
}

// stream sends a request and assembles the answer from its events. After an error the answer is what was
// received.
func (c *Client) stream(ctx context.Context, r *request, alive func(), show func(string)) (*answer, error) {
	a := &answer{onText: show}
	body, err := encodeJSON(r)
	if err != nil {
		return a, err
	}
	resp, err := c.send(ctx, "/v1/messages", body)
	if err != nil {
		return a, err
	}
	alive()
	resp.Body = provider.LimitBody(resp.Body, alive)
	defer func() { _ = resp.Body.Close() }()
	switch err := provider.ForEachEvent(resp, a.handleEvent); {
	case !errors.Is(err, io.EOF):
		return a, err
	case !a.isWhole():
		return a, errIncomplete
	}
	return a, nil
}

// isWhole reports whether the server has sent the whole answer. Gateways leave out the stop reason, or the event
// that ends the stream.
func (a *answer) isWhole() bool {
	if a.stopReason != "" || !a.complete {
		return a.stopReason != ""
	}
	for _, p := range a.blocks {
		if p.Type == blockToolUse && p.input.Len() > 0 && !json.Valid([]byte(p.input.String())) {
			return false
		}
	}
	return len(a.blocks) > 0
}

// handleEvent updates the answer from one event. It returns io.EOF if no more events are needed.
func (a *answer) handleEvent(raw []byte) error {
	var e event
	if err := provider.DecodeLoosely(raw, &e); err != nil {
		return fmt.Errorf("decode a stream event: %w", err)
	}
	switch e.Type {
	case "message": // of a server that does not stream
		return a.readWhole(raw)
	case "message_start":
		a.model = e.Message.Model
		a.addUsage(e.Message.Usage)
	case "content_block_start":
		return a.beginBlock(&e)
	case "content_block_delta":
		p := a.open[e.Index]
		if p == nil {
			return fmt.Errorf("a stream event is for block %d, which has not begun", e.Index)
		}
		a.appendDelta(p, &e)
	case "message_delta":
		a.stopReason = cmp.Or(e.Delta.StopReason, a.stopReason)
		a.addUsage(e.Usage)
	case "message_stop":
		a.complete = true
		return io.EOF // a proxy may keep the stream open, or break it
	case "error":
		return streamError(raw)
	}
	return nil
}

// readWhole reads a message that is sent as a whole.
func (a *answer) readWhole(raw []byte) error {
	var m struct {
		Model      string
		Content    []json.RawMessage
		StopReason string `json:"stop_reason"`
		Usage      json.RawMessage
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return fmt.Errorf("decode the message: %w", err)
	}
	a.model, a.stopReason, a.complete = m.Model, m.StopReason, true
	a.addUsage(m.Usage)
	for i, block := range m.Content {
		if err := a.beginBlock(&event{Index: provider.Count(i), ContentBlock: block}); err != nil {
			return err
		}
	}
	return io.EOF
}

func (a *answer) addUsage(raw json.RawMessage) {
	if raw == nil {
		return
	}
	_ = json.Unmarshal(raw, &a.usage) // a wrong type in it must not cost the reply
}

// beginBlock adds a block. Its deltas, which have its index, may be between those of others.
func (a *answer) beginBlock(e *event) error {
	p := &piece{start: e.ContentBlock}
	if err := provider.DecodeLoosely(e.ContentBlock, p); err != nil {
		return fmt.Errorf("decode a content block: %w", err)
	}
	if a.open == nil {
		a.open = map[provider.Count]*piece{}
	}
	a.blocks, a.open[e.Index] = append(a.blocks, p), p
	if p.Type == blockText {
		a.onText(p.Text)
	}
	return nil
}

func (a *answer) appendDelta(p *piece, e *event) {
	switch e.Delta.Type {
	case "text_delta":
		p.text.WriteString(e.Delta.Text)
		a.onText(e.Delta.Text)
	case "thinking_delta":
		p.thinking.WriteString(e.Delta.Thinking)
	case "signature_delta": // is whole, as Anthropic's own library takes it
		p.signature.Reset()
		p.signature.WriteString(e.Delta.Signature)
	case "input_json_delta":
		p.input.WriteString(e.Delta.PartialJSON)
	}
}

// piece is a block of an answer: its start event and the deltas received so far.
type piece struct {
	Type, Name, Text, Thinking string

	ID provider.Text // some servers send a number

	Input json.RawMessage

	start                            json.RawMessage
	text, thinking, signature, input strings.Builder
}

// fullText returns the text of a block.
func (p *piece) fullText() string { return p.Text + p.text.String() }

// rawArguments returns the arguments of a call as they were received, or {} if there are none. cut is set
// if the reply was cut off in this call: without any arguments, the result is "" then.
func (p *piece) rawArguments(cut bool) string {
	if p.input.Len() > 0 || cut {
		return p.input.String()
	}
	return string(p.arguments())
}

// arguments returns the arguments in the form that is sent back; {} if they were cut off.
func (p *piece) arguments() json.RawMessage {
	switch whole := json.RawMessage(p.input.String()); {
	case len(whole) == 0 && len(p.Input) > 0:
		return p.Input
	case json.Valid(whole):
		return whole
	}
	return json.RawMessage("{}")
}

// raw returns the block in the form that is sent back, with its deltas merged into the start event.
func (p *piece) raw() (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(p.start, &fields); err != nil {
		return nil, err
	}
	grown := false
	for name, value := range map[string]struct {
		began string
		more  *strings.Builder
	}{"text": {p.Text, &p.text}, "thinking": {p.Thinking, &p.thinking}, "signature": {"", &p.signature}} {
		if value.more.Len() == 0 {
			continue
		}
		whole, err := encodeJSON(value.began + value.more.String())
		if err != nil {
			return nil, err
		}
		fields[name], grown = whole, true
	}
	if p.input.Len() > 0 {
		fields["input"], grown = p.arguments(), true
	}
	if !grown {
		return p.start, nil
	}
	return encodeJSON(fields)
}

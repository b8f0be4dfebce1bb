package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"oneclaw/agent/provider"
)

// Stop reasons.
const (
	stopPause    = "pause_turn"
	stopRefusal  = "refusal"
	stopTokens   = "max_tokens"
	stopOverflow = "model_context_window_exceeded"
)

// answer is built from the events of one stream.
type answer struct {
	show  func(text string) // to the observer
	model string
	// stop is the stop reason; whole says that the end was received.
	stop   string
	whole  bool
	usage  usage
	blocks []*piece
}

// usage counts tokens. Each event overwrites the fields that it has.
type usage struct {
	Input   int `json:"input_tokens"`
	Written int `json:"cache_creation_input_tokens"`
	Read    int `json:"cache_read_input_tokens"`
	Kept    struct {
		Hour int `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Output int `json:"output_tokens"`
}

// event is an event of a stream. Unknown types are ignored.
type event struct {
	Type    string
	Index   int
	Message struct {
		Model string
		Usage json.RawMessage
	}
	Block json.RawMessage `json:"content_block"`
	Delta struct {
		Type, Text, Thinking, Signature string

		Input string `json:"partial_json"`
		Stop  string `json:"stop_reason"`
	}
	Usage json.RawMessage
}

// stream sends a request and assembles the answer from its events.
func (c *Client) stream(ctx context.Context, r *request, alive func(), show func(string)) (*answer, error) {
	body, err := encoded(r)
	if err != nil {
		return nil, err
	}
	resp, err := c.send(ctx, "/v1/messages", body)
	if err != nil {
		return nil, err
	}
	alive()
	resp.Body = provider.Bounded(resp.Body, alive)
	defer func() { _ = resp.Body.Close() }()
	a := &answer{show: show}
	switch err := provider.Events(resp, a.add); {
	case !errors.Is(err, io.EOF):
		return nil, err
	case !a.whole || a.stop == "":
		return nil, errIncomplete
	}
	return a, nil
}

// add handles an event.
func (a *answer) add(raw []byte) error {
	var e event
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("read an event: %w", err)
	}
	switch e.Type {
	case "message_start":
		a.model = e.Message.Model
		return a.count(e.Message.Usage)
	case "content_block_start":
		return a.begin(&e)
	case "content_block_delta":
		if e.Index < 0 || e.Index >= len(a.blocks) {
			return fmt.Errorf("an event is for block %d of %d", e.Index, len(a.blocks))
		}
		a.grow(a.blocks[e.Index], &e)
	case "message_delta":
		a.stop = cmp.Or(e.Delta.Stop, a.stop)
		return a.count(e.Usage)
	case "message_stop":
		a.whole = true
	case "error":
		return errorIn(raw)
	}
	return nil
}

func (a *answer) count(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, &a.usage); err != nil {
		return fmt.Errorf("read what was used: %w", err)
	}
	return nil
}

// begin handles the beginning of a block. Blocks begin in order, even if they grow at the same time.
func (a *answer) begin(e *event) error {
	if e.Index != len(a.blocks) {
		return fmt.Errorf("block %d begins where %d is next", e.Index, len(a.blocks))
	}
	p := &piece{first: e.Block}
	if err := json.Unmarshal(e.Block, p); err != nil {
		return fmt.Errorf("read a block: %w", err)
	}
	a.blocks = append(a.blocks, p)
	if p.Type == blockText {
		a.show(p.Text)
	}
	return nil
}

func (a *answer) grow(p *piece, e *event) {
	switch e.Delta.Type {
	case "text_delta":
		p.text.WriteString(e.Delta.Text)
		a.show(e.Delta.Text)
	case "thinking_delta":
		p.thinking.WriteString(e.Delta.Thinking)
	case "signature_delta":
		p.signature.WriteString(e.Delta.Signature)
	case "input_json_delta":
		p.input.WriteString(e.Delta.Input)
	}
}

// piece is a block of an answer: its beginning and its additions.
type piece struct {
	Type, ID, Name, Text, Thinking, Signature string

	Input   json.RawMessage
	Content json.RawMessage

	first                            json.RawMessage
	text, thinking, signature, input strings.Builder
}

// fullText returns the text of a block.
func (p *piece) fullText() string { return p.Text + p.text.String() }

// rawArguments returns the arguments of a call as they came. If the reply was cut off, an empty string stays
// empty.
func (p *piece) rawArguments(cut bool) string {
	if p.input.Len() > 0 || cut {
		return p.input.String()
	}
	return string(p.arguments())
}

// arguments returns the arguments as the server takes them back; {} if they were cut off.
func (p *piece) arguments() json.RawMessage {
	switch whole := json.RawMessage(p.input.String()); {
	case len(whole) == 0 && len(p.Input) > 0:
		return p.Input
	case json.Valid(whole):
		return whole
	}
	return json.RawMessage("{}")
}

// raw returns the block as the server wants it back: unchanged if nothing was added.
func (p *piece) raw() (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(p.first, &fields); err != nil {
		return nil, err
	}
	grown := false
	for name, value := range map[string]struct {
		began string
		more  *strings.Builder
	}{"text": {p.Text, &p.text}, "thinking": {p.Thinking, &p.thinking}, "signature": {p.Signature, &p.signature}} {
		if value.more.Len() == 0 {
			continue
		}
		whole, err := encoded(value.began + value.more.String())
		if err != nil {
			return nil, err
		}
		fields[name], grown = whole, true
	}
	if p.input.Len() > 0 {
		fields["input"], grown = p.arguments(), true
	}
	if !grown {
		return p.first, nil
	}
	return encoded(fields)
}

// foundTools returns the tools that the provider's search found.
func (p *piece) foundTools() (names []string) {
	var content struct {
		References []struct {
			Name string `json:"tool_name"`
		} `json:"tool_references"`
	}
	if json.Unmarshal(p.Content, &content) != nil {
		return nil // an error
	}
	for _, r := range content.References {
		names = append(names, r.Name)
	}
	return names
}

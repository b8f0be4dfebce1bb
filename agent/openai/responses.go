package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"oneclaw/agent"
)

// responseSkeleton is the request to the Responses API without the parts that the
// payload holds encoded. Nothing is kept by the server: reasoning comes encrypted and
// is given back within the turn.
func (c *Client) responseSkeleton() api.CreateResponseRequest {
	store := false
	req := api.CreateResponseRequest{Model: c.cfg.Model, Store: &store}
	if reasons(c.cfg.Model) {
		req.Include = []api.ResponseInclude{api.ResponseIncludeReasoningEncryptedContent}
	}
	if c.cfg.ReasoningEffort != "" {
		req.Reasoning = &api.ResponseReasoning{Effort: c.cfg.ReasoningEffort}
	}
	return req
}

// The kinds of items that matter.
const (
	itemMessage   = "message"
	itemCall      = "function_call"
	itemReasoning = "reasoning"
)

// item is one part of the output of the Responses API.
type item struct {
	Type string `json:"type"`
	// ID, Encrypted and Summary belong to reasoning.
	ID        string          `json:"id,omitempty"`
	Encrypted string          `json:"encrypted_content,omitempty"`
	Summary   json.RawMessage `json:"summary,omitempty"`
	// Phase belongs to messages: some models want it back.
	Phase string `json:"phase,omitempty"`
	// CallID, Name and Arguments belong to calls, Content to messages.
	CallID    string    `json:"call_id,omitempty"`
	Name      string    `json:"name,omitempty"`
	Arguments string    `json:"arguments,omitempty"`
	Content   []content `json:"content,omitempty"`
}

type content struct {
	Type    string `json:"type"`
	Text    string `json:"text,omitempty"`
	Refusal string `json:"refusal,omitempty"`
}

// response is the whole of a reply, or what is known of it.
type response struct {
	Object     string             `json:"object"`
	Status     api.ResponseStatus `json:"status"`
	Model      string             `json:"model"`
	Output     []item             `json:"output"`
	Usage      *api.ResponseUsage `json:"usage"`
	Error      *api.ResponseError `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// responseCollector puts the events of the Responses API together.
type responseCollector struct {
	onDelta  func(agent.Delta)
	origin   string
	streamed bool
	text     strings.Builder
	items    []item
	final    *response
}

func (r *responseCollector) shown() bool { return r.streamed }

// add takes one event. The last one has the whole reply in it.
func (r *responseCollector) add(raw []byte) error {
	if len(strings.TrimSpace(string(raw))) == 0 {
		return nil
	}
	var kind struct {
		Type   string `json:"type"`
		Object string `json:"object"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return fmt.Errorf("decode a piece of the reply: %w", err)
	}
	switch kind.Type {
	case "response.output_text.delta", "response.refusal.delta":
		return r.delta(raw, kind.Type == "response.output_text.delta")
	case "response.output_item.done":
		var e struct {
			Item item `json:"item"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("decode an item of the reply: %w", err)
		}
		if len(r.items) < maxCalls {
			r.items = append(r.items, e.Item)
		}
	case "response.completed", "response.incomplete", "response.failed":
		var e struct {
			Response *response `json:"response"`
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("decode the end of the reply: %w", err)
		}
		return r.last(e.Response, kind.Type)
	case "error":
		return reported(raw)
	case "":
		// A server that does not stream sends the reply alone.
		var whole response
		if kind.Object != "response" {
			return nil
		}
		if err := json.Unmarshal(raw, &whole); err != nil {
			return fmt.Errorf("decode the reply: %w", err)
		}
		return r.last(&whole, "response."+string(whole.Status))
	}
	return nil
}

func (r *responseCollector) delta(raw []byte, show bool) error {
	var e struct {
		Delta string `json:"delta"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("decode a piece of the reply: %w", err)
	}
	r.text.WriteString(e.Delta)
	if show && e.Delta != "" && r.onDelta != nil {
		r.streamed = true
		r.onDelta(agent.Delta{Text: e.Delta})
	}
	return nil
}

// last takes the event that ends a reply.
func (r *responseCollector) last(whole *response, kind string) error {
	if whole == nil {
		return errBroken
	}
	if kind == "response.failed" || whole.Status == api.ResponseStatusFailed || whole.Status == api.ResponseStatusCancelled {
		if whole.Error == nil {
			return errBroken
		}
		return apiError(whole.Error.Code, whole.Error.Message)
	}
	if kind == "response.incomplete" {
		whole.Status = api.ResponseStatusIncomplete
	}
	r.final = whole
	return io.EOF
}

// reported is an error that comes as an event, in one of the two forms that are seen.
func reported(raw []byte) error {
	var e struct {
		Code    string             `json:"code"`
		Message string             `json:"message"`
		Error   *api.ResponseError `json:"error"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return errBroken
	}
	if e.Error != nil {
		e.Code, e.Message = e.Error.Code, e.Error.Message
	}
	return apiError(e.Code, e.Message)
}

// apiError is an error in the form of those that come as the answer to a request.
func apiError(code, message string) error {
	kind := "server_error"
	if strings.HasPrefix(code, "invalid_") {
		kind = "invalid_request_error"
	}
	return &api.APIError{Code: code, Message: message, Type: kind}
}

// end returns the reply when the stream has ended with err.
func (r *responseCollector) end(err error) (agent.Reply, error) {
	if r.final == nil {
		if errors.Is(err, io.EOF) {
			err = errIncomplete
		}
		return agent.Reply{}, err
	}
	output := r.final.Output
	if len(output) == 0 {
		output = r.items
	}
	reply := agent.Reply{Model: r.final.Model, Truncated: r.final.Status == api.ResponseStatusIncomplete}
	reply.Text, reply.Calls, reply.Reasoning = read(output, r.origin)
	if reply.Text == "" {
		reply.Text = r.text.String()
	}
	if d := r.final.Incomplete; d != nil && d.Reason == "content_filter" && reply.Text == "" {
		return agent.Reply{}, errFiltered
	}
	if u := r.final.Usage; u != nil {
		reply.Usage.Input, reply.Usage.Output = u.InputTokens, u.OutputTokens
		if u.InputTokensDetails != nil {
			reply.Usage.Cached, reply.Usage.Written = u.InputTokensDetails.CachedTokens, u.InputTokensDetails.CacheWriteTokens
		}
	}
	return reply, nil
}

// read takes an output apart.
func read(output []item, origin string) (text string, calls []agent.Call, reasoning string) {
	var said, refused []string
	back := carried{Origin: origin}
	for _, it := range output {
		switch it.Type {
		case itemMessage:
			for _, c := range it.Content {
				said, refused = appendText(said, c.Text), appendText(refused, c.Refusal)
			}
			back.Items = append(back.Items, item{Type: itemMessage, Phase: it.Phase})
		case itemCall:
			calls = append(calls, agent.Call{ID: it.CallID, Name: it.Name, Arguments: it.Arguments})
			back.Items = append(back.Items, item{Type: itemCall})
		case itemReasoning:
			if it.Encrypted != "" {
				back.Items = append(back.Items, item{Type: itemReasoning, ID: it.ID, Encrypted: it.Encrypted, Summary: it.Summary})
			}
		}
	}
	if len(said) == 0 {
		said = refused
	}
	if worthCarrying(back.Items) {
		reasoning = back.pack()
	}
	return strings.Join(said, "\n\n"), calls, reasoning
}

func appendText(texts []string, text string) []string {
	if text == "" {
		return texts
	}
	return append(texts, text)
}

// worthCarrying reports whether items hold anything but places.
func worthCarrying(items []item) bool {
	for _, it := range items {
		if it.Type == itemReasoning || it.Phase != "" {
			return true
		}
	}
	return false
}

package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"oneclaw/agent"
	"oneclaw/agent/provider"
)

// The types of items that are used.
const (
	itemMessage   = "message"
	itemCall      = "function_call"
	itemReasoning = "reasoning"
)

// item is one item of the output of the Responses API.
type item struct {
	Type string `json:"type"`
	// ID is sent back for reasoning alone, for which EncryptedContent and Summary are set.
	ID               string          `json:"id,omitempty"`
	EncryptedContent string          `json:"encrypted_content,omitempty"`
	Summary          json.RawMessage `json:"summary,omitempty"`
	// Phase is set for messages. Some models require it back.
	Phase string `json:"phase,omitempty"`
	// CallID, Name and Arguments are set for calls, Content for messages.
	CallID    provider.Text      `json:"call_id,omitempty"`
	Name      string             `json:"name,omitempty"`
	Arguments provider.Arguments `json:"arguments,omitempty"`
	Content   contents           `json:"content,omitempty"`
}

// contents are the parts of a message. Some servers send a text instead.
type contents []content

// UnmarshalJSON decodes the parts, or a text.
func (c *contents) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil && text != "" {
		*c = contents{{Type: "output_text", Text: text}}
		return nil
	}
	return provider.DecodeLoosely(data, (*[]content)(c))
}

type content struct {
	Type    string `json:"type"`
	Text    string `json:"text,omitempty"`
	Refusal string `json:"refusal,omitempty"`
}

// response is a complete or partial reply. The library's type decodes fields that are not needed, and
// fails for servers with other fields.
type response struct {
	Object            string                         `json:"object"`
	Status            api.ResponseStatus             `json:"status"`
	Model             string                         `json:"model"`
	Output            []item                         `json:"output"`
	Usage             json.RawMessage                `json:"usage"`
	Error             json.RawMessage                `json:"error"`
	IncompleteDetails *api.ResponseIncompleteDetails `json:"incomplete_details"`
}

// event is a stream event, or the response of a server that does not stream.
type event struct {
	Type  string `json:"type"`
	Delta any    `json:"delta"`
	Item  item   `json:"item"`
	// ItemID is the id of the item that the event continues, and Index the place of the item in the output.
	ItemID   string         `json:"item_id"`
	Index    provider.Count `json:"output_index"`
	Response *response      `json:"response"`
	// Code and Message describe the error, for servers that do not nest them in an error object.
	Code    any             `json:"code"`
	Message json.RawMessage `json:"message"`
	response
}

// responseCollector assembles a reply from the Responses API.
type responseCollector struct {
	onText func(text string) // to the observer
	origin string
	text   strings.Builder
	items  []*openItem
	final  *response
	// received counts the bytes of all deltas. reported is the usage in the last event.
	received int
	reported *responseUsage
	family   provider.Family
}

// openItem is an item of a response whose output is not in the last event.
type openItem struct {
	item
	index provider.Count
	done  bool
}

// open returns the item that an event continues, or nil. Some servers give all items one place, and some change their ids.
func (r *responseCollector) open(e *event) *openItem {
	id := cmp.Or(e.ItemID, e.Item.ID)
	var there *openItem
	for _, it := range slices.Backward(r.items) {
		switch {
		case it.done:
		case id != "" && it.ID == id:
			return it
		case it.index == e.Index && there == nil:
			there = it
		}
	}
	return there
}

// addItem adds the item of an event, unless the event completes one.
func (r *responseCollector) addItem(e *event, done bool) {
	it := r.open(e)
	if it == nil || !done {
		if len(r.items) >= maxCalls {
			return
		}
		it = &openItem{index: e.Index}
		r.items = append(r.items, it)
	}
	it.item, it.done = e.Item, done
}

// output returns the items in their order. A call that was cut off is among them.
func (r *responseCollector) output() (output []item) {
	slices.SortStableFunc(r.items, func(a, b *openItem) int { return int(a.index - b.index) })
	for _, it := range r.items {
		output = append(output, it.item)
	}
	return output
}

// responseUsage holds the token counts of a response.
type responseUsage struct {
	InputTokens  provider.Count `json:"input_tokens"`
	OutputTokens provider.Count `json:"output_tokens"`
	TotalTokens  provider.Count `json:"total_tokens"`
	Details      cacheCounts    `json:"input_tokens_details"`
}

// handleEvent adds one event to the reply. The last event contains the whole reply.
func (r *responseCollector) handleEvent(raw []byte) error {
	if len(strings.TrimSpace(string(raw))) == 0 {
		return nil
	}
	var e event
	if err := provider.DecodeLoosely(raw, &e); err != nil {
		return fmt.Errorf("decode a piece of the reply: %w", err)
	}
	text, _ := e.Delta.(string)
	r.received += len(text)
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta":
		r.text.WriteString(text)
		if e.Type == "response.output_text.delta" {
			r.onText(text)
		}
	case "response.output_item.added", "response.output_item.done":
		r.addItem(&e, e.Type == "response.output_item.done")
	case "response.function_call_arguments.delta":
		if it := r.open(&e); it != nil {
			it.Arguments += provider.Arguments(text)
		}
	case "response.completed", "response.incomplete", "response.failed":
		return r.handleLast(e.Response, e.Type)
	case "error":
		return eventError(e.Error, provider.ErrorBody{Code: e.Code, Message: e.Message})
	case "":
		if e.Object == "response" {
			return r.handleLast(&e.response, "response."+string(e.Status))
		}
		if provider.IsError(e.Error) || e.Object == "error" {
			return eventError(e.Error, provider.ErrorBody{Code: e.Code, Message: e.Message})
		}
	}
	return nil
}

// handleLast handles the event that ends a reply.
func (r *responseCollector) handleLast(whole *response, kind string) error {
	if whole == nil {
		return errBroken
	}
	if reported := (responseUsage{}); provider.IsPresent(whole.Usage) && json.Unmarshal(whole.Usage, &reported) == nil {
		r.reported = &reported
	}
	if kind == "response.failed" || whole.Status == api.ResponseStatusFailed || whole.Status == api.ResponseStatusCancelled {
		if !provider.IsError(whole.Error) {
			return errBroken
		}
		return eventError(whole.Error, provider.ErrorBody{})
	}
	if kind == "response.incomplete" {
		whole.Status = api.ResponseStatusIncomplete
	}
	r.final = whole
	return io.EOF
}

// inputErrors matches the codes of failed responses that are about the input. Some are about a picture,
// or the provider's policies (ResponseErrorCode in openai-go; bio_policy, codex PR 31439).
var inputErrors = regexp.MustCompile(`^(invalid|unsupported)_|image|_policy|data_residency`)

// eventError returns the error in an event, with the error type that an error response would have.
func eventError(object json.RawMessage, flat provider.ErrorBody) error {
	e := provider.DecodeErrorObject(object, flat)
	if inputErrors.MatchString(e.Code) {
		e.Code += " invalid_request_error"
	} else {
		e.Code += " server_error"
	}
	return e
}

// reply returns the assembled reply. err, the error that ended the events, matters only if the event with
// the whole reply is missing.
func (r *responseCollector) reply(err error) (agent.Reply, error) {
	if r.final == nil {
		if errors.Is(err, io.EOF) {
			err = errIncomplete
		}
		return agent.Reply{}, err
	}
	output := r.final.Output
	if len(output) == 0 {
		output = r.output()
	}
	reply := agent.Reply{Model: r.final.Model, Truncated: r.final.Status == api.ResponseStatusIncomplete}
	reply.Text, reply.Calls, reply.Reasoning = decodeOutput(output, r.origin)
	if reply.Text == "" {
		reply.Text = r.text.String()
	}
	if d := r.final.IncompleteDetails; d != nil && d.Reason == "content_filter" {
		if reply.Text == "" {
			return agent.Reply{}, provider.ErrFiltered
		}
		reply.Truncated, reply.Filtered = true, true
	}
	reply.Usage, _ = r.usage()
	return reply, nil
}

// usage returns the usage that the server has reported, and how many bytes of the reply it has sent.
func (r *responseCollector) usage() (reported agent.Usage, received int) {
	if u := r.reported; u != nil {
		reported = provider.Counts{
			Input: int(u.InputTokens), Output: int(u.OutputTokens), Total: int(u.TotalTokens), Cached: int(u.Details.CachedTokens), Written: int(u.Details.CacheWriteTokens),
		}.Usage(r.family)
	}
	return reported, r.received
}

// decodeOutput returns the text, calls and reasoning of an output.
func decodeOutput(output []item, origin string) (text string, calls []agent.Call, reasoning string) {
	var said, refused []string
	back := replay{Origin: origin}
	for _, it := range output {
		switch it.Type {
		case itemMessage:
			message, refusal := "", ""
			for _, c := range it.Content {
				message += c.Text
				refusal += c.Refusal
			}
			said, refused = appendText(said, message), appendText(refused, refusal)
			back.Items = append(back.Items, item{Type: itemMessage, Phase: it.Phase})
		case itemCall:
			calls = append(calls, agent.Call{ID: string(it.CallID), Name: it.Name, Arguments: string(it.Arguments)})
			back.Items = append(back.Items, item{Type: itemCall})
		case itemReasoning:
			if it.EncryptedContent != "" {
				back.Items = append(back.Items, item{Type: itemReasoning, ID: it.ID, EncryptedContent: it.EncryptedContent, Summary: it.Summary})
			}
		}
	}
	if len(said) == 0 {
		said = refused
	}
	if worthReplaying(back.Items) {
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

// worthReplaying reports whether items contain anything besides placeholders.
func worthReplaying(items []item) bool {
	for _, it := range items {
		if it.Type == itemReasoning || it.Phase != "" {
			return true
		}
	}
	return false
}

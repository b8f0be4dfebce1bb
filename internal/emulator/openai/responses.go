package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

type responsesRequest struct {
	Model        string          `json:"model"`
	Instructions string          `json:"instructions"`
	Input        json.RawMessage `json:"input"`
	Tools        json.RawMessage `json:"tools"`
	Stream       bool            `json:"stream"`
	Store        *bool           `json:"store"`
	Include      []string        `json:"include"`
	CacheKey     string          `json:"prompt_cache_key"`
	Temperature  *float64        `json:"temperature"`
	Reasoning    struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
}

// inputItem is an item of the input.
type inputItem struct {
	Type             string          `json:"type"`
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"`
	CallID           string          `json:"call_id"`
	Name             string          `json:"name"`
	Arguments        *string         `json:"arguments"`
	Output           json.RawMessage `json:"output"`
	ID               string          `json:"id"`
	EncryptedContent string          `json:"encrypted_content"`
	Summary          json.RawMessage `json:"summary"`
}

// encryptedContent is the content of all reasoning items, and the only one accepted back.
const encryptedContent = "gAAAAemulated-reasoning"

// maxCallID bounds the id of a call, in bytes.
const maxCallID = 64

// handleResponses answers POST /v1/responses.
func (s *Server) handleResponses(w http.ResponseWriter, r *http.Request) {
	encrypted := false
	s.handleRequest(w, r, func(body []byte) (Request, *Error) {
		req, in, err := s.decodeResponses(body)
		encrypted = slices.Contains(in.Include, "reasoning.encrypted_content")
		return req, err
	}, func(w http.ResponseWriter, r *http.Request, req Request, reply Reply) {
		s.writeResponse(w, r, req, reply, encrypted)
	})
}

// decodeResponses parses a request, and refuses it if the service would.
func (s *Server) decodeResponses(body []byte) (Request, responsesRequest, *Error) {
	req := Request{At: s.cfg.now(), Responses: true}
	var in responsesRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return req, in, invalid("", "", "We could not parse the JSON body of your request.")
	}
	req.Model, req.Stream, req.IncludeUsage, req.CacheKey = in.Model, in.Stream, true, in.CacheKey
	req.ToolsJSON, req.MessagesJSON, req.Effort = in.Tools, in.Input, in.Reasoning.Effort
	if in.Model == "" {
		return req, in, invalid("model", "missing_required_parameter", "Missing required parameter: 'model'.")
	}
	if err := s.cfg.Profile.checkSampling(in.Model, "reasoning.effort", in.Reasoning.Effort, in.Temperature); err != nil {
		return req, in, err
	}
	if err := req.readFlatTools(s.cfg.MaxTools); err != nil {
		return req, in, err
	}
	if in.Instructions != "" {
		req.Messages = append(req.Messages, Message{Role: "system", Content: in.Instructions})
	}
	if err := req.readInput(in.Store == nil || *in.Store); err != nil {
		return req, in, err
	}
	if n := (len(in.Tools) + len(in.Input) - req.pictureBytes()) / bytesPerToken; n > s.cfg.Context {
		return req, in, invalid("input", "context_length_exceeded", "Your input exceeds the context window of this model. Please adjust your input and try again.")
	}
	return req, in, nil
}

// readFlatTools checks the tools as Chat Completions does, whose form nests them one level deeper.
func (r *Request) readFlatTools(limit int) *Error {
	if len(r.ToolsJSON) == 0 {
		return nil
	}
	var flat []map[string]json.RawMessage
	if err := json.Unmarshal(r.ToolsJSON, &flat); err != nil {
		return invalid("tools", "invalid_type", "Invalid type for 'tools': expected an array of objects.")
	}
	nested := make([]map[string]any, len(flat))
	for i, t := range flat {
		if _, has := t["function"]; has || t["name"] == nil {
			path := fmt.Sprintf("tools[%d].name", i)
			return invalid(path, "missing_required_parameter", "Missing required parameter: '%s'.", path)
		}
		if string(t["strict"]) != "false" {
			return invalid(fmt.Sprintf("tools[%d].parameters", i), "invalid_function_parameters",
				"Invalid schema for function %s: In context=(), 'additionalProperties' is required to be supplied and to be false.", t["name"])
		}
		nested[i] = map[string]any{"type": t["type"], "function": t}
	}
	raw, err := json.Marshal(nested)
	if err != nil {
		return invalid("tools", "invalid_type", "Invalid type for 'tools'.")
	}
	whole := r.ToolsJSON
	r.ToolsJSON = raw
	defer func() { r.ToolsJSON = whole }()
	return r.readTools(limit)
}

// inputReader converts items to messages.
type inputReader struct {
	req       *Request
	stored    bool
	openCalls []string // ids of calls without output
	// reasoning is the id of a reasoning item that requires a following item.
	reasoning string
}

func (r *Request) readInput(stored bool) *Error {
	var text string
	if json.Unmarshal(r.MessagesJSON, &text) == nil {
		r.Messages = append(r.Messages, Message{Role: "user", Content: text})
		return nil
	}
	var items []inputItem
	if err := json.Unmarshal(r.MessagesJSON, &items); err != nil || len(items) == 0 {
		return invalid("input", "invalid_type", "Invalid type for 'input': expected a string or a non-empty array of items.")
	}
	in := inputReader{req: r, stored: stored}
	for i := range items {
		if err := in.readItem(i, &items[i]); err != nil {
			return err
		}
	}
	if in.reasoning != "" {
		return in.errMissingItem()
	}
	if len(in.openCalls) > 0 {
		return invalid("input", "", "No tool output found for function call %s.", in.openCalls[0])
	}
	return nil
}

func (in *inputReader) errMissingItem() *Error {
	return invalid("input", "", "Item '%s' of type 'reasoning' was provided without its required following item.", in.reasoning)
}

func (in *inputReader) readItem(i int, it *inputItem) *Error {
	follows := it.Type == "function_call" || it.Role == "assistant" || it.Type == "reasoning"
	if in.reasoning != "" && !follows {
		return in.errMissingItem()
	}
	if it.Type != "reasoning" {
		in.reasoning = ""
	}
	switch it.Type {
	case "", "message":
		return in.readMessage(i, it)
	case "function_call":
		return in.readCall(i, it)
	case "function_call_output":
		return in.readOutput(i, it)
	case "reasoning":
		if it.EncryptedContent == "" && !in.stored {
			return &Error{Status: 404, Param: "input", Message: fmt.Sprintf("Item with id '%s' not found. Items are not persisted when `store` is set to false.", it.ID)}
		}
		if it.EncryptedContent != encryptedContent {
			return invalid("", "invalid_encrypted_content", "The encrypted content for item %s could not be verified.", it.ID)
		}
		if len(it.Summary) == 0 || it.Summary[0] != '[' {
			return invalid(fmt.Sprintf("input[%d].summary", i), "missing_required_parameter", "Missing required parameter: 'input[%d].summary'.", i)
		}
		in.reasoning = it.ID
		in.req.ReasoningItems++
		return nil
	}
	return invalid(fmt.Sprintf("input[%d]", i), "invalid_value", "Invalid value: '%s'.", it.Type)
}

func (in *inputReader) readMessage(i int, it *inputItem) *Error {
	switch it.Role {
	case "system", "developer", "user", "assistant":
	default:
		return invalid(fmt.Sprintf("input[%d].role", i), "invalid_value", "Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", it.Role)
	}
	if it.Role == "user" && len(in.openCalls) > 0 {
		return invalid("input", "", "No tool output found for function call %s.", in.openCalls[0])
	}
	m := Message{Role: it.Role}
	if err := m.readInputContent(it.Content); err != nil {
		return invalid(fmt.Sprintf("input[%d].content", i), "invalid_type", "Invalid type for 'input[%d].content': %v.", i, err)
	}
	in.req.Messages = append(in.req.Messages, m)
	return nil
}

// readInputContent joins the parts of a message's content.
func (m *Message) readInputContent(raw json.RawMessage) error {
	if json.Unmarshal(raw, &m.Content) == nil {
		return nil
	}
	var parts []part
	if err := json.Unmarshal(raw, &parts); err != nil {
		return errors.New("want a string or parts")
	}
	for _, p := range parts {
		if p.Type != "input_image" {
			m.Content += p.Text
			continue
		}
		pic, err := p.parsePicture()
		if err != nil {
			return err
		}
		m.Pictures = append(m.Pictures, pic)
	}
	return nil
}

func (in *inputReader) readCall(i int, it *inputItem) *Error {
	path := fmt.Sprintf("input[%d]", i)
	switch {
	case len(it.CallID) > maxCallID: // openclaw PR 875
		return invalid(path+".call_id", "string_above_max_length", "Invalid '%s.call_id': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", path, maxCallID, len(it.CallID))
	case it.CallID == "" || it.Name == "" || it.Arguments == nil:
		return invalid(path, "missing_required_parameter", "Missing required parameter: '%s.call_id', name or arguments.", path)
	case !toolNamePattern.MatchString(it.Name) || len(it.Name) > maxToolName:
		return invalid(path+".name", "invalid_value", "Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '%s'.", path, toolNamePattern)
	case slices.Contains(in.openCalls, it.CallID):
		return invalid(path+".call_id", "", "Duplicate function call with call_id %s.", it.CallID)
	}
	in.openCalls = append(in.openCalls, it.CallID)
	messages := in.req.Messages
	if len(messages) == 0 || messages[len(messages)-1].Role != "assistant" {
		in.req.Messages = append(messages, Message{Role: "assistant"})
	}
	last := &in.req.Messages[len(in.req.Messages)-1]
	last.ToolCalls = append(last.ToolCalls, ToolCall{ID: it.CallID, Name: it.Name, Arguments: *it.Arguments})
	return nil
}

func (in *inputReader) readOutput(i int, it *inputItem) *Error {
	at := slices.Index(in.openCalls, it.CallID)
	if at < 0 {
		return invalid("input", "", "No tool call found for function call output with call_id %s.", it.CallID)
	}
	in.openCalls = slices.Delete(in.openCalls, at, at+1)
	var text string
	if err := json.Unmarshal(it.Output, &text); err != nil {
		return invalid(fmt.Sprintf("input[%d].output", i), "invalid_type", "Invalid type for 'input[%d].output': expected a string.", i)
	}
	in.req.Messages = append(in.req.Messages, Message{Role: "tool", ToolCallID: it.CallID, Content: strings.Clone(text)})
	return nil
}

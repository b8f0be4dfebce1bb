package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
)

// The forms in which the services encode an error as JSON.

// flatError returns an error without an object around it, as Mistral and older vLLM do.
func flatError(e *Error) any {
	var message any = e.Message
	if len(e.Message) > 0 && e.Message[0] == '{' {
		message = json.RawMessage(e.Message)
	}
	out := map[string]any{"object": "error", "message": message, "type": cmp.Or(e.Type, "invalid_request_error"), "param": nil, "code": nil}
	if e.Code != "" {
		out["code"] = e.Code
	}
	return out
}

// errorList returns an array with one error, as Google's servers do.
func errorList(e *Error) any {
	status := map[int]string{400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}[e.Status]
	return []any{map[string]any{"error": map[string]any{"code": e.Status, "message": e.Message, "status": cmp.Or(status, "INTERNAL")}}}
}

// numericCodeError returns an error whose code is the status, as llama.cpp and vLLM do.
func numericCodeError(e *Error) any {
	return map[string]any{"error": map[string]any{"code": e.Status, "message": e.Message, "type": cmp.Or(e.Type, "invalid_request_error")}}
}

// openRouterError returns OpenRouter's form of a provider's error.
func openRouterError(e *Error) any {
	if e.Type == "openrouter" {
		return map[string]any{"error": map[string]any{"code": e.Status, "message": e.Message}}
	}
	return map[string]any{"error": map[string]any{
		"code": e.Status, "message": "Provider returned error",
		"metadata": map[string]any{"raw": e.Message, "provider_name": "Google AI Studio"},
	}}
}

// textError returns only the text of the error, as LM Studio does.
func textError(e *Error) any { return map[string]any{"error": e.Message} }

// namedErrorEvent returns a server-sent event with the name "error".
func namedErrorEvent(v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own maps
	}
	return "event: error\ndata: " + string(body) + "\n\n"
}

// groqStreamError returns an error event that includes the status.
func groqStreamError(e *Error) string {
	return namedErrorEvent(map[string]any{"error": map[string]any{
		"message": e.Message, "type": cmp.Or(e.Type, "invalid_request_error"), "code": e.Code, "status_code": e.Status,
	}})
}

// anthropicStreamError returns an error event with Anthropic's own types.
func anthropicStreamError(*Error) string {
	return namedErrorEvent(map[string]any{"type": "error", "error": map[string]any{"type": "overloaded_error", "message": "Overloaded"}})
}

// lmStudioStreamError returns an error event that contains the message twice.
func lmStudioStreamError(e *Error) string {
	return namedErrorEvent(map[string]any{"error": map[string]any{"message": e.Message}, "message": e.Message})
}

// plainStreamError returns an event whose error is a text instead of an object.
func plainStreamError(e *Error) string {
	body, err := json.Marshal(map[string]any{"error": e.Message})
	if err != nil {
		panic(err)
	}
	return "data: " + string(body) + "\n\n"
}

// openRouterStreamError returns an error beside a choice whose finish reason is error.
func openRouterStreamError(e *Error) string {
	body, err := json.Marshal(map[string]any{
		"id": "gen-1", "object": "chat.completion.chunk", "model": "m", "provider": "Google AI Studio",
		"error":   map[string]any{"code": e.Status, "message": e.Message},
		"choices": []any{map[string]any{"index": 0, "delta": map[string]any{"content": ""}, "finish_reason": "error"}},
	})
	if err != nil {
		panic(err)
	}
	return "data: " + string(body) + "\n\n"
}

// fail refuses a request, with the error in the service's form.
func (s *Server) fail(w http.ResponseWriter, e *Error) {
	if s.cfg.Profile.encodeError == nil {
		writeError(w, e)
		return
	}
	setRetryAfter(w, e)
	writeJSON(w, e.Status, s.cfg.Profile.encodeError(e))
}

// wireCalls returns the calls of a reply with ids and the service's extra fields.
func (p *Profile) wireCalls(reply Reply, seq int) []wireCall {
	calls := make([]wireCall, len(reply.Calls))
	for i, c := range reply.Calls {
		id := fmt.Sprintf("call_%d_%d", seq, i)
		if p.makeCallID != nil {
			id = p.makeCallID(seq, i, c.Name)
		}
		calls[i].ID = cmp.Or(c.ID, id)
		calls[i].Type = "function"
		calls[i].Function.Name, calls[i].Function.Arguments = c.Name, c.Arguments
		if p.Reasoning == ReasoningSigned && i == 0 {
			calls[i].ExtraContent = map[string]any{"google": map[string]any{"thought_signature": "signed by " + p.Name}}
		}
	}
	return calls
}

// reasoningDeltas returns the reasoning of a reply in two pieces.
func (p *Profile) reasoningDeltas(reply Reply, seq int) []wireDelta {
	text := p.Thought(seq)
	head, tail := text[:len(text)/2], text[len(text)/2:]
	switch p.Reasoning {
	case reasoningContent:
		return []wireDelta{{ReasoningContent: head}, {ReasoningContent: tail}}
	case reasoningText:
		return []wireDelta{{Reasoning: head}, {Reasoning: tail}}
	case reasoningParts:
		part := func(text string) any {
			return []any{map[string]any{"type": "thinking", "thinking": []any{map[string]any{"type": "text", "text": text}}}}
		}
		return []wireDelta{{Content: part(head)}, {Content: part(tail)}}
	case reasoningDetails:
		piece := func(text string) wireDelta {
			return wireDelta{Reasoning: text, ReasoningDetails: []map[string]any{{"type": "reasoning.text", "text": text, "format": "google-gemini-v1", "index": 0}}}
		}
		deltas := []wireDelta{piece(head), piece(tail)}
		if len(reply.Calls) > 0 {
			deltas = append(deltas, wireDelta{ReasoningDetails: []map[string]any{
				{"type": "reasoning.encrypted", "data": "signed by " + p.Name, "format": "google-gemini-v1", "index": 1},
			}})
		}
		return deltas
	}
	return nil
}

// contentValue returns a piece of text in the service's form.
func (p *Profile) contentValue(text string) any {
	if p.ContentParts {
		return []any{map[string]any{"type": "text", "text": text}}
	}
	return text
}

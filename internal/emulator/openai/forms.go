package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
)

// The forms in which services put an error into JSON.

// flat has no object around the error: Mistral, older vLLM.
func flat(e *Error) any {
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

// listed is an array of one error, as from Google's servers.
func listed(e *Error) any {
	status := map[int]string{400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}[e.Status]
	return []any{map[string]any{"error": map[string]any{"code": e.Status, "message": e.Message, "status": cmp.Or(status, "INTERNAL")}}}
}

// numbered has the status as code: llama.cpp, vLLM.
func numbered(e *Error) any {
	return map[string]any{"error": map[string]any{"code": e.Status, "message": e.Message, "type": cmp.Or(e.Type, "invalid_request_error")}}
}

// passedOn is OpenRouter's form of a provider's error.
func passedOn(e *Error) any {
	if e.Type == "openrouter" {
		return map[string]any{"error": map[string]any{"code": e.Status, "message": e.Message}}
	}
	return map[string]any{"error": map[string]any{
		"code": e.Status, "message": "Provider returned error",
		"metadata": map[string]any{"raw": e.Message, "provider_name": "Google AI Studio"},
	}}
}

// worded has only the text: LM Studio.
func worded(e *Error) any { return map[string]any{"error": e.Message} }

// named is an error event with a name.
func named(v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own maps
	}
	return "event: error\ndata: " + string(body) + "\n\n"
}

// groqStreamError is an event with the status.
func groqStreamError(e *Error) string {
	return named(map[string]any{"error": map[string]any{
		"message": e.Message, "type": cmp.Or(e.Type, "invalid_request_error"), "code": e.Code, "status_code": e.Status,
	}})
}

// anthropicStreamError has Anthropic's own types.
func anthropicStreamError(*Error) string {
	return named(map[string]any{"type": "error", "error": map[string]any{"type": "overloaded_error", "message": "Overloaded"}})
}

// lmStudioStreamError repeats the error.
func lmStudioStreamError(e *Error) string {
	return named(map[string]any{"error": map[string]any{"message": e.Message}, "message": e.Message})
}

// plainStreamError is a text instead of an object.
func plainStreamError(e *Error) string {
	body, err := json.Marshal(map[string]any{"error": e.Message})
	if err != nil {
		panic(err)
	}
	return "data: " + string(body) + "\n\n"
}

// openRouterStreamError is an error beside a choice with an error as finish reason.
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

// fail refuses a request in the service's form.
func (s *Server) fail(w http.ResponseWriter, e *Error) {
	if s.cfg.Personality.Form == nil {
		writeError(w, e)
		return
	}
	retryHeader(w, e)
	writeJSON(w, e.Status, s.cfg.Personality.Form(e))
}

// calls returns a reply's calls with ids, and the service's extra fields.
func (p *Profile) calls(reply Reply, seq int) []wireCall {
	calls := make([]wireCall, len(reply.Calls))
	for i, c := range reply.Calls {
		id := fmt.Sprintf("call_%d_%d", seq, i)
		if p.MakeID != nil {
			id = p.MakeID(seq, i, c.Name)
		}
		calls[i].ID = cmp.Or(c.ID, id)
		calls[i].Type = "function"
		calls[i].Function.Name, calls[i].Function.Arguments = c.Name, c.Arguments
		if p.Thinks == ThinksSigned && i == 0 {
			calls[i].Extra = map[string]any{"google": map[string]any{"thought_signature": "signed by " + p.Name}}
		}
	}
	return calls
}

// thoughts returns a reply's reasoning in two pieces.
func (p *Profile) thoughts(reply Reply, seq int) []wireDelta {
	text := p.Thought(seq)
	head, tail := text[:len(text)/2], text[len(text)/2:]
	switch p.Thinks {
	case ThinksContent:
		return []wireDelta{{ReasoningContent: head}, {ReasoningContent: tail}}
	case ThinksReasoning:
		return []wireDelta{{Reasoning: head}, {Reasoning: tail}}
	case ThinksParts:
		part := func(text string) any {
			return []any{map[string]any{"type": "thinking", "thinking": []any{map[string]any{"type": "text", "text": text}}}}
		}
		return []wireDelta{{Content: part(head)}, {Content: part(tail)}}
	case ThinksDetails:
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

// content returns a piece of text in the service's form.
func (p *Profile) content(text string) any {
	if p.Parts {
		return []any{map[string]any{"type": "text", "text": text}}
	}
	return text
}

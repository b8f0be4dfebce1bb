package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
)

// ErrorBody is a server's error: OpenAI's error object, the same fields at top level (Mistral, vLLM), or
// other fields (FastAPI's detail). The library's type decodes only OpenAI's.
type ErrorBody struct {
	Object     string          `json:"object"`
	Message    json.RawMessage `json:"message"`
	Detail     json.RawMessage `json:"detail"`
	Code       any             `json:"code"`
	Type       string          `json:"type"`
	Param      json.RawMessage `json:"param"`
	StatusCode any             `json:"status_code"`
	Metadata   struct {
		// Raw is the error of the provider behind a gateway.
		Raw json.RawMessage `json:"raw"`
	} `json:"metadata"`
}

// IsPresent reports whether a field exists and is not null.
func IsPresent(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// IsError reports whether an error field has a content. Some servers send an empty one with each good piece.
func IsError(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", `""`, "{}", "[]", "false", "0":
		return false
	}
	return true
}

// textOf returns a string value as it is, and any other value as JSON.
func textOf(raw json.RawMessage) string {
	if !IsPresent(raw) {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// DecodeErrorObject returns the refusal in an error object, which may be a string, or else in flat.
func DecodeErrorObject(object json.RawMessage, flat ErrorBody) *Refusal {
	e := &Refusal{}
	if IsError(object) {
		flat = ErrorBody{}
		if json.Unmarshal(object, &flat) != nil {
			e.text = textOf(object)
			return e
		}
	}
	e.text = cmp.Or(textOf(flat.Message), textOf(flat.Detail), string(object))
	if raw := textOf(flat.Metadata.Raw); raw != "" {
		e.text += ": " + raw
	}
	if flat.Code != nil {
		e.Code = fmt.Sprint(flat.Code) + " "
	}
	e.Code += flat.Type
	e.param = textOf(flat.Param)
	for _, v := range []any{flat.StatusCode, flat.Code} {
		if n, ok := v.(float64); ok && n >= 400 && n < 600 && e.Status == 0 {
			e.Status = int(n)
		}
	}
	return e
}

// DecodeErrorBody returns the refusal in the body of an error response.
func DecodeErrorBody(page []byte) *Refusal {
	page = bytes.TrimSpace(page)
	var list []json.RawMessage
	if json.Unmarshal(page, &list) == nil && len(list) > 0 { // Google's servers
		page = list[0]
	}
	var body struct {
		Error json.RawMessage `json:"error"`
		ErrorBody
	}
	if json.Unmarshal(page, &body) != nil {
		return &Refusal{text: string(page)}
	}
	if !IsError(body.Error) && !IsPresent(body.Message) && !IsPresent(body.Detail) {
		return &Refusal{text: string(page)}
	}
	return DecodeErrorObject(body.Error, body.ErrorBody)
}

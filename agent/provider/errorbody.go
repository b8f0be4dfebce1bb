package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
)

// ErrorBody is a server's error: OpenAI's object, or the same fields without it (Mistral, vLLM), or other
// fields (FastAPI's detail). The library's type decodes only OpenAI's.
type ErrorBody struct {
	Object   string          `json:"object"`
	Message  json.RawMessage `json:"message"`
	Detail   json.RawMessage `json:"detail"`
	Code     any             `json:"code"`
	Type     string          `json:"type"`
	Status   any             `json:"status_code"`
	Metadata struct {
		// Raw is the error of the provider behind a gateway.
		Raw json.RawMessage `json:"raw"`
	} `json:"metadata"`
}

// Present reports whether a field exists and is not null.
func Present(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// textOf returns a value as text: a string, or the JSON of anything else.
func textOf(raw json.RawMessage) string {
	if !Present(raw) {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// ErrorOf returns the refusal in the object, which may be a text, or else in flat.
func ErrorOf(object json.RawMessage, flat ErrorBody) *Refusal {
	e := &Refusal{}
	if Present(object) {
		flat = ErrorBody{}
		if json.Unmarshal(object, &flat) != nil {
			e.Text = textOf(object)
			return e
		}
	}
	e.Text = cmp.Or(textOf(flat.Message), textOf(flat.Detail), string(object))
	if raw := textOf(flat.Metadata.Raw); raw != "" {
		e.Text += ": " + raw
	}
	if flat.Code != nil {
		e.Code = fmt.Sprint(flat.Code) + " "
	}
	e.Code += flat.Type
	for _, v := range []any{flat.Status, flat.Code} {
		if n, ok := v.(float64); ok && n >= 400 && n < 600 && e.Status == 0 {
			e.Status = int(n)
		}
	}
	return e
}

// ErrorIn returns the refusal in the body of an error response.
func ErrorIn(page []byte) *Refusal {
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
		return &Refusal{Text: string(page)}
	}
	if !Present(body.Error) && !Present(body.Message) && !Present(body.Detail) {
		return &Refusal{Text: string(page)}
	}
	return ErrorOf(body.Error, body.ErrorBody)
}

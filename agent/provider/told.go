package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
)

// Told is an error as servers word it: OpenAI's object, or one with the same fields that
// stands alone (Mistral, vLLM), or with others (FastAPI's detail). The library's type
// decodes OpenAI's alone.
type Told struct {
	Object   string          `json:"object"`
	Message  json.RawMessage `json:"message"`
	Detail   json.RawMessage `json:"detail"`
	Code     any             `json:"code"`
	Type     string          `json:"type"`
	Status   any             `json:"status_code"`
	Metadata struct {
		// Raw is what the provider behind a gateway has said.
		Raw json.RawMessage `json:"raw"`
	} `json:"metadata"`
}

// Present reports whether a field is there and not null.
func Present(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// textOf is what a value says: a string, or the JSON of anything else.
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

// ErrorOf reads an error: the object, which may be a text, or else the flat one.
func ErrorOf(object json.RawMessage, flat Told) *Refusal {
	e := &Refusal{}
	if Present(object) {
		flat = Told{}
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

// ErrorIn reads the body of an answer that is an error.
func ErrorIn(page []byte) *Refusal {
	page = bytes.TrimSpace(page)
	var list []json.RawMessage
	if json.Unmarshal(page, &list) == nil && len(list) > 0 { // Google's servers
		page = list[0]
	}
	var body struct {
		Error json.RawMessage `json:"error"`
		Told
	}
	if json.Unmarshal(page, &body) != nil {
		return &Refusal{Text: string(page)}
	}
	if !Present(body.Error) && !Present(body.Message) && !Present(body.Detail) {
		return &Refusal{Text: string(page)}
	}
	return ErrorOf(body.Error, body.Told)
}

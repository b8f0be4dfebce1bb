package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
)

// told is an error as servers word it: OpenAI's object, or one with the same fields that
// stands alone (Mistral, vLLM), or with others (FastAPI's detail). The library's type
// decodes OpenAI's alone.
type told struct {
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

// present reports whether a field is there and not null.
func present(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// textOf is what a value says: a string, or the JSON of anything else.
func textOf(raw json.RawMessage) string {
	if !present(raw) {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// errorIn reads an error: the object, which may be a text, or else the flat one.
func errorIn(object json.RawMessage, flat told) *serverError {
	e := &serverError{}
	if present(object) {
		flat = told{}
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
		e.code = fmt.Sprint(flat.Code) + " "
	}
	e.code += flat.Type
	for _, v := range []any{flat.Status, flat.Code} {
		if n, ok := v.(float64); ok && n >= 400 && n < 600 && e.status == 0 {
			e.status = int(n)
		}
	}
	return e
}

// reported returns the error that an event of a stream is, if it is one.
func reported(c *chunk) (*serverError, bool) {
	if !present(c.Error) && c.Object != "error" {
		return nil, false
	}
	return errorIn(c.Error, c.told), true
}

// errorPage reads the body of an answer that is an error.
func errorPage(page []byte) *serverError {
	page = bytes.TrimSpace(page)
	var list []json.RawMessage
	if json.Unmarshal(page, &list) == nil && len(list) > 0 { // Google's servers
		page = list[0]
	}
	var body struct {
		Error json.RawMessage `json:"error"`
		told
	}
	if json.Unmarshal(page, &body) != nil {
		return &serverError{text: string(page)}
	}
	if !present(body.Error) && !present(body.Message) && !present(body.Detail) {
		return &serverError{text: string(page)}
	}
	return errorIn(body.Error, body.told)
}

package toolgroups

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

var (
	errNotObject = errors.New("arguments must be one JSON object")
	errMalformed = errors.New("arguments are not valid JSON")
)

// RepairArguments returns the arguments of a call as a compact JSON object. It repairs unambiguous
// mistakes of models: nothing or null (no arguments), a code fence around the object, the object in
// a JSON string, a comma before a closing bracket, and closing brackets missing after a complete
// value. Text that may have been cut off within a value is an error.
func RepairArguments(raw json.RawMessage) (json.RawMessage, error) {
	return repair(raw, false)
}

func repair(raw []byte, inner bool) (json.RawMessage, error) {
	raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	raw = unfence(bytes.TrimSpace(bytes.TrimPrefix(raw, []byte("\ufeff"))))
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage(`{}`), nil
	}
	if !json.Valid(raw) {
		fixed, ok := balance(raw)
		if !ok {
			return nil, errMalformed
		}
		raw = fixed
	}
	switch {
	case raw[0] == '{':
		return EncodeJSON(json.RawMessage(raw))
	case raw[0] == '"' && !inner:
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, errMalformed
		}
		return repair([]byte(text), true)
	}
	return nil, errNotObject
}

// unfence removes a Markdown code fence around the text.
func unfence(raw []byte) []byte {
	body, opened := bytes.CutPrefix(raw, []byte("```"))
	body, closed := bytes.CutSuffix(body, []byte("```"))
	if !opened || !closed {
		return raw
	}
	return bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(body), []byte("json")))
}

// balance drops commas before closing brackets and adds missing brackets at the end.
func balance(raw []byte) ([]byte, bool) {
	b := jsonRepairer{out: make([]byte, 0, len(raw)+8)}
	for _, c := range raw {
		if !b.feed(c) {
			return nil, false
		}
	}
	return b.close()
}

type jsonRepairer struct {
	out                  []byte
	closers              []byte // missing closing brackets, the innermost last
	inString, escaped    bool
	pendingComma, inWord bool
}

// feed processes one byte and reports whether the text may still be repairable.
func (b *jsonRepairer) feed(c byte) bool {
	if b.inString {
		b.feedString(c)
		return true
	}
	switch c {
	case ' ', '\t', '\r', '\n':
		if b.inWord {
			b.out = append(b.out, ' ')
		}
		return true
	case ',':
		if b.pendingComma {
			return false
		}
		b.pendingComma = true
		return true
	case '}', ']':
		b.pendingComma = false
		if len(b.closers) == 0 || b.closers[len(b.closers)-1] != c {
			return false
		}
		b.closers = b.closers[:len(b.closers)-1]
	}
	if b.pendingComma {
		b.out = append(b.out, ',')
		b.pendingComma = false
	}
	b.inWord = false
	switch c {
	case '{':
		b.closers = append(b.closers, '}')
	case '[':
		b.closers = append(b.closers, ']')
	case '"':
		b.inString = true
	case '}', ']':
	default:
		b.inWord = true
	}
	b.out = append(b.out, c)
	return true
}

func (b *jsonRepairer) feedString(c byte) {
	b.out = append(b.out, c)
	switch {
	case b.escaped:
		b.escaped = false
	case c == '\\':
		b.escaped = true
	case c == '"':
		b.inString = false
	}
}

// close adds the missing brackets. A text that ends in a string, after a comma or in a bare word
// or number may be truncated and is not repaired.
func (b *jsonRepairer) close() ([]byte, bool) {
	if len(b.closers) > 0 && (b.inString || b.pendingComma || b.inWord) {
		return nil, false
	}
	for _, v := range slices.Backward(b.closers) {
		b.out = append(b.out, v)
	}
	return b.out, json.Valid(b.out)
}

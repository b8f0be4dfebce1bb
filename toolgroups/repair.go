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

// RepairArguments returns the arguments of a call as a compact JSON object.
// Models write some things that can be mended without guessing: nothing at all or
// null (no arguments), a code fence around the object, the object inside a JSON
// string, a comma before a closing bracket, closing brackets that are missing
// behind a complete value. Anything that may have been cut off within a value is
// an error.
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

// unfence removes a Markdown code fence around everything.
func unfence(raw []byte) []byte {
	body, opened := bytes.CutPrefix(raw, []byte("```"))
	body, closed := bytes.CutSuffix(body, []byte("```"))
	if !opened || !closed {
		return raw
	}
	return bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(body), []byte("json")))
}

// balance drops commas before closing brackets and adds those missing at the end.
func balance(raw []byte) ([]byte, bool) {
	b := balancer{out: make([]byte, 0, len(raw)+8)}
	for _, c := range raw {
		if !b.add(c) {
			return nil, false
		}
	}
	return b.close()
}

type balancer struct {
	out               []byte
	open              []byte // closing brackets that are due, the next one last
	quoted, escaped   bool
	comma, unfinished bool
}

// add takes one byte; false means that the text is beyond repair.
func (b *balancer) add(c byte) bool {
	if b.quoted {
		b.string(c)
		return true
	}
	switch c {
	case ' ', '\t', '\r', '\n':
		if b.unfinished {
			b.out = append(b.out, ' ')
		}
		return true
	case ',':
		if b.comma {
			return false
		}
		b.comma = true
		return true
	case '}', ']':
		b.comma = false
		if len(b.open) == 0 || b.open[len(b.open)-1] != c {
			return false
		}
		b.open = b.open[:len(b.open)-1]
	}
	if b.comma {
		b.out = append(b.out, ',')
		b.comma = false
	}
	b.unfinished = false
	switch c {
	case '{':
		b.open = append(b.open, '}')
	case '[':
		b.open = append(b.open, ']')
	case '"':
		b.quoted = true
	case '}', ']':
	default:
		b.unfinished = true
	}
	b.out = append(b.out, c)
	return true
}

func (b *balancer) string(c byte) {
	b.out = append(b.out, c)
	switch {
	case b.escaped:
		b.escaped = false
	case c == '\\':
		b.escaped = true
	case c == '"':
		b.quoted = false
	}
}

// close adds what is missing. A text that ends within a string, behind a comma or
// with a bare word or number may have lost something, which is not guessed.
func (b *balancer) close() ([]byte, bool) {
	if len(b.open) > 0 && (b.quoted || b.comma || b.unfinished) {
		return nil, false
	}
	for _, v := range slices.Backward(b.open) {
		b.out = append(b.out, v)
	}
	return b.out, json.Valid(b.out)
}

package toolgroups

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// EncodeTools returns the tools array of a Chat Completions request. The encoding is
// deterministic: if one list is a prefix of another, so is its encoding, except for the closing
// bracket.
func EncodeTools(tools []Tool) json.RawMessage {
	return EncodeToolsAs(tools, `{"type":"function","function":{`, `}}`)
}

// EncodeToolsAs is [EncodeTools] for an API that wraps the name, description and parameters of
// each tool in other text: before and after.
func EncodeToolsAs(tools []Tool, before, after string) json.RawMessage {
	size := 2
	for i := range tools {
		size += len(before) + len(tools[i].wire) + len(after) + 1
	}
	var b bytes.Buffer
	b.Grow(size)
	b.WriteByte('[')
	for i := range tools {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(before)
		b.Write(tools[i].encode())
		b.WriteString(after)
	}
	b.WriteByte(']')
	return b.Bytes()
}

// Schema returns the schema of the parameters, or that of an empty object if the tool has none.
func (t *Tool) Schema() json.RawMessage {
	if len(t.Parameters) == 0 {
		return json.RawMessage(emptyParameters)
	}
	return t.Parameters
}

// encode returns the JSON members of a tool in a tools array.
func (t *Tool) encode() []byte {
	if t.wire != nil {
		return t.wire
	}
	return slices.Concat([]byte(`"name":`), quoteJSON(t.Name), []byte(`,"description":`), quoteJSON(t.Description),
		[]byte(`,"parameters":`), t.Schema())
}

// EstimateTokens estimates how many tokens the schemas of tools cost: the characters of their
// encoding divided by four.
func EstimateTokens(tools []Tool) int {
	size := 1 + max(len(tools), 1) // brackets and commas
	for i := range tools {
		if tools[i].size > 0 {
			size += tools[i].size
		} else {
			size += wireSize(tools[i])
		}
	}
	return size / 4
}

// wireSize returns the number of characters that a tool takes in a tools array.
func wireSize(t Tool) int { return utf8.RuneCount(EncodeTools([]Tool{t})) - len("[]") }

// quoteJSON encodes a string as JSON without HTML escapes.
func quoteJSON(s string) []byte {
	b, err := EncodeJSON(s)
	if err != nil {
		return []byte(`""`) // A string always encodes.
	}
	return b
}

// EncodeJSON is json.Marshal without HTML escapes.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

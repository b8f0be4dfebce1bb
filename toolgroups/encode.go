package toolgroups

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// EncodeTools returns the tools array of a Chat Completions request. The bytes
// depend on nothing but the tools: where one list begins with another, so does
// its encoding (but for the closing bracket).
func EncodeTools(tools []Tool) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, t := range tools {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"type":"function","function":{"name":`)
		b.Write(quote(t.Name))
		b.WriteString(`,"description":`)
		b.Write(quote(t.Description))
		b.WriteString(`,"parameters":`)
		if len(t.Parameters) == 0 {
			b.WriteString(emptyParameters)
		} else {
			b.Write(t.Parameters)
		}
		b.WriteString(`}}`)
	}
	b.WriteByte(']')
	return b.Bytes()
}

// EstimateTokens says roughly how many tokens the schemas of tools cost:
// characters of their wire form divided by four, no tokenizer.
func EstimateTokens(tools []Tool) int {
	return utf8.RuneCount(EncodeTools(tools)) / 4
}

// quote encodes a string as JSON without the escapes that only HTML needs.
func quote(s string) []byte {
	b, err := EncodeJSON(s)
	if err != nil {
		return []byte(`""`) // A string always encodes.
	}
	return b
}

// EncodeJSON is json.Marshal without the escapes that only HTML needs.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

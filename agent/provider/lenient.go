package provider

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// Servers that imitate an API do not always keep to its types. One field of another type must not cost the whole
// reply.

// DecodeLoosely decodes JSON. A field of another type is left out.
func DecodeLoosely(raw []byte, into any) error {
	err := json.Unmarshal(raw, into)
	if _, odd := errors.AsType[*json.UnmarshalTypeError](err); odd {
		return nil // the other fields are there
	}
	return err
}

// Count is a number of tokens, or an index. A number with a decimal point, and one in a string, count; anything
// else, and a negative number, is 0.
type Count int

// UnmarshalJSON decodes a number.
func (c *Count) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil // as in the standard library
	}
	n, err := strconv.ParseFloat(string(unquoted(data)), 64)
	if *c = 0; err == nil && n > 0 {
		*c = Count(math.Min(n, maxContext))
	}
	return nil
}

// Text is a text. A number stands for its digits; anything else is empty.
type Text string

// UnmarshalJSON decodes a string or a number.
func (t *Text) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = ""
		if c := data[0]; c >= '0' && c <= '9' || c == '-' {
			text = string(data)
		}
	}
	*t = Text(text)
	return nil
}

// Arguments are the arguments of a call. The APIs send them as JSON in a string, some servers as an object
// (llama.cpp #20198).
type Arguments string

// UnmarshalJSON decodes a string, or takes a value as it is.
func (a *Arguments) UnmarshalJSON(data []byte) error {
	var text string
	switch {
	case string(data) == "null":
	case json.Unmarshal(data, &text) != nil:
		text = string(data)
	}
	*a = Arguments(text)
	return nil
}

// unquoted returns the content of a JSON string, and any other value as it is.
func unquoted(data []byte) []byte {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return []byte(text)
	}
	return data
}

package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// carried is what a server wants back with its own reply within a turn: the text of
// its reasoning, encrypted items, signatures of calls. It is kept in the one string
// that the agent has for it, as plain text where there is nothing but text.
type carried struct {
	// Origin is who gave it. Others would not understand it, or refuse it.
	Origin string `json:"origin"`
	Text   string `json:"text,omitempty"`
	// Extra are extra_content of the calls, in their order; null for none.
	Extra []json.RawMessage `json:"extra,omitempty"`
	// Items are the output of the Responses API in its order: what reasoned in full,
	// of messages and calls only the places.
	Items []item `json:"items,omitempty"`
}

// carriedPrefix begins what is more than text.
const carriedPrefix = "carried/1 "

// maxExtra bounds the extra content of one call in bytes.
const maxExtra = 256 << 10

// originOf names a server and a model without telling either.
func originOf(cfg Config) string {
	sum := sha256.Sum256([]byte(cfg.BaseURL + "\n" + cfg.Model))
	return hex.EncodeToString(sum[:8])
}

// pack makes the string.
func (c carried) pack() string {
	if len(c.Extra) == 0 && len(c.Items) == 0 {
		return c.Text
	}
	data, err := json.Marshal(c)
	if err != nil {
		return c.Text // Without it the server reasons anew.
	}
	return carriedPrefix + string(data)
}

// unpack reads the string for a server. What is another's is left out.
func unpack(reasoning, origin string) carried {
	data, packed := strings.CutPrefix(reasoning, carriedPrefix)
	if !packed {
		return carried{Text: reasoning}
	}
	var c carried
	if json.Unmarshal([]byte(data), &c) != nil || c.Origin != origin {
		return carried{}
	}
	return c
}

// carry is what the reply of a Chat Completions server wants back.
func (a *accumulator) carry() string {
	c := carried{Origin: a.origin, Text: a.reasoning.String()}
	for i, call := range a.calls {
		if call.extra == nil {
			continue
		}
		for len(c.Extra) <= i {
			c.Extra = append(c.Extra, json.RawMessage("null"))
		}
		c.Extra[i] = call.extra
	}
	return c.pack()
}

// unsigned stands in for the signature of a call that Gemini did not make itself, as
// ai.google.dev/gemini-api/docs/thought-signatures says. It wants one with the first
// call of each reply of the turn.
const unsigned = `{"google":{"thought_signature":"skip_thought_signature_validator"}}`

// extra is what goes back beside a call.
func (c carried) extra(i int, signed bool) string {
	switch {
	case i < len(c.Extra) && string(c.Extra[i]) != "null":
		return `,"extra_content":` + string(c.Extra[i])
	case i == 0 && len(c.Extra) == 0 && signed:
		return `,"extra_content":` + unsigned
	}
	return ""
}

package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// carried is what a server wants back with its own reply: the text of its reasoning, encrypted items,
// signatures of calls. It is stored in the agent's Reasoning string, and goes back only to its server,
// under its original name.
type carried struct {
	// Origin identifies the server. Others would not understand it, or refuse it.
	Origin string `json:"origin"`
	// Text is reasoning, Field the name of the field that it came in.
	Field string `json:"field,omitempty"`
	Text  string `json:"text,omitempty"`
	// Details are OpenRouter's reasoning_details.
	Details []detail `json:"details,omitempty"`
	// Extra holds the extra_content of the calls, in their order; null for none.
	Extra []json.RawMessage `json:"extra,omitempty"`
	// Items are the output of the Responses API in its order: reasoning in full, messages and calls as
	// placeholders.
	Items []item `json:"items,omitempty"`
}

// Names of fields that hold reasoning.
const (
	fieldContent   = "reasoning_content"
	fieldReasoning = "reasoning"
	// fieldParts is content with parts of the type thinking.
	fieldParts = "content"
)

// carriedPrefix begins an encoding in JSON, carriedText a plain one: origin, field and text, which
// needs no decoder, because some servers want it for a whole conversation.
const (
	carriedPrefix = "carried/1 "
	carriedText   = "carried/2 "
)

// maxExtra bounds the extra content of one call, and the details of a reply, in bytes.
const maxExtra = 256 << 10

// originOf returns an identifier of a server and a model that reveals neither.
func originOf(cfg Config) string {
	sum := sha256.Sum256([]byte(cfg.BaseURL + "\n" + cfg.Model))
	return hex.EncodeToString(sum[:8])
}

// pack encodes it as a string.
func (c carried) pack() string {
	if len(c.Extra) == 0 && len(c.Items) == 0 && len(c.Details) == 0 {
		if c.Text == "" {
			return ""
		}
		return carriedText + c.Origin + " " + c.Field + "\n" + c.Text
	}
	data, err := json.Marshal(c)
	if err != nil {
		return "" // without it the server reasons again
	}
	return carriedPrefix + string(data)
}

// unpack decodes the string for a server. It returns nothing if it is another server's or unknown.
func unpack(reasoning, origin string) carried {
	if rest, text := strings.CutPrefix(reasoning, carriedText); text {
		head, said, _ := strings.Cut(rest, "\n")
		from, field, _ := strings.Cut(head, " ")
		if from != origin {
			return carried{}
		}
		return carried{Origin: from, Field: field, Text: said}
	}
	data, packed := strings.CutPrefix(reasoning, carriedPrefix)
	var c carried
	if !packed || json.Unmarshal([]byte(data), &c) != nil || c.Origin != origin {
		return carried{}
	}
	return c
}

// carry returns what a Chat Completions server wants back with the reply.
func (a *accumulator) carry() string {
	c := carried{Origin: a.origin, Field: a.field, Text: a.reasoning.String(), Details: a.details}
	if len(c.Details) > 0 {
		c.Text = "" // the details hold it
	}
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

// Gemini wants a signature with the first call of each reply of the turn. unsigned replaces that of a
// call that it did not make itself (ai.google.dev/gemini-api/docs/thought-signatures).
const (
	skipSignature = "skip_thought_signature_validator"
	unsigned      = `{"google":{"thought_signature":"` + skipSignature + `"}}`
)

// extra returns the fields that go back with a call.
func (c carried) extra(i int, signed bool) string {
	switch {
	case i < len(c.Extra) && string(c.Extra[i]) != "null":
		return `,"extra_content":` + string(c.Extra[i])
	case i == 0 && len(c.Extra) == 0 && signed:
		return `,"extra_content":` + unsigned
	}
	return ""
}

// detail is a block of reasoning_details. Its fields depend on the provider behind OpenRouter.
type detail map[string]any

// textOf returns the name of the field that a block streams in pieces.
func (d detail) textOf() string {
	switch d["type"] {
	case "reasoning.text":
		return "text"
	case "reasoning.summary":
		return "summary"
	}
	return ""
}

// addDetails joins the pieces of blocks: they go back whole.
func (a *accumulator) addDetails(pieces []detail) {
	for _, d := range pieces {
		if len(a.details) > 0 {
			last := a.details[len(a.details)-1]
			name := d.textOf()
			if name != "" && last["type"] == d["type"] && last["index"] == d["index"] {
				before, _ := last[name].(string)
				more, _ := d[name].(string)
				for key, value := range d {
					if value != nil {
						last[key] = value // a signature comes with the last piece
					}
				}
				last[name] = before + more
				continue
			}
		}
		if len(a.details) < maxCalls {
			a.details = append(a.details, d)
		}
	}
}

// thoughts writes the reasoning of a reply, or a placeholder for a server that wants some with every
// reply.
func (e *encoder) thoughts(back carried, inTurn bool) {
	switch {
	case e.quirks.drops:
	case len(back.Details) > 0:
		data, err := json.Marshal(back.Details)
		if err == nil && len(data) <= maxExtra {
			e.raw(`,"reasoning_details":` + string(data))
		}
	case e.quirks.details && inTurn && len(e.ids.Open) > 0:
		// One block, with the id of the first call (Roo-Code PR 10640).
		e.raw(`,"reasoning_details":[{"type":"reasoning.encrypted","data":"` + skipSignature + `","format":"google-gemini-v1","index":0`)
		e.field("id", e.ids.Open[0])
		e.raw(`}]`)
	case back.Text != "" && back.Field != fieldParts:
		e.field(back.Field, back.Text)
	case e.quirks.keeps:
		e.field(fieldContent, reasoningPlaceholder)
	}
}

// reasoningPlaceholder replaces the reasoning of a reply that another model gave.
const reasoningPlaceholder = "."

package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// replay is the data that a server requires back with its own reply: the text of its reasoning,
// encrypted items, signatures of calls. It is stored in the agent's Reasoning string, and is sent back
// only to the same server, in the original field.
type replay struct {
	// Origin identifies the server. Other servers would ignore or refuse the data.
	Origin string `json:"origin"`
	// Text is reasoning, Field the name of the field that contained it.
	Field string `json:"field,omitempty"`
	Text  string `json:"text,omitempty"`
	// Details are OpenRouter's reasoning_details.
	Details []detail `json:"details,omitempty"`
	// Extra holds the extra_content of each call, in order; null if a call has none.
	Extra []json.RawMessage `json:"extra,omitempty"`
	// Items is the output of the Responses API in its original order: reasoning in full, messages and
	// calls as placeholders.
	Items []item `json:"items,omitempty"`
}

// Names of fields that hold reasoning.
const (
	fieldContent   = "reasoning_content"
	fieldReasoning = "reasoning"
	// fieldParts is content with parts of the type thinking.
	fieldParts = "content"
)

// replayPrefix begins data encoded as JSON. replayTextPrefix begins plain data (origin, field and text),
// which is cheaper to decode, because some servers require it for a whole conversation.
const (
	replayPrefix     = "carried/1 "
	replayTextPrefix = "carried/2 "
)

// maxExtra bounds the extra content of one call, and the details of a reply, in bytes.
const maxExtra = 256 << 10

// originOf returns an identifier for a server and a model that reveals neither.
func originOf(cfg Config) string {
	sum := sha256.Sum256([]byte(cfg.BaseURL + "\n" + cfg.Model))
	return hex.EncodeToString(sum[:8])
}

// pack encodes the data as a string; "" if there is none.
func (c replay) pack() string {
	if len(c.Extra) == 0 && len(c.Items) == 0 && len(c.Details) == 0 {
		if c.Text == "" {
			return ""
		}
		return replayTextPrefix + c.Origin + " " + c.Field + "\n" + c.Text
	}
	data, err := json.Marshal(c)
	if err != nil {
		return "" // without the data, the server reasons again
	}
	return replayPrefix + string(data)
}

// unpack decodes a string made by pack; the zero value for another server's or an unknown format.
func unpack(reasoning, origin string) replay {
	if rest, text := strings.CutPrefix(reasoning, replayTextPrefix); text {
		head, said, _ := strings.Cut(rest, "\n")
		from, field, _ := strings.Cut(head, " ")
		if from != origin {
			return replay{}
		}
		return replay{Origin: from, Field: field, Text: said}
	}
	data, packed := strings.CutPrefix(reasoning, replayPrefix)
	var c replay
	if !packed || json.Unmarshal([]byte(data), &c) != nil || c.Origin != origin {
		return replay{}
	}
	return c
}

// encodeReplay returns the data that a Chat Completions server requires back with the reply.
func (a *accumulator) encodeReplay() string {
	c := replay{Origin: a.origin, Field: a.reasoningField, Text: a.reasoning.String(), Details: a.details}
	if len(c.Details) > 0 {
		c.Text = "" // the details contain the text
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

// Gemini requires a signature with the first call of each reply in the turn. unsignedContent replaces
// the signature of a call by another model (ai.google.dev/gemini-api/docs/thought-signatures).
const (
	skipSignature   = "skip_thought_signature_validator"
	unsignedContent = `{"google":{"thought_signature":"` + skipSignature + `"}}`
)

// extraContent returns the extra_content field of the call with index i; "" if it has none. If no call has
// one and the server needs a signature, the first call gets a stand-in.
func (c replay) extraContent(i int, needsSignature bool) string {
	switch {
	case i < len(c.Extra) && string(c.Extra[i]) != "null":
		return `,"extra_content":` + string(c.Extra[i])
	case i == 0 && len(c.Extra) == 0 && needsSignature:
		return `,"extra_content":` + unsignedContent
	}
	return ""
}

// detail is a block of reasoning_details. Its fields depend on the provider behind OpenRouter.
type detail map[string]any

// textField returns the name of the field of a block that is streamed in pieces; "" if there is none.
func (d detail) textField() string {
	switch d["type"] {
	case "reasoning.text":
		return "text"
	case "reasoning.summary":
		return "summary"
	}
	return ""
}

// addDetails adds pieces of blocks. It joins pieces of one block, because blocks are sent back whole.
func (a *accumulator) addDetails(pieces []detail) {
	for _, d := range pieces {
		if len(a.details) > 0 {
			last := a.details[len(a.details)-1]
			name := d.textField()
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

// writeReasoning writes the reasoning of a reply, or a placeholder for a server that requires reasoning
// with every reply.
func (e *encoder) writeReasoning(back replay, inTurn bool) {
	switch {
	case e.quirks.dropsReasoning:
	case len(back.Details) > 0:
		data, err := json.Marshal(back.Details)
		if err == nil && len(data) <= maxExtra {
			e.writeRaw(`,"reasoning_details":` + string(data))
		}
	case e.quirks.needsDetails && inTurn && len(e.ids.Open) > 0:
		// One block, with the id of the first call (Roo-Code PR 10640).
		e.writeRaw(`,"reasoning_details":[{"type":"reasoning.encrypted","data":"` + skipSignature + `","format":"google-gemini-v1","index":0`)
		e.writeField("id", e.ids.Open[0])
		e.writeRaw(`}]`)
	case back.Text != "" && back.Field != fieldParts:
		e.writeField(back.Field, back.Text)
	case e.quirks.keepsReasoning:
		e.writeField(fieldContent, reasoningPlaceholder)
	}
}

// reasoningPlaceholder replaces the reasoning of a reply by another model.
const reasoningPlaceholder = "."

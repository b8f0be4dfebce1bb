package openai

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"oneclaw/agent"
)

// encoder writes a request. It is ours because the library's encoding of a long history
// would cost more than all else that is done for a message, and would write tools anew.
type encoder struct {
	client *Client
	quirks quirks
	buf    []byte
	show   show
	ids    callIDs
	// last is who spoke last; empty before the first message.
	last string
}

func (e *encoder) raw(s string) { e.buf = append(e.buf, s...) }

// next puts a comma between messages.
func (e *encoder) next() {
	if e.last != "" {
		e.raw(`,`)
	}
	e.last = "item"
}

// open begins a message.
func (e *encoder) open(role string) {
	e.next()
	e.last = role
	e.raw(`{"role":"` + role + `"`)
}

// item begins an item of the Responses API that is no message.
func (e *encoder) item(kind string) {
	e.next()
	e.raw(`{"type":"` + kind + `"`)
}

func (e *encoder) field(name, value string) {
	e.raw(`,"` + name + `":`)
	e.buf = appendString(e.buf, value)
}

func (e *encoder) message(role, content string) {
	e.open(role)
	e.field("content", content)
	e.raw(`}`)
}

// user writes a user message.
func (e *encoder) user(text string, pictures []picture) {
	if e.quirks.bridge && e.last == "tool" {
		e.message("assistant", textBridge)
	}
	if len(pictures) == 0 {
		e.message("user", text)
		return
	}
	kind, before, after := "text", `,{"type":"image_url","image_url":{"url":"`, `"}}`
	if e.quirks.responses {
		kind, before, after = "input_text", `,{"type":"input_image","detail":"auto","image_url":"`, `"}`
	}
	e.open("user")
	e.raw(`,"content":[{"type":"` + kind + `"`)
	e.field("text", text)
	e.raw(`}`)
	for _, p := range pictures {
		e.raw(before)
		e.buf = p.appendURL(e.buf)
		e.raw(after)
	}
	e.raw(`]}`)
}

// textBridge stands between a result and a message of the user, where a server wants the
// model to have spoken.
const textBridge = "I have the results."

// assistant writes a reply of the model, with what it wants back. Some want a signature
// with the first call of each reply of the present turn.
func (e *encoder) assistant(m *agent.Message, back carried, inTurn bool) {
	e.open("assistant")
	e.ids.reply()
	switch {
	case back.Field == fieldParts && !e.quirks.drops:
		e.raw(`,"content":[{"type":"thinking","thinking":[{"type":"text"`)
		e.field("text", back.Text)
		e.raw(`}]}`)
		if m.Text != "" {
			e.raw(`,{"type":"text"`)
			e.field("text", m.Text)
			e.raw(`}`)
		}
		e.raw(`]`)
	case m.Text != "" || len(m.Calls) == 0:
		e.field("content", orEmpty(m.Text))
	}
	for i := range m.Calls {
		if i == 0 {
			e.raw(`,"tool_calls":[`)
		} else {
			e.raw(`,`)
		}
		e.raw(`{"type":"function"`)
		e.field("id", e.ids.call(m.Calls[i].ID))
		e.raw(`,"function":{"name":`)
		e.buf = appendString(e.buf, functionName(m.Calls[i].Name))
		e.field("arguments", arguments(m.Calls[i].Arguments))
		e.raw(`}`)
		if !e.quirks.drops {
			e.raw(back.extra(i, inTurn && e.quirks.signs))
		}
		e.raw(`}`)
	}
	if len(m.Calls) > 0 {
		e.raw(`]`)
	}
	e.thoughts(back, inTurn)
	e.raw(`}`)
}

// output writes a reply for the Responses API, within the turn in the order in which it
// came and with the reasoning, which has to stand in front of what it led to.
func (e *encoder) output(m *agent.Message, back carried) {
	e.ids.reply()
	said, called := false, 0
	say := func(phase string) {
		if said || m.Text == "" && len(m.Calls) > 0 {
			return
		}
		said = true
		e.open("assistant")
		e.field("content", orEmpty(m.Text))
		if phase != "" {
			e.field("phase", phase)
		}
		e.raw(`}`)
	}
	call := func() {
		if called < len(m.Calls) {
			c := &m.Calls[called]
			called++
			e.item(itemCall)
			e.field("call_id", e.ids.call(c.ID))
			e.field("name", functionName(c.Name))
			e.field("arguments", arguments(c.Arguments))
			e.raw(`}`)
		}
	}
	for _, it := range back.Items {
		switch it.Type {
		case itemMessage:
			say(it.Phase)
		case itemCall:
			call()
		case itemReasoning:
			e.reasoning(it)
		}
	}
	say("")
	for called < len(m.Calls) {
		call()
	}
}

func (e *encoder) reasoning(it item) {
	e.item(itemReasoning)
	if it.ID != "" {
		e.field("id", it.ID)
	}
	e.field("encrypted_content", it.Encrypted)
	summary := "[]"
	if len(it.Summary) > 0 && it.Summary[0] == '[' {
		summary = string(it.Summary)
	}
	e.raw(`,"summary":` + summary + `}`)
}

func (e *encoder) result(m *agent.Message) {
	id, text := e.ids.result(m.CallID), ResultText(m, e.show.blind)
	if e.quirks.responses {
		e.item("function_call_output")
		e.field("call_id", id)
		e.field("output", text)
	} else {
		e.open("tool")
		e.field("tool_call_id", id)
		e.field("content", text)
	}
	e.raw(`}`)
}

// ResultText is what the model reads of a result: pictures that it cannot see are named.
func ResultText(m *agent.Message, blind bool) string {
	var text strings.Builder
	text.WriteString(m.Text)
	for i := range m.Files {
		if f := &m.Files[i]; f.Picture != nil && (blind || f.Picture.Gone) {
			text.WriteString("\n" + fileLine(f, blind))
		}
	}
	return orEmpty(text.String())
}

// functionName makes a name that the model invented acceptable to servers, which
// would refuse the conversation for ever because of it.
func functionName(name string) string {
	valid := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	if name != "" && len(name) <= 64 && strings.IndexFunc(name, func(r rune) bool { return !valid(r) }) < 0 {
		return name
	}
	name = strings.Map(func(r rune) rune {
		if valid(r) {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "unknown"
	}
	return name[:min(len(name), 64)]
}

// arguments returns them as the model wrote them, unless they are not an object:
// some servers decode them and refuse the conversation for ever if they cannot.
func arguments(raw string) string {
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" {
		return "{}"
	}
	if trimmed[0] == '{' && json.Valid([]byte(trimmed)) {
		return raw
	}
	return string(append(appendString([]byte(`{"invalid_arguments":`), raw), '}'))
}

const hexDigits = "0123456789abcdef"

// appendString appends a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendString(buf []byte, s string) []byte {
	buf = append(buf, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				buf = append(append(buf, s[done:i]...), "\uFFFD"...)
				done = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		buf = append(buf, s[done:i]...)
		switch c {
		case '"', '\\':
			buf = append(buf, '\\', c)
		case '\n':
			buf = append(buf, '\\', 'n')
		case '\t':
			buf = append(buf, '\\', 't')
		default:
			buf = append(buf, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		done = i
	}
	buf = append(buf, s[done:]...)
	return append(buf, '"')
}

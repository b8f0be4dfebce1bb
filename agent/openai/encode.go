package openai

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"oneclaw/agent"
)

// encoder writes the messages of a request. It is ours because the library's
// encoding of a long history would cost more than all else that is done for a
// message.
type encoder struct {
	buf  []byte
	some bool
	to   dialogue
}

// dialogue says whom messages are encoded for.
type dialogue struct {
	origin string
	// signed servers want a signature with the first call of each reply of the turn.
	signed bool
	// show is what is shown with one of the messages.
	show show
}

func (e *encoder) raw(s string) { e.buf = append(e.buf, s...) }

// open begins a message.
func (e *encoder) open(role string) {
	if e.some {
		e.raw(`,`)
	}
	e.some = true
	e.raw(`{"role":"`)
	e.raw(role)
	e.raw(`"`)
}

func (e *encoder) field(name, value string) {
	e.raw(`,"`)
	e.raw(name)
	e.raw(`":`)
	e.buf = appendString(e.buf, value)
}

func (e *encoder) message(role, content string) {
	e.open(role)
	e.field("content", content)
	e.raw(`}`)
}

// assistant writes a reply of the model. Reasoning goes back only within the turn:
// the servers that want it refuse that of earlier ones.
func (e *encoder) assistant(m *agent.Message, reasoning bool) {
	e.open("assistant")
	if m.Text != "" || len(m.Calls) == 0 {
		e.field("content", orEmpty(m.Text))
	}
	var back carried
	if reasoning {
		back = unpack(m.Reasoning, e.to.origin)
	}
	if back.Text != "" {
		e.field("reasoning_content", back.Text)
	}
	for i := range m.Calls {
		if i == 0 {
			e.raw(`,"tool_calls":[`)
		} else {
			e.raw(`,`)
		}
		e.raw(`{"type":"function"`)
		e.field("id", m.Calls[i].ID)
		e.raw(`,"function":{"name":`)
		e.buf = appendString(e.buf, functionName(m.Calls[i].Name))
		e.field("arguments", arguments(m.Calls[i].Arguments))
		e.raw(`}`)
		if reasoning {
			e.extra(back, i)
		}
		e.raw(`}`)
	}
	if len(m.Calls) > 0 {
		e.raw(`]`)
	}
	e.raw(`}`)
}

func (e *encoder) result(m *agent.Message) {
	e.open("tool")
	e.field("tool_call_id", m.CallID)
	e.field("content", orEmpty(m.Text))
	e.raw(`}`)
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

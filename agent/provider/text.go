package provider

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"oneclaw/agent"
	"oneclaw/internal/wording"
)

// TurnStart returns the index of the last message that begins a turn; -1 if there is none.
func TurnStart(messages []agent.Message) int {
	for i, message := range slices.Backward(messages) {
		if message.BeginsTurn() {
			return i
		}
	}
	return -1
}

// UserText returns the text of a message with the user's role as it is sent to the model: quotes,
// "[Ann] text" in shared chats, a line "[file: path]" for each file, and the notes found by the memory
// search; for a summary, its text and the loaded groups. If blind is true, the line for a picture says
// that the model cannot see it.
func UserText(m *agent.Message, blind bool) string {
	if m.Role == agent.RoleSummary {
		return strings.TrimSpace("[Summary of the conversation so far]\n" + m.Text + "\n\n" + m.LoadedGroups)
	}
	text := m.Text
	if name := cleanSenderName(m.Sender); name != "" {
		text = "[" + name + "] " + text
	}
	if quoted := m.QuotedText(); quoted != "" {
		text = quoted + "\n" + text
	}
	for i := range m.Files {
		text = strings.TrimPrefix(text+"\n"+fileLine(&m.Files[i], blind), "\n")
	}
	if m.Recalled != "" {
		text += "\n[From memory]\n" + m.Recalled
	}
	return OrPlaceholder(text)
}

// maxSender bounds the name of a sender, in characters.
const maxSender = 64

// cleanSenderName removes brackets and control characters from a name, and clips it.
func cleanSenderName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '[' || r == ']' || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, name)
	name, _ = wording.SplitAt(strings.Join(strings.Fields(name), " "), maxSender)
	return name
}

// OrPlaceholder returns text, or a placeholder if it is blank, because many servers refuse empty texts.
func OrPlaceholder(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(empty)"
	}
	return text
}

// ResultText returns the text of a result for a model, and names its pictures that are not sent.
func ResultText(m *agent.Message, blind bool) string {
	var text strings.Builder
	text.WriteString(m.Text)
	for i := range m.Files {
		if f := &m.Files[i]; f.Picture != nil && (blind || f.Picture.Gone) {
			text.WriteString("\n" + fileLine(f, blind))
		}
	}
	return OrPlaceholder(text.String())
}

// ValidFunctionName returns the name, or a valid one in place of an invalid name that the model made up.
// Servers would refuse every later request with the invalid name.
func ValidFunctionName(name string) string {
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

// ValidArguments returns arguments that are a JSON object unchanged, and wraps others in an object. Some
// servers decode the arguments, and would refuse every later request with invalid ones.
func ValidArguments(raw string) string {
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" {
		return "{}"
	}
	if trimmed[0] == '{' && json.Valid([]byte(trimmed)) {
		return raw
	}
	return string(append(AppendString([]byte(`{"invalid_arguments":`), raw), '}'))
}

const hexDigits = "0123456789abcdef"

// AppendString appends a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendString(buf []byte, s string) []byte {
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

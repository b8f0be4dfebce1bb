package toolgroups

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"oneclaw/internal/wording"
)

// MaxDescription is how many characters of a group's description the listing
// shows; what is longer ends in "…".
const MaxDescription = 200

// listing is the section of the system prompt (S5) without trailing space.
func listing(groups []Group) string {
	if len(groups) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("## Available Tool Groups\n\nUse `load_tool_group` to load tools from a group before using them.\n")
	for _, g := range groups {
		b.WriteString("\n- " + g.Name + ": " + g.Description)
	}
	return b.String()
}

// JoinPrompt puts the listing behind the prompt. A blank prompt leaves the listing
// alone, an empty listing leaves the prompt as it is.
func JoinPrompt(prompt, listing string) string {
	switch {
	case listing == "":
		return prompt
	case strings.TrimSpace(prompt) == "":
		return listing
	default:
		return prompt + "\n\n---\n\n" + listing
	}
}

// oneLine folds white space and control characters into single spaces, drops
// characters that are invisible or turn the direction of writing, and cuts.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case r == utf8.RuneError, unicode.Is(unicode.Bidi_Control, r), r == '\u200b', r == '\ufeff':
			return -1
		}
		return r
	}, s)
	return wording.Clip(strings.Join(strings.Fields(s), " "), limit)
}

// displayName makes "My Tools" of my_tools.
func displayName(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r == ' ' })
	for i, w := range words {
		r, size := utf8.DecodeRuneInString(w)
		words[i] = string(unicode.ToUpper(r)) + w[size:]
	}
	return strings.Join(words, " ")
}

// description stands in for a group that has none of its own.
func description(name string, tools []Tool) string {
	if len(tools) == 0 {
		return "Tools of the group " + name
	}
	return "Tools of the group " + name + ": " + strings.Join(Names(tools), ", ")
}

// Names returns the names of tools.
func Names(tools []Tool) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}

package toolgroups

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"oneclaw/internal/wording"
)

// MaxDescription bounds a group's description in the listing, in characters; a longer one ends
// in "…".
const MaxDescription = 200

// listing returns the groups section of the system prompt, without trailing space; "" without groups.
func listing(groups []Group) string {
	if len(groups) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("## Available Tool Groups\n\nUse `load_tool_group` to load tools from a group before using them.\n")
	for _, g := range groups {
		b.WriteString("\n- " + g.Name + ": " + g.Description + loadersOf(g.Role))
	}
	return b.String()
}

// loadersOf names the people who alone may load a group. It is the same in every chat, which keeps prompts
// cacheable.
func loadersOf(role Role) string {
	switch role {
	case RoleAdmin:
		return " (administrators)"
	case RoleOwner:
		return " (owner)"
	}
	return ""
}

// allListed takes the place of the listing where nothing needs to be loaded.
const allListed = "## Available Tool Groups\n\nThe tools of all groups are listed already: call them without loading anything."

// JoinPrompt appends the listing to the prompt. Either may be empty.
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

// oneLine folds white space and control characters into single spaces, drops invisible and
// bidirectional control characters, and shortens the text to limit characters.
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

// displayName turns my_tools into "My Tools".
func displayName(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r == ' ' })
	for i, w := range words {
		r, size := utf8.DecodeRuneInString(w)
		words[i] = string(unicode.ToUpper(r)) + w[size:]
	}
	return strings.Join(words, " ")
}

// defaultDescription makes a description from the names of a group and its tools.
func defaultDescription(name string, tools []Tool) string {
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

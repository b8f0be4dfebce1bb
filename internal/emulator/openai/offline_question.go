package openai

import (
	"regexp"
	"strings"
)

var (
	askMe     = regexp.MustCompile(`(?is)^(?:please\s+)?ask me\s+((?:which|what|where|when|who|how)\b[^:?\n]{0,200})[:?]\s*(.+?)[.?!]*$`)
	orBetween = regexp.MustCompile(`(?i)\s*,\s*(?:or\s+)?|\s+or\s+`)
	answered  = regexp.MustCompile(`(?m)^1\. (?:chose|wrote in their own words:) "(.*)"$`)
)

// askQuestion asks the user to choose, and says what was chosen.
func (t *turn) askQuestion(m []string) string {
	const tool = "ask_user"
	t.load("questions", tool)
	text := t.use(tool, map[string]any{"questions": []any{map[string]any{"question": strings.ToUpper(m[1][:1]) + m[1][1:] + "?", "choices": orBetween.Split(m[2], -1)}}})
	switch found := answered.FindStringSubmatch(text); {
	case found != nil:
		return "You said: " + strings.ReplaceAll(found[1], `\"`, `"`) + "."
	case strings.Contains(text, "1. skipped"):
		return "You left that out."
	}
	return rewordForUser(text)
}

package openai

import (
	"regexp"
	"strings"
)

var (
	askMe     = regexp.MustCompile(`(?is)^(?:please\s+)?ask me\s+((?:which|what|where|when|who|how)\b[^:?\n]{0,200})[:?]\s*(.+?)[.?!]*$`)
	askLikes  = regexp.MustCompile(`(?i)\b(?:trip|holiday|vacation|weekend)\b.*\bask me what i (?:like|want|prefer)\b`)
	orBetween = regexp.MustCompile(`(?i)\s*,\s*(?:or\s+)?|\s+or\s+`)
	answered  = regexp.MustCompile(`(?m)^\d\. (?:chose|wrote in their own words:) "(.*)"$`)
)

// askQuestion asks the user to choose, and says what was chosen.
func (t *turn) askQuestion(m []string) string {
	return t.askAll(map[string]any{"question": strings.ToUpper(m[1][:1]) + m[1][1:] + "?", "choices": orBetween.Split(m[2], -1)})
}

// askWhatTheyLike asks two questions about a trip, which the rules cannot plan.
func (t *turn) askWhatTheyLike() string {
	return t.askAll(
		map[string]any{"question": "Where would you like to go?", "choices": []string{"The sea", "The mountains", "A city"}},
		map[string]any{"question": "How would you like to travel?", "choices": []string{"By train", "By car", "By bike"}},
	) + "\n\nTo plan a trip from that, I need a real model: " + setKey
}

func (t *turn) askAll(questions ...any) string {
	const tool = "ask_user"
	t.load("questions", tool)
	text := t.use(tool, map[string]any{"questions": questions})
	var said []string
	for _, found := range answered.FindAllStringSubmatch(text, -1) {
		said = append(said, strings.ReplaceAll(found[1], `\"`, `"`))
	}
	switch {
	case said != nil:
		return "You said: " + strings.Join(said, "; ") + "."
	case strings.Contains(text, "1. skipped"):
		return "You left that out."
	}
	return rewordForUser(text)
}

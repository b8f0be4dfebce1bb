package bridge

import (
	"regexp"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// namesOf matches each of these commands, as texts of ours name them.
func namesOf(commands []jobs.Command) *regexp.Regexp {
	var names []string
	for _, c := range commands {
		names = append(names, regexp.QuoteMeta(c.Name))
	}
	return regexp.MustCompile(`(^|[\s(` + "`" + `])/(` + strings.Join(names, "|") + `)\b`)
}

// spelled is a text of ours, in which commands have a slash, with the commands as people
// write them on a platform.
func (b *Bridge) spelled(platform, text string) string {
	s, ok := b.platforms[platform].(chats.Speller)
	if !ok {
		return text
	}
	return b.names.ReplaceAllString(text, "${1}"+strings.ReplaceAll(s.CommandSign(), "$", "$$")+"${2}")
}

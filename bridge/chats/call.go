package chats

import (
	"regexp"
	"strings"
	"unicode"
)

// face is a face or the name of an emoji, whose colon is no punctuation.
var face = regexp.MustCompile(`^(?::[\pL\d_+'-]+:|[:;]['-]?[()DPpOo3/\\|*]+(?:\s|$))`)

// TrimMention returns what follows a name that calls the bot, without the space and the
// punctuation that set it off.
func TrimMention(text string) string {
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" || !strings.ContainsRune(",:;", rune(text[0])) || face.MatchString(text) {
			return text
		}
		text = text[1:]
	}
}

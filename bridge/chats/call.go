package chats

import (
	"regexp"
	"strings"
	"unicode"
)

// face matches a smiley, or the name of an emoji, whose colon is not punctuation.
var face = regexp.MustCompile(`^(?::[\pL\d_+'-]+:|[:;]['-]?[()DPpOo3/\\|*]+(?:\s|$))`)

// TrimMention returns the text after a mention of the bot, without the space and the punctuation that
// separate it.
func TrimMention(text string) string {
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" || !strings.ContainsRune(",:;", rune(text[0])) || face.MatchString(text) {
			return text
		}
		text = text[1:]
	}
}

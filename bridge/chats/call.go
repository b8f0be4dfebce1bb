package chats

import (
	"regexp"
	"strings"
	"unicode"
)

// emoticon matches a smiley or the name of an emoji, whose colon is not punctuation.
var emoticon = regexp.MustCompile(`^(?::[\pL\d_+'-]+:|[:;]['-]?[()DPpOo3/\\|*]+(?:\s|$))`)

// TrimMention returns the text after a mention of the bot, without the space and the punctuation that
// separate it.
func TrimMention(text string) string {
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" || !strings.ContainsRune(",:;", rune(text[0])) || emoticon.MatchString(text) {
			return text
		}
		text = text[1:]
	}
}

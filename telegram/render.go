package telegram

import (
	"regexp"
	"unicode/utf16"

	"oneclaw/bridge/chats"
	"oneclaw/internal/markdown"
)

// maxText bounds a message in UTF-16 units, without markup.
const maxText = 4096

// Render renders Markdown as parts in Telegram's HTML that notify no user.
func (p *platform) Render(text string) []chats.Part {
	var parts []chats.Part
	for _, part := range markdown.Parse(text).TelegramHTML(partLimit()) {
		parts = append(parts, chats.Part{Text: part.Text, Plain: part.Plain})
	}
	return parts
}

// mentionPattern matches texts that Telegram takes for a user's name in plain text.
var mentionPattern = regexp.MustCompile(`(^|[^\pL\pN_])@([\pL\pN_])`)

// breakMentions breaks mentions in plain text with an invisible character.
func breakMentions(text string) string {
	return mentionPattern.ReplaceAllString(markdown.WithoutDeleted(text), "$1@\u200b$2")
}

// partLimit returns the limit of a part, in UTF-16 units. It leaves room for the notices that a send may
// add.
func partLimit() int {
	return maxText - markdown.UTF16Len("\n\n"+chats.RepeatNotice) - markdown.UTF16Len(topicNotice+"\n\n")
}

// prefixLen returns the length in bytes of the longest prefix of at most limit UTF-16 units.
func prefixLen(s string, limit int) int {
	units := 0
	for i, r := range s {
		if units += max(1, utf16.RuneLen(r)); units > limit {
			return i
		}
	}
	return len(s)
}

package telegram

import (
	"html"
	"regexp"
	"strings"
	"unicode/utf16"

	"oneclaw/bridge/chats"
	"oneclaw/internal/markdown"
)

// maxText is the length of a message in UTF-16 units, markup not counted.
const maxText = 4096

// Render turns Markdown into parts in Telegram's HTML. Where that fails, the parts
// hold the text as it is. Names like @someone are shown and call nobody: what a model
// writes must not ring people's phones.
func (p *Platform) Render(text string) []chats.Part {
	return render(text, func(text string, limit int) []markdown.Part {
		return markdown.Parse(text).TelegramHTML(markdown.TelegramOptions{Limit: limit, InertMentions: true})
	})
}

// mention finds what Telegram takes for somebody's name in plain text.
var mention = regexp.MustCompile(`(^|[^\pL\pN_])@([\pL\pN_])`)

// inert breaks names in plain text with an invisible character.
func inert(text string) string { return mention.ReplaceAllString(text, "$1@\u200b$2") }

// partLimit leaves room for the lines that a send may add.
func partLimit() int {
	return maxText - utf16Len("\n\n"+chats.RepeatNotice) - utf16Len(topicNotice+"\n\n")
}

func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

func render(text string, with func(string, int) []markdown.Part) (parts []chats.Part) {
	defer func() {
		if recover() != nil || (len(parts) == 0 && strings.TrimSpace(text) != "") {
			parts = plainParts(text, partLimit())
		}
	}()
	for _, part := range with(text, partLimit()) {
		parts = append(parts, chats.Part{Text: part.Text, Plain: part.Plain})
	}
	return parts
}

// plainParts cuts a text into parts of at most limit UTF-16 units, at the ends of
// lines where there are any in the second half of a part.
func plainParts(text string, limit int) []chats.Part {
	var parts []chats.Part
	text = inert(strings.ToValidUTF8(text, "\uFFFD"))
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		n := prefixLen(text, limit)
		if n < len(text) {
			if cut := strings.LastIndexByte(text[:n], '\n'); cut > n/2 {
				n = cut
			}
		}
		part := strings.TrimSpace(text[:n])
		parts = append(parts, chats.Part{Text: html.EscapeString(part), Plain: part})
		text = text[n:]
	}
	return parts
}

// prefixLen is the length in bytes of the longest prefix of at most limit units.
func prefixLen(s string, limit int) int {
	units := 0
	for i, r := range s {
		if units += max(1, utf16.RuneLen(r)); units > limit {
			return i
		}
	}
	return len(s)
}

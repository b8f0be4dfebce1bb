package telegram

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"oneclaw/bridge/chats"
	"oneclaw/internal/markdown"
)

var commandPattern = regexp.MustCompile(`^/([A-Za-z0-9_]{1,32})(?:@([A-Za-z0-9_]+))?(?:\s|$)`)

// decodedText is the decoded text of a message.
type decodedText struct {
	text      string
	mentioned bool
	// command is the command that the text begins with, without slash and suffix, in lower case; target
	// is the bot that its suffix names.
	command, target string
}

// decodeText finds mentions of the bot and removes those that only address it. It adds the addresses
// of links whose texts do not show them, and removes the bot's name from a command.
func (u user) decodeText(text string, entities []entity) decodedText {
	units := utf16.Encode([]rune(text))
	var w decodedText
	var own []span
	var edits []edit
	for _, e := range entities {
		s, ok := e.span(len(units))
		if !ok {
			continue
		}
		part := string(utf16.Decode(units[s.from:s.to]))
		switch {
		case u.isMention(e, part):
			w.mentioned = true
			own = append(own, s)
		case e.Type == "text_link" && e.URL != "" && e.URL != part:
			edits = append(edits, edit{span{s.to, s.to}, " (" + e.URL + ")"})
		}
	}
	from, to := trimMentions(units, own)
	w.text = strings.TrimSpace(applyEdits(units, edits, from, to))
	if m := commandPattern.FindStringSubmatch(w.text); m != nil {
		w.command, w.target = strings.ToLower(m[1]), m[2]
		if u.isName(w.target) {
			w.text = "/" + m[1] + w.text[len("/")+len(m[1])+len("@")+len(m[2]):]
		}
	}
	if w.text == "" {
		// A mere mention is still a message.
		w.text = strings.TrimSpace(text)
	}
	return w
}

func (u user) isName(name string) bool {
	return name != "" && strings.EqualFold(name, u.Username)
}

func (u user) isMention(e entity, part string) bool {
	switch e.Type {
	case "mention":
		name, ok := strings.CutPrefix(part, "@")
		return ok && u.isName(name)
	case "text_mention":
		return e.User != nil && e.User.ID == u.ID
	}
	return false
}

// span is a range of UTF-16 code units, in which Telegram counts.
type span struct{ from, to int }

func (e entity) span(length int) (span, bool) {
	if e.Offset < 0 || e.Length <= 0 || e.Offset > length || e.Length > length-e.Offset {
		return span{}, false
	}
	return span{e.Offset, e.Offset + e.Length}, true
}

// trimMentions returns the range of a text without the bot's mentions at both ends.
func trimMentions(units []uint16, own []span) (from, to int) {
	to = len(units)
	for next := skipSpace(units); ; {
		i := slices.IndexFunc(own, func(s span) bool { return s.from == next })
		if i < 0 {
			break
		}
		from = to - markdown.UTF16Len(chats.TrimMention(string(utf16.Decode(units[own[i].to:]))))
		next = from
	}
	for last := skipSpaceBack(units, to); last > from; {
		i := slices.IndexFunc(own, func(s span) bool { return s.to == last && s.from >= from })
		if i < 0 {
			break
		}
		to = own[i].from
		last = skipSpaceBack(units, to)
	}
	return from, to
}

// skipSpace returns the index after the white space at the beginning.
func skipSpace(units []uint16) int {
	i := 0
	for i < len(units) && unicode.IsSpace(rune(units[i])) {
		i++
	}
	return i
}

func skipSpaceBack(units []uint16, i int) int {
	for i > 0 && unicode.IsSpace(rune(units[i-1])) {
		i--
	}
	return i
}

// edit replaces a span by text.
type edit struct {
	span
	text string
}

// applyEdits applies the edits, which are sorted by position, within a range.
func applyEdits(units []uint16, edits []edit, from, to int) string {
	var b strings.Builder
	for _, e := range edits {
		if e.from < from || e.to > to {
			continue
		}
		b.WriteString(string(utf16.Decode(units[from:e.from])))
		b.WriteString(e.text)
		from = e.to
	}
	b.WriteString(string(utf16.Decode(units[from:to])))
	return b.String()
}

// isForBot reports whether a message in a group addresses the bot: it mentions the bot, replies to it,
// or is one of its commands.
func (u user) isForBot(m *message, w decodedText, commands map[string]bool) bool {
	switch {
	case w.mentioned, u.isName(w.target):
		return true
	case w.target != "":
		return false
	}
	if r := m.ReplyTo; r != nil && r.From != nil && r.From.ID == u.ID && len(r.TopicCreated) == 0 {
		return true
	}
	return commands[w.command]
}

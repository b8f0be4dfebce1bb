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

// words is the decoded text of a message.
type words struct {
	text      string
	mentioned bool
	// command is the command that the text begins with, without slash and suffix, in lower case; target
	// is the bot that its suffix names.
	command, target string
}

// read finds mentions of the bot, removes those that only address it, adds the addresses of links that
// do not show, and removes the bot's name from a command.
func (u user) read(text string, entities []entity) words {
	units := utf16.Encode([]rune(text))
	var w words
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
	from, to := trimCalls(units, own)
	w.text = strings.TrimSpace(apply(units, edits, from, to))
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

// trimCalls removes the mentions at both ends of a text.
func trimCalls(units []uint16, own []span) (from, to int) {
	to = len(units)
	for next := skip(units); ; {
		i := slices.IndexFunc(own, func(s span) bool { return s.from == next })
		if i < 0 {
			break
		}
		from = to - markdown.Units(chats.TrimMention(string(utf16.Decode(units[own[i].to:]))))
		next = from
	}
	for last := skipBack(units, to); last > from; {
		i := slices.IndexFunc(own, func(s span) bool { return s.to == last && s.from >= from })
		if i < 0 {
			break
		}
		to = own[i].from
		last = skipBack(units, to)
	}
	return from, to
}

// skip passes over the white space at the beginning.
func skip(units []uint16) int {
	i := 0
	for i < len(units) && unicode.IsSpace(rune(units[i])) {
		i++
	}
	return i
}

func skipBack(units []uint16, i int) int {
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

// apply makes the edits, which are in the order of their positions, within a range.
func apply(units []uint16, edits []edit, from, to int) string {
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

// isForBot reports whether a message in a group addresses the bot: it mentions it, replies to it, or is
// one of its commands.
func (u user) isForBot(m *message, w words, commands map[string]bool) bool {
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

package telegram

import (
	"encoding/json"
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

// decodeText finds mentions of the bot and removes those that only address it. It adds the formatting and the
// addresses of links, and removes the bot's name from a command, which has no formatting.
func (u user) decodeText(text string, entities []entity) decodedText {
	units := utf16.Encode([]rune(text))
	var w decodedText
	var own []span
	for _, e := range entities {
		s, ok := e.span(len(units))
		if !ok {
			continue
		}
		if u.isMention(e, string(utf16.Decode(units[s.from:s.to]))) {
			w.mentioned = true
			own = append(own, s)
		}
	}
	from, to := trimMentions(units, own)
	if w.text = linkedText(units, entities, from, to); !commandPattern.MatchString(w.text) {
		w.text = markedText(units, entities, from, to)
	}
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

// namesOthers reports whether a text has the name of somebody other than the bot, who chose it: the sender's app
// offers such names while they type, and writes that of one who has no username.
func (u user) namesOthers(text string, entities []entity) bool {
	units := utf16.Encode([]rune(text))
	return slices.ContainsFunc(entities, func(e entity) bool {
		s, ok := e.span(len(units))
		if !ok || !e.mayName() {
			return false
		}
		part := string(utf16.Decode(units[s.from:s.to]))
		if e.Type == "text_mention" {
			return !u.isMention(e, part)
		}
		_, name, named := strings.Cut(part, "@")
		return named && !u.isName(name)
	})
}

// mayName reports whether an entity can have a name: of a user, of the channel of a tag, or of the bot of a command.
func (e entity) mayName() bool {
	switch e.Type {
	case "mention", "text_mention", "hashtag", "cashtag", "bot_command":
		return true
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
	if u.wroteExternal(m.External) {
		return true
	}
	return commands[w.command]
}

// wroteExternal reports whether the bot wrote the message in another chat or topic to which a message replies.
func (u user) wroteExternal(raw json.RawMessage) bool {
	var r struct {
		Origin origin `json:"origin"`
	}
	return isPresent(raw) && json.Unmarshal(raw, &r) == nil && r.Origin.User != nil && r.Origin.User.ID == u.ID
}

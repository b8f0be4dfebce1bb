package slack

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"oneclaw/bridge/chats"
)

type identity struct {
	user, bot, name  string
	team, enterprise string
	agentView        bool // direct messages are threads
	seesReactions    bool // Slack reports what people react
}

// bracketPattern matches text in angle brackets. Brackets that users typed are escaped.
var bracketPattern = regexp.MustCompile(`<([^<>]*)>`)

// decodedText is the decoded text of a message.
type decodedText struct {
	text      string
	mentioned bool
	// addressed is set if the text began with a mention, which was removed.
	addressed bool
}

// decodeText decodes a text: links, mentions and channels become readable, and mentions of the bot at
// either end are removed. name returns the name of a user, a channel or a user group.
func (s identity) decodeText(raw string, name func(user string) string) decodedText {
	var w decodedText
	w.mentioned = s.isMentioned(raw)
	text := strings.TrimSpace(raw)
	for {
		rest, ok := s.cutMention(text)
		if !ok {
			break
		}
		text, w.addressed = rest, true
	}
	for {
		loc := s.lastMention(text)
		if loc < 0 {
			break
		}
		text = strings.TrimSpace(text[:loc])
	}
	w.text = s.plainText(cmp.Or(text, raw), name) // a mere mention is still a message
	return w
}

// plainText decodes a text without removing mentions.
func (s identity) plainText(text string, name nameLookup) string {
	text = strings.TrimSpace(text)
	var b strings.Builder
	at := 0
	for _, m := range bracketPattern.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(unescape(text[at:m[0]]))
		b.WriteString(s.readable(text[m[2]:m[3]], name))
		at = m[1]
	}
	b.WriteString(unescape(text[at:]))
	return strings.TrimSpace(b.String())
}

func (s identity) isMentioned(raw string) bool {
	return slices.ContainsFunc(bracketPattern.FindAllStringSubmatch(raw, -1), func(m []string) bool { return s.isMention(m[1]) })
}

// isMention reports whether a token in angle brackets mentions the bot.
func (s identity) isMention(token string) bool {
	id, ok := strings.CutPrefix(token, "@")
	id, _, _ = strings.Cut(id, "|")
	return ok && id != "" && id == s.user
}

// namesOthers reports whether a text names users, channels or user groups: those have chosen their names.
func (s identity) namesOthers(raw string) bool {
	return slices.ContainsFunc(bracketPattern.FindAllStringSubmatch(raw, -1), func(m []string) bool {
		return !s.isMention(m[1]) && (m[1] != "" && strings.ContainsRune("@#", rune(m[1][0])) || strings.HasPrefix(m[1], "!subteam^"))
	})
}

// cutMention removes a mention of the bot from the beginning, with the punctuation after it.
func (s identity) cutMention(text string) (string, bool) {
	m := bracketPattern.FindStringSubmatchIndex(text)
	if m == nil || m[0] != 0 || !s.isMention(text[m[2]:m[3]]) {
		return text, false
	}
	return chats.TrimMention(text[m[1]:]), true
}

// lastMention returns the index of a mention of the bot at the end of a text, or -1.
func (s identity) lastMention(text string) int {
	if !strings.HasSuffix(text, ">") {
		return -1
	}
	i := strings.LastIndexByte(text, '<')
	if i < 0 || !s.isMention(text[i+1:len(text)-1]) {
		return -1
	}
	return i
}

// readable returns the readable form of a token in angle brackets.
func (s identity) readable(token string, name func(user string) string) string {
	target, label, _ := strings.Cut(token, "|")
	target, label = unescape(target), unescape(label)
	switch {
	case s.isMention(token):
		return "@" + s.name
	case strings.HasPrefix(target, "@"):
		if label == "" {
			label = name(target[1:])
		}
		return "@" + strings.TrimPrefix(label, "@")
	case strings.HasPrefix(target, "#"):
		return "#" + cmp.Or(label, name(target[1:]), target[1:])
	case strings.HasPrefix(target, "!"):
		return readableSpecial(target[1:], label, name)
	case label == "" || label == target:
		return target
	case strings.TrimPrefix(target, "mailto:") == label, strings.TrimPrefix(target, "http://") == label,
		strings.TrimPrefix(target, "https://") == label, strings.TrimPrefix(target, "tel:") == label:
		return label
	}
	return label + " (" + target + ")"
}

// readableSpecial returns the readable form of a broadcast, a group or a date.
func readableSpecial(target, label string, name nameLookup) string {
	if label != "" {
		return label
	}
	if kind, id, ok := strings.Cut(target, "^"); ok {
		if kind == "subteam" {
			return "@" + cmp.Or(name(id), id)
		}
		return id
	}
	return "@" + target
}

var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

func unescape(s string) string { return entities.Replace(s) }

// escape escapes a text so that it is shown literally.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// lookUpCommand returns the command with the given name.
func (r *receiver) lookUpCommand(word string) (chats.CommandInfo, bool) {
	host, ok := r.in.(chats.CommandInbox)
	if !ok {
		return chats.CommandInfo{}, false
	}
	return host.Command(word)
}

// asCommand returns a command in its form with a slash, and any other text unchanged. "!clear" and
// "/clear" are commands with or without arguments, "clear" only if it is the whole text and addressed is
// set. Slack does not deliver texts that begin with a slash, and has no commands in threads.
func (r *receiver) asCommand(text string, addressed bool) string {
	first, rest, more := strings.Cut(text, " ")
	word := strings.ToLower(strings.TrimLeft(first, "/!"))
	marked := len(first) == len(word)+1
	if _, is := r.lookUpCommand(word); !is || !marked && (more || !addressed || len(first) != len(word)) {
		return text
	}
	if !more {
		return "/" + word
	}
	return "/" + word + " " + rest
}

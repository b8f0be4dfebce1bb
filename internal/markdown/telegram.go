package markdown

import (
	"regexp"
	"strconv"
	"strings"

	"oneclaw/internal/wording"
)

// maxTelegramHref bounds an address that becomes a link.
const maxTelegramHref = 2048

// TelegramHTML renders the document for Telegram's HTML parse mode, in parts of at most limit
// visible UTF-16 units, and four times that with markup. It mentions no user. A document without
// visible text has no parts.
func (d *Document) TelegramHTML(limit int) []Part {
	limit = max(limit, MinLimit)
	return split(d, telegram{limit: limit}, limit)
}

type telegram struct {
	limit int
}

// maxEntities bounds the formatting of a part. Telegram keeps 100 entities per message
// and silently drops the rest; some are reserved for lines that are added when sending.
const maxEntities = 96

// maxEntityBytes bounds the size of the formatting of a part. Telegram refuses a message whose entities take
// more than about 9,500 bytes, the addresses of its links included (tdlib/telegram-bot-api#165); some are
// reserved for lines that are added when sending, and for names that Telegram itself makes entities of.
// spanOverhead is what an entity takes at most without its address.
const maxEntityBytes, spanOverhead = 8192, 24

// WithoutDeleted returns a text without the characters that Telegram deletes.
func WithoutDeleted(text string) string { return without(text, wording.DeletedByTelegram) }

// without returns s without the characters in deleted.
func without(s, deleted string) string {
	if !strings.ContainsAny(s, deleted) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(deleted, r) {
			return -1
		}
		return r
	}, s)
}

func (telegram) traits() traits {
	return traits{maxSpans: maxEntities, maxSpanBytes: maxEntityBytes, deleted: wording.DeletedByTelegram}
}

func (telegram) allowedParent(parent *span, s style) (*span, bool) {
	// Code and a link cannot cover the same text, and the link is more useful.
	return parent, s != styleCode || parent.enclosing(styleLink) == nil
}

// href accepts web addresses and Telegram's own. A mailto address would be read as a web address
// with a password, whereas a bare one becomes a link by itself. Telegram drops a link that it does not
// accept, and with it the address, without an error (TDLib, check_link_impl).
func (t telegram) href(url string) (string, bool) {
	switch {
	case isTelegramWebURL(url):
	case telegramURL.MatchString(url) && !mentionsUser(url) && !strings.Contains(url, "@"): // may be a name in plain text
	default:
		return "", false
	}
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(url)
	return escaped, UTF16Len(escaped) <= min(t.limit, maxTelegramHref)
}

var (
	// telegramURL matches Telegram's own addresses.
	telegramURL = regexp.MustCompile(`^(?i:tg):(?://)?[\w-]+(?:[/?#]|$)`)
	// webURL matches web addresses, with their host and port.
	webURL = regexp.MustCompile(`^(?i:https?)://(?:(?:[\w.!$,~*'():;&+=-]|%[0-9A-Fa-f]{2})*@)?` +
		`((?:[\w.!$,~*'();&+=-]|%[0-9A-Fa-f]{2})+)(?::0*([1-9][0-9]{0,4}))?(?:[/?#]|$)`)
)

// isTelegramWebURL reports whether Telegram accepts a web address: its host has a dot. IPv6 addresses do
// not occur, because the parser encodes their brackets.
func isTelegramWebURL(url string) bool {
	match := webURL.FindStringSubmatch(url)
	if match == nil || match[1] == "." || !strings.Contains(match[1], ".") {
		return false
	}
	port, _ := strconv.Atoi(match[2]) // there may be none
	return port <= 65535
}

// mentionsUser reports whether a tg address mentions a user.
func mentionsUser(url string) bool {
	_, rest, _ := strings.Cut(strings.ToLower(url), ":")
	return strings.HasPrefix(strings.TrimLeft(rest, "/"), "user")
}

// literalName matches packages such as @angular/cli, whose scope Telegram takes for a user, paths such as ./run,
// names of files whose endings are also those of hosts, of which Telegram makes links, and mailboxes such as
// ann.lee+news@example.org and o'neil@example.org, of which Telegram makes a link to what begins at the plus or behind
// the apostrophe.
var literalName = regexp.MustCompile(`^[("'\[]*(@[\w.-]+/[\w./-]*\w|\.{1,2}/[\w./-]*\w|[\w./-]*\w\.(?:md|py|sh|rs|pl|so|cc|ps|mk|ml|tf|zip|mov)|\w(?:[\w.+-]*\.[\w-]*\+|[\w.+-]*')[\w.+'-]*@[\w.-]*\w)[)"'\].,;:!?…]*$`)

func (telegram) literal(word string) (from, to int) {
	if m := literalName.FindStringSubmatchIndex(word); m != nil {
		return m[2], m[3]
	}
	return 0, 0
}

func (telegram) markup(s *span) (open, shut string) {
	switch s.style {
	case styleBold:
		return "<b>", "</b>"
	case styleItalic:
		return "<i>", "</i>"
	case styleStrike:
		return "<s>", "</s>"
	case styleCode:
		return "<code>", "</code>"
	case styleQuote:
		return "<blockquote>", "</blockquote>"
	case styleLink:
		return `<a href="` + s.href + `">`, "</a>"
	}
	if s.lang != "" {
		return `<pre><code class="language-` + s.lang + `">`, "</code></pre>"
	}
	return "<pre>", "</pre>"
}

// needsMentionGuard keeps names from being mentions. Code has no mentions, but plain text has no
// code.
func (telegram) needsMentionGuard(p position) bool {
	return p.last == '@' && !isWordRune(p.prev) && (p.inPlainText || !p.inCode) && isWordRune(p.next())
}

package markdown

import "strings"

// maxTelegramHref is the longest address that becomes a link for Telegram.
const maxTelegramHref = 2048

// TelegramHTML renders the document for Telegram's HTML parse mode, in parts of at most
// limit UTF-16 units as a reader sees them, and four times that with the markup. Nothing
// in it notifies a user. A document in which nothing can be seen has no parts.
func (d *Document) TelegramHTML(limit int) []Part {
	limit = max(limit, MinLimit)
	return split(d, telegram{limit: limit}, limit)
}

type telegram struct {
	limit int
}

// maxEntities is how much formatting a part may have. Telegram keeps 100 entities of a
// message and drops the rest without a word; some are left for lines that a send adds.
const maxEntities = 96

func (telegram) traits() traits { return traits{maxSpans: maxEntities} }

func (telegram) within(parent *span, s style) (*span, bool) {
	// Code and a link cannot be about the same text, and the link is worth more.
	return parent, s != styleCode || parent.find(styleLink) == nil
}

// href takes web addresses and Telegram's own. A mailto address would be read
// as a web address with a password, whereas a bare one becomes a link by itself.
func (t telegram) href(url string) (string, bool) {
	switch {
	case web(url):
	case scheme(url) == "tg" && !toUser(url) && !strings.Contains(url, "@"): // which may be a name in plain text
	default:
		return "", false
	}
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(url)
	return escaped, Units(escaped) <= min(t.limit, maxTelegramHref)
}

// toUser reports whether a tg address names a user, which mentions them.
func toUser(url string) bool {
	_, rest, _ := strings.Cut(strings.ToLower(url), ":")
	return strings.HasPrefix(strings.TrimLeft(rest, "/"), "user")
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

// guard keeps names from being mentions. There are none inside code, but plain
// text has no code.
func (telegram) guard(p place) bool {
	return p.last == '@' && !wordRune(p.prev) && (p.plain || !p.code) && wordRune(p.next())
}

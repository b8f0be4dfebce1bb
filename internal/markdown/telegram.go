package markdown

import "strings"

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

func (telegram) traits() traits { return traits{maxSpans: maxEntities} }

func (telegram) allowedParent(parent *span, s style) (*span, bool) {
	// Code and a link cannot cover the same text, and the link is more useful.
	return parent, s != styleCode || parent.enclosing(styleLink) == nil
}

// href accepts web addresses and Telegram's own. A mailto address would be read as a web address
// with a password, whereas a bare one becomes a link by itself.
func (t telegram) href(url string) (string, bool) {
	switch {
	case isWebURL(url):
	case urlScheme(url) == "tg" && !mentionsUser(url) && !strings.Contains(url, "@"): // may be a name in plain text
	default:
		return "", false
	}
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(url)
	return escaped, UTF16Len(escaped) <= min(t.limit, maxTelegramHref)
}

// mentionsUser reports whether a tg address mentions a user.
func mentionsUser(url string) bool {
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

// needsMentionGuard keeps names from being mentions. Code has no mentions, but plain text has no
// code.
func (telegram) needsMentionGuard(p position) bool {
	return p.last == '@' && !isWordRune(p.prev) && (p.inPlainText || !p.inCode) && isWordRune(p.next())
}

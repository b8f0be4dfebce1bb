package markdown

import (
	"slices"
	"strings"
	"unicode"
)

// SlackMrkdwn renders the document in Slack's mrkdwn, in parts of at most limit UTF-16 units,
// markup and escapes included. It mentions no user. A document without visible text has no
// parts.
func (d *Document) SlackMrkdwn(limit int) []Part {
	limit = max(limit, MinLimit)
	return split(d, slack{limit: limit}, limit)
}

type slack struct {
	limit int
}

func (slack) traits() traits {
	return traits{markupCounts: true, inlineEndsAtLine: true, wordMarks: true, quoteMark: '>', plainEscaped: true}
}

// allowedParent keeps markup out of link labels, and code
// blocks out of quotes, which do not support fences.
func (slack) allowedParent(parent *span, s style) (*span, bool) {
	if s == stylePre {
		return nil, true
	}
	return parent, parent.enclosing(styleLink) == nil
}

func (s slack) href(url string) (string, bool) {
	if !isWebURL(url) && urlScheme(url) != "mailto" {
		return "", false
	}
	escaped := strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C", "`", "%60", " ", "%20").Replace(url)
	return escaped, UTF16Len(escaped) <= s.limit/2
}

func (slack) literal(string) (from, to int) { return 0, 0 }

func (slack) markup(s *span) (open, shut string) {
	switch s.style {
	case styleBold:
		return "*", "*"
	case styleItalic:
		return "_", "_"
	case styleStrike:
		return "~", "~"
	case styleLink:
		return "<" + s.href + "|", ">"
	case styleQuote:
		return "> ", ""
	case stylePre:
		return "```\n", "\n```"
	}
	if s.hasBacktick { // only a fence may contain a backtick
		return "``` ", " ```"
	}
	return "`", "`"
}

// needsMentionGuard keeps text from being read as markup or as a broadcast mention.
func (slack) needsMentionGuard(p position) bool {
	next := p.next()
	switch {
	case p.inPlainText || !p.inCode && isBroadcast(p):
		return isBroadcast(p)
	case p.last == '`' && next == '`':
		return true // three would be a fence
	case p.inCode:
		return false
	case next == '>' && (p.last == 0 || p.last == '\n'):
		return true // an escaped one begins a quote too
	}
	return p.ambiguousMarks && isMark(p.last) && (isBorder(p.prev) || isMark(p.prev)) && !unicode.IsSpace(next)
}

// isBroadcast reports whether a broadcast mention follows an @, or may follow: an incomplete word
// at the end of the atom counts.
func isBroadcast(p position) bool {
	if p.last != '@' || isWordRune(p.prev) {
		return false
	}
	if p.atomStart {
		return isWordRune(p.next())
	}
	rest := strings.ToLower(p.rest[:min(len(p.rest), len("everyone"))])
	return slices.ContainsFunc([]string{"channel", "here", "everyone"}, func(word string) bool {
		return strings.HasPrefix(rest, word) || strings.HasPrefix(word, rest)
	})
}

// isMark reports whether Slack formats text between two of r.
func isMark(r rune) bool {
	return r == '*' || r == '_' || r == '~' || r == '`'
}

// isBorder reports whether Slack may recognise a formatting mark next to r.
func isBorder(r rune) bool { return isSpaceOr(r, `.,;:!?()[]{}"'-/`) }

// opensBehind and closesBefore report whether Slack surely recognises the first and the second mark of two there. It
// documents no rule: these are what readers of mrkdwn agree on that others wrote (slack-message-parser, slack-to-html
// of ClearFeed and emacs-slack).
func opensBehind(r rune) bool  { return isSpaceOr(r, `.,!?([{"'-`) }
func closesBefore(r rune) bool { return isSpaceOr(r, `.,:!?)]}"'-`) }

func isSpaceOr(r rune, others string) bool {
	return r == 0 || r == zeroWidthSpace || unicode.IsSpace(r) || strings.ContainsRune(others, r)
}

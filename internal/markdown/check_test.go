package markdown_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

var (
	anchor   = regexp.MustCompile(`^a href="(?i:https?://|tg:)(?:[^"<>&\x00-\x20]|&(?:amp|lt|gt|quot);)*"$`)
	langCode = regexp.MustCompile(`^code class="language-[A-Za-z0-9+#._-]+"$`)
)

// telegramChecker reads Telegram's HTML as strictly as its documentation
// allows: known tags, properly nested, never empty, four entities.
type telegramChecker struct {
	rest    string
	open    []string
	tags    []string // open ones with what they say
	lengths []int    // visible text when each open tag began
	visible strings.Builder
	closed  []tagged
}

// tagged is a part of the visible text, in bytes, with the start tag that it has.
type tagged struct {
	tag      string
	from, to int
}

// checkTelegram returns the text that html shows.
func checkTelegram(html string) (string, error) {
	text, _, err := readTelegram(html)
	return text, err
}

// readTelegram returns the text that html shows, and its tags.
func readTelegram(html string) (string, []tagged, error) {
	if !utf8.ValidString(html) {
		return "", nil, fmt.Errorf("invalid UTF-8")
	}
	c := &telegramChecker{rest: html}
	for c.rest != "" {
		if err := c.step(); err != nil {
			return "", nil, fmt.Errorf("%w at %.60q", err, c.rest)
		}
	}
	if len(c.open) > 0 {
		return "", nil, fmt.Errorf("left open: %v", c.open)
	}
	return c.visible.String(), c.closed, nil
}

func (c *telegramChecker) step() error {
	switch c.rest[0] {
	case '<':
		tag, rest, ok := strings.Cut(c.rest[1:], ">")
		if !ok {
			return fmt.Errorf("unfinished tag")
		}
		if err := c.tag(tag); err != nil {
			return err
		}
		c.rest = rest
	case '&':
		for entity, char := range map[string]string{"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": `"`} {
			if strings.HasPrefix(c.rest, entity) {
				c.visible.WriteString(char)
				c.rest = c.rest[len(entity):]
				return nil
			}
		}
		return fmt.Errorf("bare ampersand")
	case '>':
		return fmt.Errorf("bare >")
	default:
		n := strings.IndexAny(c.rest, "<>&")
		if n < 0 {
			n = len(c.rest)
		}
		c.visible.WriteString(c.rest[:n])
		c.rest = c.rest[n:]
	}
	return nil
}

func (c *telegramChecker) tag(tag string) error {
	if name, closing := strings.CutPrefix(tag, "/"); closing {
		last := len(c.open) - 1
		if last < 0 || c.open[last] != name {
			return fmt.Errorf("</%s> closes %v", name, c.open)
		}
		if c.visible.Len() == c.lengths[last] {
			return fmt.Errorf("empty <%s>", name)
		}
		c.closed = append(c.closed, tagged{c.tags[last], c.lengths[last], c.visible.Len()})
		c.open, c.tags, c.lengths = c.open[:last], c.tags[:last], c.lengths[:last]
		return nil
	}
	name, _, _ := strings.Cut(tag, " ")
	if err := c.allowed(name, tag); err != nil {
		return err
	}
	c.open, c.tags, c.lengths = append(c.open, name), append(c.tags, tag), append(c.lengths, c.visible.Len())
	return nil
}

func (c *telegramChecker) allowed(name, tag string) error {
	parent := ""
	if len(c.open) > 0 {
		parent = c.open[len(c.open)-1]
	}
	inCode := slices.Contains(c.open, "code") || slices.Contains(c.open, "pre")
	switch {
	case langCode.MatchString(tag):
		if parent == "pre" {
			return nil
		}
	case inCode:
	case slices.Contains(c.open, name):
	case name == "a":
		if anchor.MatchString(tag) {
			return nil
		}
	case tag == "code":
		if !slices.Contains(c.open, "a") {
			return nil
		}
	case slices.Contains([]string{"b", "i", "s", "u", "pre", "blockquote"}, tag):
		return nil
	}
	return fmt.Errorf("<%s> not allowed in %v", tag, c.open)
}

var (
	slackLink  = regexp.MustCompile(`<((?i:https?://|mailto:)[^<>| \n]*)\|([^<>\n]+)>`)
	slackQuote = regexp.MustCompile(`(?m)^>( |$)`)
	slackCode  = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	broadcasts = regexp.MustCompile(`(?i)(^|[^\pL\pN_])@(channel|here|everyone)`)
	entity     = regexp.MustCompile(`&(amp|lt|gt);`)
)

// checkSlack returns the text that mrkdwn shows, its marks included.
func checkSlack(mrkdwn string) (string, error) {
	if !utf8.ValidString(mrkdwn) {
		return "", fmt.Errorf("invalid UTF-8")
	}
	text := slackLink.ReplaceAllString(mrkdwn, "$2")
	text = slackQuote.ReplaceAllString(text, "")
	if i := strings.IndexAny(text, "<>"); i >= 0 {
		return "", fmt.Errorf("bare %q at %.60q", text[i], text[i:])
	}
	if rest := entity.ReplaceAllString(text, ""); strings.Contains(rest, "&") {
		return "", fmt.Errorf("bare & in %.60q", rest)
	}
	if strings.Count(mrkdwn, "```")%2 != 0 {
		return "", fmt.Errorf("unbalanced fence")
	}
	if live := broadcasts.FindString(slackCode.ReplaceAllString(text, "")); live != "" {
		return "", fmt.Errorf("live mention %q", live)
	}
	return unescape(text), nil
}

func unescape(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(s)
}

func utf16Len(s string) int {
	return len(utf16.Encode([]rune(s)))
}

// solid removes what a split may change: white space and what is invisible.
func solid(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, s)
}

// whole reports whether the parts have the text of want between them, each
// once and in order, but for repeated headers.
func whole(want string, heads, parts []string) error {
	rest := solid(want)
	for i, part := range parts {
		part = solid(part)
		found := strings.HasPrefix(rest, part)
		for _, head := range heads {
			if tail, headed := strings.CutPrefix(part, solid(head)); !found && headed && strings.HasPrefix(rest, tail) {
				part, found = tail, true
			}
		}
		if !found {
			return fmt.Errorf("part %d is %.80q, want %.80q", i, part, rest)
		}
		rest = rest[len(part):]
	}
	if rest != "" {
		return fmt.Errorf("lost %.80q", rest)
	}
	return nil
}

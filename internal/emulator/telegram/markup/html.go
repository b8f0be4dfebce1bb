package markup

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"oneclaw/internal/emulator/telegram/botapi"
)

// htmlParser parses the HTML dialect of the Bot API (tdlib/td, MessageEntity.cpp, parse_html;
// core.telegram.org/bots/api#html-style): a fixed set of strictly nested tags, and four named
// character references. Its errors name byte offsets, as those of the service do.
type htmlParser struct {
	src      string
	pos      int
	out      strings.Builder
	units    int // UTF-16 code units of out
	open     []openTag
	entities []botapi.Entity
}

// openTag is a start tag whose end tag has not been parsed yet.
type openTag struct {
	name       string
	arg        string // href, language, emoji id, format of a date, or "1" for an expandable quote
	date       int64
	unitOffset int
	byteOffset int // byte offset in out
}

// syntaxError returns an error with the service's wording, including the capital letter.
func syntaxError(format string, args ...any) error {
	return fmt.Errorf(format, args...)
}

// ParseHTML parses a text as sendMessage with parse_mode HTML does. It returns the visible text, and the
// entities that the text asks for. The error is the service's.
func ParseHTML(src string) (string, []botapi.Entity, error) {
	p := &htmlParser{src: src}
	for p.pos < len(src) {
		if err := p.parseNext(); err != nil {
			return "", nil, err
		}
	}
	if n := len(p.open); n > 0 {
		return "", nil, syntaxError("Can't find end tag corresponding to start tag %q", p.open[n-1].name)
	}
	keepLanguages(p.entities)
	sortEntities(p.entities)
	text := p.out.String()
	if !utf8.ValidString(text) {
		return "", nil, syntaxError("Text contains invalid Unicode characters after decoding HTML entities, check for unmatched surrogate code units")
	}
	return text, p.entities, nil
}

// parseNext parses one tag, character reference or character.
func (p *htmlParser) parseNext() error {
	switch p.src[p.pos] {
	case '<':
		if strings.HasPrefix(p.src[p.pos:], "</") {
			return p.parseEndTag()
		}
		return p.parseStartTag()
	case '&':
		if r, n := decodeReference(p.src[p.pos:]); n > 0 {
			p.pos += n
			if r >= 0xd800 && r <= 0xdfff {
				p.out.WriteByte(0xff) // half a surrogate pair is refused at the end
				p.units++
				return nil
			}
			p.write(r)
			return nil
		}
	}
	r, n := utf8.DecodeRuneInString(p.src[p.pos:])
	p.pos += n
	p.write(r)
	return nil
}

func (p *htmlParser) write(r rune) {
	p.out.WriteRune(r)
	p.units += runeUnits(r)
}

// decodeReference decodes the character reference at the start of s and returns its length, or 0 if
// the reference is unknown. The semicolon may be missing.
func decodeReference(s string) (rune, int) {
	var r rune
	end := 1
	if strings.HasPrefix(s, "&#") {
		base, digits := 10, "0123456789"
		end = 2
		if strings.HasPrefix(s, "&#x") {
			base, digits, end = 16, "0123456789abcdefABCDEF", 3
		}
		start := end
		for end < len(s) && strings.IndexByte(digits, s[end]) >= 0 {
			end++
		}
		n, err := strconv.ParseInt(s[start:end], base, 32)
		if err != nil || n == 0 || n >= 0x10ffff || end >= 10 {
			return 0, 0
		}
		r = rune(n)
	} else {
		for end < len(s) && isAlpha(s[end]) {
			end++
		}
		r = map[string]rune{"lt": '<', "gt": '>', "amp": '&', "quot": '"'}[s[1:end]]
		if r == 0 {
			return 0, 0
		}
	}
	if end < len(s) && s[end] == ';' {
		end++
	}
	return r, end
}

func isKnownTag(name string) bool {
	switch name {
	case "a", "b", "strong", "i", "em", "s", "strike", "del", "u", "ins", "tg-spoiler", "tg-emoji",
		"tg-time", "span", "pre", "code", "blockquote":
		return true
	}
	return false
}

func (p *htmlParser) parseStartTag() error {
	begin := p.pos
	i := begin + 1
	for i < len(p.src) && !isSpace(p.src[i]) && p.src[i] != '>' {
		i++
	}
	if i == len(p.src) {
		return syntaxError("Unclosed start tag at byte offset %d", begin)
	}
	tag := openTag{name: strings.ToLower(p.src[begin+1 : i]), unitOffset: p.units, byteOffset: p.out.Len()}
	if !isKnownTag(tag.name) {
		return syntaxError("Unsupported start tag %q at byte offset %d", tag.name, begin)
	}
	p.pos = i
	for {
		p.skipSpace()
		if p.pos < len(p.src) && p.src[p.pos] == '>' {
			break
		}
		if err := p.parseAttribute(&tag, begin); err != nil {
			return err
		}
	}
	p.pos++
	if tag.name == "span" && tag.arg != "spoiler" {
		return syntaxError(`Tag "span" must have class "tg-spoiler" at byte offset %d`, begin)
	}
	p.open = append(p.open, tag)
	return nil
}

// parseAttribute parses one attribute into the tag.
func (p *htmlParser) parseAttribute(tag *openTag, begin int) error {
	start := p.pos
	for p.pos < len(p.src) && !isSpace(p.src[p.pos]) && strings.IndexByte(`=>/"'`, p.src[p.pos]) < 0 {
		p.pos++
	}
	name := p.src[start:p.pos]
	if name == "" {
		return syntaxError("Empty attribute name in the tag %q at byte offset %d", tag.name, begin)
	}
	p.skipSpace()
	if p.pos < len(p.src) && p.src[p.pos] != '=' {
		if tag.name == "blockquote" && name == "expandable" {
			tag.arg = "1"
		}
		return nil
	}
	p.pos++
	p.skipSpace()
	if p.pos >= len(p.src) {
		return syntaxError("Unclosed start tag %q at byte offset %d", tag.name, begin)
	}
	value, err := p.parseAttributeValue()
	if err != nil {
		return err
	}
	if p.pos >= len(p.src) {
		return syntaxError("Unclosed start tag at byte offset %d", begin)
	}
	tag.setAttribute(name, value)
	return nil
}

func (p *htmlParser) parseAttributeValue() (string, error) {
	quote := p.src[p.pos]
	if quote != '"' && quote != '\'' {
		start := p.pos
		for p.pos < len(p.src) && isNameToken(p.src[p.pos]) {
			p.pos++
		}
		if p.pos < len(p.src) && !isSpace(p.src[p.pos]) && p.src[p.pos] != '>' {
			return "", syntaxError("Unexpected end of name token at byte offset %d", start)
		}
		return strings.ToLower(p.src[start:p.pos]), nil
	}
	p.pos++
	var value strings.Builder
	for p.pos < len(p.src) && p.src[p.pos] != quote {
		if r, n := decodeReference(p.src[p.pos:]); p.src[p.pos] == '&' && n > 0 {
			value.WriteRune(r)
			p.pos += n
			continue
		}
		value.WriteByte(p.src[p.pos])
		p.pos++
	}
	p.pos++
	return value.String(), nil
}

// setAttribute stores an attribute if it has a meaning.
func (t *openTag) setAttribute(name, value string) {
	switch {
	case t.name == "a" && name == "href", t.name == "tg-emoji" && name == "emoji-id", t.name == "tg-time" && name == "format":
		t.arg = value
	case t.name == "tg-time" && name == "unix":
		t.date, _ = strconv.ParseInt(value, 10, 32) // no date otherwise
	case t.name == "code" && name == "class" && strings.HasPrefix(value, "language-"):
		t.arg = value[len("language-"):]
	case t.name == "span" && name == "class" && strings.HasPrefix(value, "tg-"):
		t.arg = value[len("tg-"):]
	case t.name == "blockquote" && name == "expandable":
		t.arg = "1"
	}
}

func (p *htmlParser) parseEndTag() error {
	begin := p.pos
	if len(p.open) == 0 {
		return syntaxError("Unexpected end tag at byte offset %d", begin)
	}
	i := begin + 2
	for i < len(p.src) && !isSpace(p.src[i]) && p.src[i] != '>' {
		i++
	}
	name := strings.ToLower(p.src[begin+2 : i])
	p.pos = i
	p.skipSpace()
	if p.pos >= len(p.src) || p.src[p.pos] != '>' {
		return syntaxError("Unclosed end tag at byte offset %d", begin)
	}
	p.pos++
	tag := p.open[len(p.open)-1]
	if name != "" && name != tag.name {
		return syntaxError(`Unmatched end tag at byte offset %d, expected "</%s>", found "</%s>"`, begin, tag.name, name)
	}
	p.open = p.open[:len(p.open)-1]
	if p.units == tag.unitOffset {
		return nil
	}
	return p.closeTag(tag)
}

// closeTag adds the entity of a closed tag.
func (p *htmlParser) closeTag(tag openTag) error {
	e := botapi.Entity{Offset: tag.unitOffset, Length: p.units - tag.unitOffset, Type: entityType(tag)}
	switch tag.name {
	case "tg-emoji":
		if id, err := strconv.ParseInt(tag.arg, 10, 64); err != nil || id == 0 {
			return syntaxError("Invalid custom emoji identifier specified")
		}
		e.CustomEmojiID = tag.arg
	case "a":
		link := cmp.Or(tag.arg, p.out.String()[tag.byteOffset:])
		if id := userOfLink(link); id != 0 {
			e.Type, e.User = "text_mention", &botapi.User{ID: id}
		} else if e.URL = NormalizeLink(link); e.URL == "" {
			return nil // the service drops an unusable link and keeps the text
		}
	case "tg-time":
		if tag.arg != "r" && tag.arg != "R" && strings.Trim(tag.arg, "tTdDwW") != "" {
			return syntaxError("Invalid date format used")
		}
		if e.UnixTime, e.DateFormat = tag.date, tag.arg; tag.date <= 0 {
			return nil
		}
	case "code":
		e.Language = tag.arg // only meaningful inside pre
	}
	if p.mergeCode(tag, e) {
		return nil
	}
	p.entities = append(p.entities, e)
	return nil
}

// mergeCode merges nested pre and code into one entity with a language.
func (p *htmlParser) mergeCode(tag openTag, e botapi.Entity) bool {
	if len(p.entities) == 0 {
		return false
	}
	last := &p.entities[len(p.entities)-1]
	if last.Offset != e.Offset || last.Length != e.Length {
		return false
	}
	switch {
	case tag.name == "pre" && last.Type == "code" && last.Language != "":
		last.Type = "pre"
		return true
	case tag.name == "code" && last.Type == "pre" && tag.arg != "":
		last.Language = tag.arg
		return true
	}
	return false
}

func entityType(tag openTag) string {
	switch tag.name {
	case "b", "strong":
		return "bold"
	case "i", "em":
		return "italic"
	case "s", "strike", "del":
		return "strikethrough"
	case "u", "ins":
		return "underline"
	case "tg-spoiler", "span":
		return "spoiler"
	case "tg-emoji":
		return "custom_emoji"
	case "tg-time":
		return "date_time"
	case "a":
		return "text_link"
	case "blockquote":
		if tag.arg != "" {
			return "expandable_blockquote"
		}
	}
	return tag.name
}

// keepLanguages removes languages where apps do not show them: outside of pre.
func keepLanguages(entities []botapi.Entity) {
	for i := range entities {
		if entities[i].Type != "pre" {
			entities[i].Language = ""
		}
	}
}

func (p *htmlParser) skipSpace() {
	for p.pos < len(p.src) && isSpace(p.src[p.pos]) {
		p.pos++
	}
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'
}

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isNameToken(c byte) bool { return isAlpha(c) || c >= '0' && c <= '9' || c == '.' || c == '-' }

func runeUnits(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}

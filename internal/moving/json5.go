package moving

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// toJSON rewrites JSON5, in which people write openclaw.json, as JSON: without comments and trailing
// commas, with quoted names and strings in double quotes. It checks the tokens, and that commas stand
// between values; the JSON decoder checks the rest.
func toJSON(data []byte) ([]byte, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8 text")
	}
	c := json5{rest: strings.TrimPrefix(string(data), "\uFEFF")}
	for c.rest != "" {
		if err := c.token(); err != nil {
			line := 1 + strings.Count(string(data[:len(data)-len(c.rest)]), "\n")
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
	if c.comma {
		return nil, errors.New("a comma stands at the end")
	}
	return []byte(c.out.String()), nil
}

// json5 is the state of toJSON.
type json5 struct {
	rest  string
	out   strings.Builder
	value bool // the last token ends a value or a name
	comma bool // a comma was read and is written before the next value
}

// write writes a token, after a comma if one was read. It returns an error if the token begins a value
// directly after another one.
func (c *json5) write(token string) error {
	closes := token == "}" || token == "]"
	if c.value && !closes && token != ":" {
		return errors.New("a comma is missing")
	}
	if c.comma && !closes {
		c.out.WriteByte(',')
	}
	c.comma, c.value = false, token != "{" && token != "[" && token != ":"
	c.out.WriteString(token)
	return nil
}

// token reads one token.
func (c *json5) token() error {
	first, size := utf8.DecodeRuneInString(c.rest)
	switch {
	case unicode.IsSpace(first) || first == '\uFEFF':
		c.rest = c.rest[size:]
	case strings.HasPrefix(c.rest, "//"):
		_, c.rest, _ = strings.Cut(c.rest, "\n")
	case strings.HasPrefix(c.rest, "/*"):
		_, after, ok := strings.Cut(c.rest[2:], "*/")
		if !ok {
			return errors.New("a comment has no end")
		}
		c.rest = after
	case first == '"' || first == '\'':
		return c.quoted(byte(first))
	case first == ',':
		if !c.value {
			return errors.New("a comma follows no value")
		}
		c.comma, c.value, c.rest = true, false, c.rest[1:]
	case strings.ContainsRune("{}[]:", first):
		if err := c.write(string(first)); err != nil {
			return err
		}
		c.rest = c.rest[1:]
	default:
		return c.bare()
	}
	return nil
}

// bare reads a number, a keyword or a name without quotes.
func (c *json5) bare() error {
	end := strings.IndexFunc(c.rest, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_$+-.", r)
	})
	if end < 0 {
		end = len(c.rest)
	}
	if end == 0 {
		return errors.New("an unexpected character")
	}
	word := c.rest[:end]
	c.rest = c.rest[end:]
	number := strings.TrimPrefix(word, "+")
	if n, err := strconv.ParseInt(number, 0, 64); err == nil {
		return c.write(strconv.FormatInt(n, 10))
	} else if f, err := strconv.ParseFloat(number, 64); err == nil && f-f == 0 {
		return c.write(strconv.FormatFloat(f, 'g', -1, 64))
	} else if word == "true" || word == "false" || word == "null" {
		return c.write(word)
	}
	return c.write(quoteJSON(word))
}

// escapes are the escapes of one character.
var escapes = map[byte]string{'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '0': "\x00", '\n': ""}

// quoted reads a string in quotes.
func (c *json5) quoted(quote byte) error {
	var text []rune
	for i := 1; i < len(c.rest); {
		switch c.rest[i] {
		case quote:
			c.rest = c.rest[i+1:]
			return c.write(quoteJSON(string(text)))
		case '\n':
			return errors.New("a string has no end on its line")
		case '\\':
			r, size, err := escape(c.rest[i+1:])
			if err != nil {
				return err
			}
			text = append(text, r...)
			i += 1 + size
		default:
			r, size := utf8.DecodeRuneInString(c.rest[i:])
			text = append(text, r)
			i += size
		}
	}
	return errors.New("a string has no end")
}

// escape returns what stands for the escape that a text begins with, and its length.
func escape(rest string) (text []rune, size int, err error) {
	if rest == "" {
		return nil, 0, errors.New("a string has no end")
	}
	digits := map[byte]int{'u': 4, 'x': 2}[rest[0]]
	if digits > 0 && len(rest) > digits {
		code, err := strconv.ParseUint(rest[1:1+digits], 16, 32)
		if err != nil {
			return nil, 0, errors.New("an escape has no hexadecimal digits")
		}
		r := rune(code)
		const low = 6 // of a second \uXXXX
		if after := rest[1+digits:]; digits == 4 && r >= 0xD800 && r < 0xDC00 && len(after) >= low && strings.HasPrefix(after, `\u`) {
			if second, err := strconv.ParseUint(after[2:low], 16, 32); err == nil && second >= 0xDC00 && second < 0xE000 {
				return []rune{0x10000 + (r-0xD800)<<10 + rune(second) - 0xDC00}, 1 + digits + low, nil
			}
		}
		return []rune{r}, 1 + digits, nil
	}
	if strings.HasPrefix(rest, "\r\n") {
		return nil, 2, nil
	}
	if known, ok := escapes[rest[0]]; ok {
		return []rune(known), 1, nil
	}
	r, size := utf8.DecodeRuneInString(rest)
	return []rune{r}, size, nil
}

package learning

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"html"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// minPart is the length from which a part of a name is searched alone, in letters.
const minPart = 3

// common reports whether a word is part of many names.
func common(word string) bool {
	return slices.Contains([]string{"the", "and", "von", "van", "der", "den", "del", "bot"}, word)
}

// pseudonyms makes pseudonyms for users, chats and cases. They are deterministic, and cannot be
// reversed without the key.
type pseudonyms struct{ key []byte }

func (p pseudonyms) of(kind, what string) string {
	hash := hmac.New(sha256.New, p.key)
	_, _ = hash.Write([]byte(kind + "\x00" + what)) // never fails
	return kind + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(hash.Sum(nil)[:5]))
}

func (p pseudonyms) person(id string) string { return p.of("Person", id) }
func (p pseudonyms) chat(id string) string   { return p.of("Chat", id) }

// names maps names of users and chats in texts to pseudonyms.
type names struct {
	// wider, if not nil, has more of them.
	wider *names
	// byFirst has names that match whole words, by their first word; the longest first.
	byFirst map[string][]name
	// anywhere has names that also match within words.
	anywhere map[string]string
	replacer *strings.Replacer
	// whole are the pseudonyms of whole names.
	whole map[string]string
}

type name struct {
	words []string
	stand string
}

func newNames(wider *names) *names {
	return &names{wider: wider, byFirst: map[string][]name{}, anywhere: map[string]string{}, whole: map[string]string{}}
}

// add adds a name: as a whole, and with parts also each word of it that is long enough.
func (n *names) add(text, stand string, parts bool) {
	text = normal(text)
	words := wordsOf(text)
	if len(words) == 0 {
		return
	}
	if n.whole[text] == "" {
		n.whole[text] = stand
	}
	if utf8.RuneCountInString(text) > 1 {
		n.put(name{words, stand})
		n.encoded(text, stand, parts)
	}
	if !parts {
		return
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !inWord(r) }) {
		if lower := strings.ToLower(word); utf8.RuneCountInString(word) >= minPart && !common(lower) {
			n.put(name{[]string{lower}, stand})
			n.encoded(word, stand, true)
		}
	}
}

// normal normalizes a name for searching.
func normal(text string) string { return norm.NFC.String(strings.TrimSpace(text)) }

func (n *names) put(one name) {
	known := n.byFirst[one.words[0]]
	if slices.ContainsFunc(known, func(k name) bool { return slices.Equal(k.words, one.words) }) {
		return
	}
	known = append(slices.Clone(known), one)
	slices.SortStableFunc(known, func(a, b name) int { return cmp.Compare(len(b.words), len(a.words)) })
	n.byFirst[one.words[0]] = known
}

// encoded adds the encodings of a name, and a name written without spaces.
func (n *names) encoded(text, stand string, near bool) {
	if strings.ContainsFunc(text, unspaced) {
		n.anywhere[text] = stand
	}
	if !near {
		return
	}
	ascii := strconv.QuoteToASCII(text)
	for _, form := range []string{url.QueryEscape(text), url.PathEscape(text), html.EscapeString(text), ascii[1 : len(ascii)-1]} {
		if form != text {
			n.anywhere[form] = stand
		}
	}
	n.replacer = nil
}

// unspaced reports whether a letter belongs to a script without spaces.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !inWord(r) })
}

// escaped matches a letter as JSON may escape it.
var escaped = regexp.MustCompile(`\\u[0-9a-fA-F]{4}`)

// unescape decodes letters that JSON has escaped, so that names are found.
func unescape(text string) string {
	if !strings.Contains(text, `\u`) {
		return text
	}
	return escaped.ReplaceAllStringFunc(text, func(code string) string {
		var letter string
		if json.Unmarshal([]byte(`"`+code+`"`), &letter) != nil {
			return code
		}
		if r, _ := utf8.DecodeRuneInString(letter); r < utf8.RuneSelf || !inWord(r) {
			return code
		}
		return letter
	})
}

// text returns a text, with escaped letters decoded and names replaced.
func (n *names) text(text string) string {
	if text == "" {
		return text
	}
	text = norm.NFC.String(text)
	for all := n; all != nil; all = all.wider {
		text = all.replaceAnywhere(text)
	}
	var out strings.Builder
	done := 0
	for at := 0; at < len(text); {
		end := wordEnd(text, at)
		if end == at {
			_, size := utf8.DecodeRuneInString(text[at:])
			at += size
			continue
		}
		to, stand := n.at(text, at, end)
		if behind := wordBegin(text, at); to < 0 && behind > at && behind < end {
			at = behind
			to, stand = n.at(text, at, end)
		}
		if to > at {
			out.WriteString(text[done:at])
			out.WriteString(stand)
			done, end = to, to
		}
		at = end
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}

func (n *names) replaceAnywhere(text string) string {
	if n.replacer == nil {
		var pairs []string
		for _, form := range slices.SortedFunc(maps.Keys(n.anywhere), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }) {
			pairs = append(pairs, form, n.anywhere[form])
		}
		n.replacer = strings.NewReplacer(pairs...)
	}
	return n.replacer.Replace(text)
}

func wordEnd(text string, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !inWord(r) {
			break
		}
		at += size
	}
	return at
}

// code matches a code that may precede a word and look like its beginning: the rest of a JSON or
// URL escape.
var code = regexp.MustCompile(`^(?:%[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[nrtbf])`)

// wordBegin returns where a word begins after such a code.
func wordBegin(text string, at int) int {
	if at == 0 || text[at-1] != '%' && text[at-1] != '\\' {
		return at
	}
	return at - 1 + max(1, len(code.FindString(text[at-1:])))
}

// maxBetween bounds the bytes between the words of a name.
const maxBetween = 3

// at returns the end of the longest name that begins with a word, and its pseudonym; -1 if there
// is none.
func (n *names) at(text string, from, end int) (longest int, stand string) {
	first := strings.ToLower(text[from:end])
	longest = -1
	for all := n; all != nil; all = all.wider {
		for _, one := range all.byFirst[first] {
			if to := endOfWords(text, end, one.words[1:]); to > longest {
				longest, stand = to, one.stand
			}
		}
	}
	return longest, stand
}

// endOfWords returns the end of consecutive words from a position; -1 if they do not follow.
func endOfWords(text string, at int, words []string) int {
	for _, word := range words {
		next := at
		for next < len(text) && next-at < maxBetween && wordEnd(text, next) == next {
			_, size := utf8.DecodeRuneInString(text[next:])
			next += size
		}
		next = wordBegin(text, next)
		if at = wordEnd(text, next); at == next || strings.ToLower(text[next:at]) != word {
			return -1
		}
	}
	return at
}

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
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"oneclaw/internal/lazyregexp"
)

// minPart is the length in letters from which a part of a name is searched on its own.
const minPart = 3

// isCommonWord reports whether a word is part of many names.
func isCommonWord(word string) bool {
	return slices.Contains([]string{"the", "and", "von", "van", "der", "den", "del", "bot"}, word)
}

// pseudonyms makes pseudonyms for users, chats and cases. They are deterministic, and cannot be
// reversed without the key.
type pseudonyms struct{ key []byte }

func (p pseudonyms) derive(kind, what string) string {
	hash := hmac.New(sha256.New, p.key)
	_, _ = hash.Write([]byte(kind + "\x00" + what)) // never fails
	return kind + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(hash.Sum(nil)[:5]))
}

func (p pseudonyms) person(id string) string { return p.derive("Person", id) }
func (p pseudonyms) chat(id string) string   { return p.derive("Chat", id) }

// nameIndex maps names of users and chats in texts to pseudonyms.
type nameIndex struct {
	// parent, if not nil, has further names.
	parent *nameIndex
	// byFirstWord has names that match whole words, by their first word; the longest first.
	byFirstWord map[string][]name
	// substrings has names that also match within words.
	substrings map[string]string
	replacer   *strings.Replacer
	// fullNames are the pseudonyms of whole names.
	fullNames map[string]string
}

type name struct {
	words     []string
	pseudonym string
}

func newNameIndex(wider *nameIndex) *nameIndex {
	return &nameIndex{parent: wider, byFirstWord: map[string][]name{}, substrings: map[string]string{}, fullNames: map[string]string{}}
}

// add adds a name: as a whole and, with parts, also each of its words that is long enough.
func (n *nameIndex) add(text, stand string, parts bool) {
	text = normalizeName(text)
	words := splitWords(text)
	if len(words) == 0 {
		return
	}
	if n.fullNames[text] == "" {
		n.fullNames[text] = stand
	}
	if utf8.RuneCountInString(text) > 1 {
		n.insert(name{words, stand})
		n.addEncodings(text, stand, parts)
	}
	if !parts {
		return
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !isWordRune(r) }) {
		if lower := strings.ToLower(word); utf8.RuneCountInString(word) >= minPart && !isCommonWord(lower) {
			n.insert(name{[]string{lower}, stand})
			n.addEncodings(word, stand, true)
		}
	}
}

// normalizeName normalizes a name for searching.
func normalizeName(text string) string { return norm.NFC.String(strings.TrimSpace(text)) }

func (n *nameIndex) insert(one name) {
	known := n.byFirstWord[one.words[0]]
	if slices.ContainsFunc(known, func(k name) bool { return slices.Equal(k.words, one.words) }) {
		return
	}
	known = append(slices.Clone(known), one)
	slices.SortStableFunc(known, func(a, b name) int { return cmp.Compare(len(b.words), len(a.words)) })
	n.byFirstWord[one.words[0]] = known
}

// addEncodings adds encodings of a name, and a name that is written without spaces.
func (n *nameIndex) addEncodings(text, stand string, near bool) {
	if strings.ContainsFunc(text, isUnspaced) {
		n.substrings[text] = stand
	}
	if !near {
		return
	}
	ascii := strconv.QuoteToASCII(text)
	for _, form := range []string{url.QueryEscape(text), url.PathEscape(text), html.EscapeString(text), ascii[1 : len(ascii)-1]} {
		if form != text {
			n.substrings[form] = stand
		}
	}
	n.replacer = nil
}

// isUnspaced reports whether a letter belongs to a script without spaces.
func isUnspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

func splitWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !isWordRune(r) })
}

// escapedLetter matches a letter as JSON may escape it.
var escapedLetter = lazyregexp.MustCompile(`\\u[0-9a-fA-F]{4}`)

// unescape decodes letters that JSON has escaped, so that names are found.
func unescape(text string) string {
	if !strings.Contains(text, `\u`) {
		return text
	}
	return escapedLetter.ReplaceAllStringFunc(text, func(code string) string {
		var letter string
		if json.Unmarshal([]byte(`"`+code+`"`), &letter) != nil {
			return code
		}
		if r, _ := utf8.DecodeRuneInString(letter); r < utf8.RuneSelf || !isWordRune(r) {
			return code
		}
		return letter
	})
}

// text returns a text, with escaped letters decoded and names replaced.
func (n *nameIndex) text(replace string) string {
	if replace == "" {
		return replace
	}
	replace = norm.NFC.String(replace)
	for all := n; all != nil; all = all.parent {
		replace = all.replaceSubstrings(replace)
	}
	var out strings.Builder
	done := 0
	for at := 0; at < len(replace); {
		end := wordEnd(replace, at)
		if end == at {
			_, size := utf8.DecodeRuneInString(replace[at:])
			at += size
			continue
		}
		to, stand := n.longestMatch(replace, at, end)
		if behind := wordBegin(replace, at); to < 0 && behind > at && behind < end {
			at = behind
			to, stand = n.longestMatch(replace, at, end)
		}
		if to > at {
			out.WriteString(replace[done:at])
			out.WriteString(stand)
			done, end = to, to
		}
		at = end
	}
	if done == 0 {
		return replace
	}
	out.WriteString(replace[done:])
	return out.String()
}

func (n *nameIndex) replaceSubstrings(text string) string {
	if n.replacer == nil {
		var pairs []string
		for _, form := range slices.SortedFunc(maps.Keys(n.substrings), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }) {
			pairs = append(pairs, form, n.substrings[form])
		}
		n.replacer = strings.NewReplacer(pairs...)
	}
	return n.replacer.Replace(text)
}

func wordEnd(text string, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !isWordRune(r) {
			break
		}
		at += size
	}
	return at
}

// escapeCode matches an escape that may precede a word and
// look like its beginning: the rest of a JSON or URL escape.
var escapeCode = lazyregexp.MustCompile(`^(?:%[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[nrtbf])`)

// wordBegin returns where a word begins after such an escape.
func wordBegin(text string, at int) int {
	if at == 0 || text[at-1] != '%' && text[at-1] != '\\' {
		return at
	}
	return at - 1 + max(1, len(escapeCode.FindString(text[at-1:])))
}

// maxBetween bounds the bytes between the words of a name.
const maxBetween = 3

// longestMatch returns the end of the longest name that begins with a word, and its pseudonym; -1 if there
// is none.
func (n *nameIndex) longestMatch(text string, from, end int) (longest int, stand string) {
	first := strings.ToLower(text[from:end])
	longest = -1
	for all := n; all != nil; all = all.parent {
		for _, one := range all.byFirstWord[first] {
			if to := endOfWords(text, end, one.words[1:]); to > longest {
				longest, stand = to, one.pseudonym
			}
		}
	}
	return longest, stand
}

// endOfWords returns the end of consecutive words from an offset on; -1 if other text follows.
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

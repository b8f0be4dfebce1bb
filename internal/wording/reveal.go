package wording

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"
	"golang.org/x/text/unicode/bidi"
)

const (
	// A run of spaces and tabs wider than maxBlank columns, or with more than maxLines line breaks, is
	// replaced by a count.
	maxBlank = 32
	maxLines = 5
	// tabWidth is the width of a tab, in columns.
	tabWidth = 4
	// A letter has at most maxMarks marks: a tower of them covers the lines around it.
	maxMarks = 4
	// DeletedByTelegram are the characters that Telegram deletes from every text, also in code, before it looks for
	// names (TDLib, clean_input_string).
	DeletedByTelegram = "\r\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u030a\u0333\u033f"
	// lookalikes are letters that look like Latin ones in most typefaces.
	lookalikes = "аеорсухіјѕһԁԛԝӏАВЕКМНОРСТУХІЈЅԀԚԜӀονιαρυκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"
)

// hostPattern finds where the host of an address is written: behind its scheme, with as many slashes as browsers
// take; behind an @; ahead of a path, for servers that complete it; or alone, as ssh takes it. In a language without
// blanks it may take some of the text around for a host, as a server could.
var hostPattern = regexp.MustCompile(`(?i)(?:https?:[/\\]*|:(?:\\?/){2})[^/?#\\"'<>\x60，；：！？（）「」【】《》、]+` +
	`|@[^/?#\\"'<>\x60]*[.。．｡][\pL\pN-]+` +
	`|(?:^|["'<>\x60(){}\[\]=,;:])(?://)?[^/?#\\"'<>\x60(){}\[\]=,;]*[.。．｡](?:[a-z]+(?::[0-9]+)?\?|[\pL\pN-]+(?::[0-9]+)?/)` +
	`|[^\x00-,/:-@\[-^\x60{-\x7f；，：！？（）「」【】《》、“”„‘’‚«»‹›…⟨⟩]+[.。．｡][\pL\pN\pM-]+`)

// revealHidden makes characters visible that a reader would not see or would misread: control and
// bidirectional characters, zero-width characters, what a platform deletes, letters of another script in a word, all
// but ASCII in the host of an address, towers of marks, and long runs of blanks that push text out of sight. It keeps
// variation selectors after symbols (❤️), but not after marks of ASCII, which a command has.
func revealHidden(text string) string {
	var out strings.Builder
	for text != "" {
		blank := prefixLength(text, isBlank)
		writeBlank(&out, text[:blank])
		text = text[blank:]
		word := prefixLength(text, func(r rune) bool { return !isBlank(r) })
		writeWord(&out, hostPattern.ReplaceAllStringFunc(text[:word], revealAddress))
		text = text[word:]
	}
	return out.String()
}

var (
	// asciiDomain matches a host that ends in a domain of Latin letters.
	asciiDomain = regexp.MustCompile(`(?i)[.。．｡](?:[a-z]{2,}|xn--[a-z0-9-]+)$`)
	// fileName matches what is more often the name of a file than a host.
	fileName = regexp.MustCompile(`(?i)\.(?:md|py|sh|rs|pl|so|cc|ps|mk|ml|tf|zip|mov)$`)
)

// revealAddress spells the host out that [hostPattern] has found, unless it has no scheme and ends in nothing that is
// a domain: then it is a sentence of a language without blanks. One that stands alone ends in a domain of the internet.
func revealAddress(found string) string {
	host, _, _ := strings.Cut(strings.TrimLeft(strings.TrimRight(found, "/?"), "\"'<>(){}[]=,;:"), ":")
	suffix, known := publicsuffix.PublicSuffix(PlainDots(strings.ToLower(host)))
	switch {
	case strings.Contains(found, "//") || strings.HasPrefix(strings.ToLower(found), "http"):
		return RevealHost(found)
	case strings.ContainsAny(found, "@/?"):
		known = known || asciiDomain.MatchString(host)
	default:
		known = (known || strings.Contains(suffix, ".")) && !fileName.MatchString(host)
	}
	if known {
		return RevealHost(found)
	}
	return found
}

var dots = strings.NewReplacer("。", ".", "．", ".", "｡", ".")

// PlainDots returns a host with the dots that names of hosts in other scripts may have (RFC 3490) replaced by plain
// ones.
func PlainDots(host string) string { return dots.Replace(host) }

// RevealHost spells the characters of a host out that are not ASCII. Many look like letters or slashes of another
// host, and which one is asked shows in none of them.
func RevealHost(host string) string {
	var out strings.Builder
	for _, r := range host {
		if r < utf8.RuneSelf {
			out.WriteRune(r)
		} else {
			writeCode(&out, r)
		}
	}
	return out.String()
}

func writeCode(out *strings.Builder, r rune) { fmt.Fprintf(out, "⟨U+%04X⟩", r) }

func isBlank(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }

// prefixLength returns the length in bytes of the longest prefix whose characters satisfy is.
func prefixLength(text string, is func(rune) bool) int {
	if end := strings.IndexFunc(text, func(r rune) bool { return !is(r) }); end >= 0 {
		return end
	}
	return len(text)
}

// writeBlank writes a run of spaces, tabs and line breaks, or a count instead of a long run.
func writeBlank(out *strings.Builder, run string) {
	spaces, tabs, lines := strings.Count(run, " "), strings.Count(run, "\t"), strings.Count(run, "\n")
	if spaces+tabWidth*tabs <= maxBlank && lines <= maxLines {
		out.WriteString(run)
		return
	}
	out.WriteString(countBlank(run))
	if lines > 0 {
		out.WriteByte('\n')
	}
}

// countBlank names what a run of spaces, tabs and line breaks consists of.
func countBlank(run string) string {
	var counts []string
	for _, blank := range []struct{ char, name string }{{" ", "space"}, {"\t", "tab"}, {"\n", "line break"}} {
		if n := strings.Count(run, blank.char); n > 0 {
			counts = append(counts, Plural(n, blank.name, blank.name+"s"))
		}
	}
	return "⟨" + strings.Join(counts, ", ") + "⟩"
}

// writeWord writes a word, with code points instead of characters that a reader would misread.
func writeWord(out *strings.Builder, word string) {
	latin := strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Latin, r) })
	var before rune
	marks := 0
	for word != "" {
		n := prefixLength(word, isWordRune)
		if n == 0 {
			n = prefixLength(word, func(r rune) bool { return !isWordRune(r) })
		}
		strange := foreignLetters(word[:n], latin)
		for _, r := range word[:n] {
			if marks++; !unicode.IsMark(r) {
				marks = 0
			}
			if !strange(r) && marks <= maxMarks && !strings.ContainsRune(DeletedByTelegram, r) && (unicode.IsPrint(r) && HasVisible(string(r)) || r == '\ufe0f' && before >= utf8.RuneSelf && unicode.IsSymbol(before)) {
				out.WriteRune(r)
			} else {
				writeCode(out, r)
			}
			before = r
		}
		word = word[n:]
	}
}

// isWordRune reports whether a character is a letter, mark or digit.
func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) }

// foreignLetters returns a predicate for the letters in a run that must be marked: letters of a
// second script, and all letters of a run that looks Latin but is not, if the word has Latin
// letters (latin).
func foreignLetters(run string, latin bool) func(rune) bool {
	keep, mixed, alike := noScript, false, true // keep is the script not to mark: Latin, or else the first
	for _, r := range run {
		s := scriptOf(r)
		if s == noScript {
			continue
		}
		mixed = mixed || keep != noScript && s != keep
		if keep == noScript || s == latinScript {
			keep = s
		}
		alike = alike && strings.ContainsRune(lookalikes, r)
	}
	if !mixed && latin && alike {
		keep = latinScript
	}
	return func(r rune) bool {
		s := scriptOf(r)
		return (mixed || keep == latinScript) && s != noScript && s != keep
	}
}

// script is a script whose letters can be mistaken for those of another script.
type script int

const (
	noScript script = iota // all other characters, which may be mixed with any script
	latinScript
)

func scriptOf(r rune) script {
	if r < 0x80 && !unicode.IsLetter(r) {
		return noScript
	}
	for i, table := range []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic} {
		if unicode.Is(table, r) {
			return script(i + 1)
		}
	}
	return noScript
}

// leftToRight keeps lines of syntax in their order: letters that are written from right to left would turn what stands
// around them around, so that a command looks like a comment. A mark (U+200E) at the beginning and behind each word of
// such letters ends that.
func leftToRight(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if !strings.ContainsAny(line, syntaxMarks) || !asciiLetter.MatchString(line) || !strings.ContainsFunc(line, isRightToLeft) {
			continue
		}
		var out strings.Builder
		blank := prefixLength(line, isBlank)
		out.WriteString(line[:blank] + leftMark)
		for line = line[blank:]; line != ""; {
			n := prefixLength(line, func(r rune) bool { return isRightToLeft(r) || unicode.IsMark(r) })
			if n > 0 {
				out.WriteString(line[:n] + leftMark)
			}
			other := prefixLength(line[n:], func(r rune) bool { return !isRightToLeft(r) })
			out.WriteString(line[n : n+other])
			line = line[n+other:]
		}
		lines[i] = out.String()
	}
	return strings.Join(lines, "")
}

// syntaxMarks are those of commands and programs that a sentence seldom has; leftMark counts as a letter that is
// written from left to right, and is not shown.
const syntaxMarks, leftMark = ";|&<>{}$`\\#=", "\u200e"

var asciiLetter = regexp.MustCompile(`[A-Za-z]`)

func isRightToLeft(r rune) bool {
	properties, _ := bidi.LookupString(string(r))
	class := properties.Class()
	return class == bidi.R || class == bidi.AL || class == bidi.AN // two numbers of Arabic turn what stands between them around
}

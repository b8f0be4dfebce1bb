package wording

import (
	"fmt"
	"strings"
	"unicode"
)

const (
	// maxBlank is the number of columns of spaces and tabs from which they are replaced by their
	// count, and maxLines that of line breaks.
	maxBlank = 32
	maxLines = 5
	// tab is the width of a tab, in columns.
	tab = 4
	// lookalikes are letters that look like Latin ones in most typefaces.
	lookalikes = "аеорсухіјѕһԁԛԝӏАВЕКМНОРСТУХІЈЅԀԚԜӀονιαρυκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"
)

// reveal makes visible what a person would not see, or would misread: control and bidirectional
// characters, characters without a width, letters of another script in a word, and long runs of
// blanks that push text out of sight. The mark that makes a picture of a symbol (❤️) stays.
func reveal(text string) string {
	var out strings.Builder
	for text != "" {
		blank := runOf(text, isBlank)
		writeBlank(&out, text[:blank])
		text = text[blank:]
		word := runOf(text, func(r rune) bool { return !isBlank(r) })
		writeWord(&out, text[:word])
		text = text[word:]
	}
	return out.String()
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }

// runOf returns the length of the prefix whose characters satisfy is, in bytes.
func runOf(text string, is func(rune) bool) int {
	if end := strings.IndexFunc(text, func(r rune) bool { return !is(r) }); end >= 0 {
		return end
	}
	return len(text)
}

// writeBlank writes spaces, tabs and line breaks, or their number.
func writeBlank(out *strings.Builder, run string) {
	spaces, tabs, lines := strings.Count(run, " "), strings.Count(run, "\t"), strings.Count(run, "\n")
	if spaces+tab*tabs <= maxBlank && lines <= maxLines {
		out.WriteString(run)
		return
	}
	var counts []string
	for _, c := range []struct {
		n    int
		name string
	}{{spaces, "space"}, {tabs, "tab"}, {lines, "line break"}} {
		if c.n > 0 {
			counts = append(counts, Count(c.n, c.name, c.name+"s"))
		}
	}
	fmt.Fprintf(out, "⟨%s⟩", strings.Join(counts, ", "))
	if lines > 0 {
		out.WriteByte('\n')
	}
}

// writeWord writes a word.
func writeWord(out *strings.Builder, word string) {
	latin := strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Latin, r) })
	var before rune
	for word != "" {
		n := runOf(word, inWord)
		if n == 0 {
			n = runOf(word, func(r rune) bool { return !inWord(r) })
		}
		strange := foreign(word[:n], latin)
		for _, r := range word[:n] {
			if !strange(r) && (unicode.IsPrint(r) && Visible(string(r)) || r == '\ufe0f' && unicode.IsSymbol(before)) {
				out.WriteRune(r)
			} else {
				fmt.Fprintf(out, "⟨U+%04X⟩", r)
			}
			before = r
		}
		word = word[n:]
	}
}

// inWord reports whether names contain such a character.
func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) }

// foreign returns which letters of a run to mark: those of a script that shares look-alikes with
// another one in the run, and a run of only letters that look Latin, if there are Latin ones
// beside it.
func foreign(run string, latin bool) func(rune) bool {
	keep, mixed, alike := none, false, true // keep is the unmarked script: Latin, or else the first
	for _, r := range run {
		s := scriptOf(r)
		if s == none {
			continue
		}
		mixed = mixed || keep != none && s != keep
		if keep == none || s == latinScript {
			keep = s
		}
		alike = alike && strings.ContainsRune(lookalikes, r)
	}
	if !mixed && latin && alike {
		keep = latinScript
	}
	return func(r rune) bool { s := scriptOf(r); return (mixed || keep == latinScript) && s != none && s != keep }
}

// script is a script whose letters resemble those of another one.
type script int

const (
	none script = iota // all other letters and signs, which mix with any
	latinScript
)

func scriptOf(r rune) script {
	if r < 0x80 && !unicode.IsLetter(r) {
		return none
	}
	for i, table := range []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic} {
		if unicode.Is(table, r) {
			return script(i + 1)
		}
	}
	return none
}

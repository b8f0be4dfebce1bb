package markdown_test

import (
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"oneclaw/internal/emulator/npmtest"
	"oneclaw/internal/emulator/telegram/markup"
	"oneclaw/internal/markdown"
)

// Telegram shows every part with the formatting that its tags ask for, where they ask for it, and calls nobody.
func TestTelegramShowsPartsAsTheyAreMeant(t *testing.T) {
	t.Parallel()
	var given []npmtest.Text
	for i, source := range telegramSources(t) {
		for _, part := range markdown.Parse(source).TelegramHTML([]int{4096, 160}[i%2]) {
			given = append(given, npmtest.Text{Text: part.Text, HTML: true}, npmtest.Text{Text: part.Plain})
		}
	}
	for i, read := range npmtest.ReadByTelegram(t, given) {
		if slices.ContainsFunc(read.Found, func(e npmtest.Entity) bool { return e.Type == "mention" }) {
			t.Errorf("%q calls somebody: %+v", given[i].Text, read.Found)
		}
		if !given[i].HTML {
			continue
		}
		if slices.ContainsFunc(read.Found, func(e npmtest.Entity) bool { return e.Type == "email" && cutsWord(read.Text, e.Offset) }) {
			t.Errorf("%q has a mailbox that begins in a word: %+v", given[i].Text, read.Found)
		}
		text, tags, err := readTelegram(given[i].Text)
		if got, want := shownBy(read), meantBy(text, tags); err != nil || read.Error != "" || got != want {
			t.Errorf("%q: %v %s\n got %q\nwant %q", given[i].Text, err, read.Error, got, want)
		}
	}
}

// cutsWord reports whether what stands before an offset belongs to a word.
func cutsWord(text string, offset int) bool {
	before := strings.TrimSuffix(string(utf16.Decode(utf16.Encode([]rune(text))[:offset])), "'")
	last, _ := utf8.DecodeLastRuneInString(before)
	return unicode.IsLetter(last) || unicode.IsNumber(last)
}

// telegramSources are the golden files, the oddities, and generated documents.
func telegramSources(t *testing.T) []string {
	t.Helper()
	sources := append(oddities(), fragments()...)
	files, err := filepath.Glob("testdata/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, string(source))
	}
	documents := rapid.Custom(document)
	for seed := range 200 {
		sources = append(sources, documents.Example(seed))
	}
	return sources
}

// shownBy returns a text as Telegram shows it, with the formatting of each character where it changes.
func shownBy(read npmtest.Reading) string {
	units := 0
	return formatted(read.Text, func(_ int, r rune) (formats []string) {
		for _, e := range read.Entities {
			if e.Offset <= units && units < e.Offset+e.Length {
				formats = append(formats, strings.TrimSpace(e.Type+" "+e.About))
			}
		}
		units += markup.UTF16Length(string(r))
		return formats
	})
}

// meantBy returns a text as its tags mean it, without the characters that Telegram deletes. There is no other style in code.
func meantBy(text string, tags []tagged) string {
	names := map[string]string{"b": "bold", "i": "italic", "s": "strikethrough"}
	at := func(i int, _ rune) (formats []string) {
		language, literal := "", ""
		for _, tag := range tags {
			if i < tag.from || tag.to <= i {
				continue
			}
			name, attribute, _ := strings.Cut(tag.tag, " ")
			_, value, _ := strings.Cut(attribute, `"`)
			value = html.UnescapeString(strings.TrimSuffix(value, `"`))
			switch {
			case name == "pre", name == "code" && literal == "":
				literal = name
				language = strings.TrimPrefix(value, "language-") + language
			case name == "a":
				formats = append(formats, "text_link "+markup.NormalizeLink(value))
			case name == "blockquote":
				formats = append(formats, name)
			default:
				formats = append(formats, names[name])
			}
		}
		if literal != "" {
			formats = slices.DeleteFunc(formats, func(f string) bool { return f != "blockquote" })
			formats = append(formats, strings.TrimSpace(literal+" "+language))
		}
		return formats
	}
	var kept strings.Builder
	var formats [][]string
	for i, r := range text {
		if markdown.WithoutDeleted(string(r)) != "" {
			kept.WriteRune(r)
			formats = append(formats, at(i, r))
		}
	}
	n := -1
	return formatted(strings.ReplaceAll(kept.String(), "\t", " "), func(int, rune) []string { n++; return formats[n] })
}

// formatted returns a text with the formats of its characters in brackets, where they change.
func formatted(text string, at func(i int, r rune) []string) string {
	var b strings.Builder
	last := ""
	for i, r := range text {
		formats := at(i, r)
		slices.Sort(formats)
		if now := strings.Join(slices.Compact(formats), ", "); now != last {
			b.WriteString("⟦" + now + "⟧")
			last = now
		}
		b.WriteRune(r)
	}
	return b.String()
}

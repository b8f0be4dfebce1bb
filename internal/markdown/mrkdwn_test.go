package markdown_test

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"oneclaw/internal/emulator/npmtest"
	"oneclaw/internal/markdown"
)

//go:embed testdata/mrkdwn.cjs
var mrkdwnScript string

// A reader of mrkdwn that others wrote sees each format where it is meant, and nobody called. What it cannot tell is
// left out: a mark in the text that it encloses, and a literal backtick.
func TestAReaderOfMrkdwnSeesWhatIsMeant(t *testing.T) {
	t.Parallel()
	const small = 160 // where texts are split
	var given, meant []string
	for _, source := range append(telegramSources(t), besideMarks()...) {
		doc := markdown.Parse(source)
		for _, limit := range []int{1 << 20, small} {
			parts, pieces := doc.SlackMrkdwn(limit), doc.MeantForSlack(limit)
			if _, heads := doc.VisibleSlack(limit); len(parts) == 0 || limit == small && (len(parts) == 1 || len(heads) > 0) || slices.ContainsFunc(pieces, hasOwnMark) {
				continue
			}
			var texts []string
			for _, part := range parts {
				texts = append(texts, readable(part.Text))
			}
			given, meant = append(given, strings.Join(texts, "\n")), append(meant, shown(pieces))
		}
	}
	if len(given) < 1500 {
		t.Errorf("only %d texts are read", len(given))
	}
	var read [][]markdown.Meant
	if err := json.Unmarshal(npmtest.Run(t, mrkdwnScript, given, "slack-message-parser"), &read); err != nil {
		t.Fatal(err)
	}
	for i, pieces := range read {
		for n := range pieces {
			pieces[n].Text = unescape(pieces[n].Text)
		}
		if got := shown(pieces); got != meant[i] {
			t.Errorf("%q\nis read as %s\nand means   %s", given[i], got, meant[i])
		}
	}
}

// hasOwnMark reports whether a text has a mark that begins or ends it, or a literal backtick.
func hasOwnMark(m markdown.Meant) bool {
	marks := map[string]string{"bold": "*", "italic": "_", "strike": "~"}
	all := m.Text + strings.Join(m.Formats, " ")
	return !slices.Contains(m.Formats, "code") && strings.Contains(m.Text, "`") ||
		slices.ContainsFunc(m.Formats, func(f string) bool { return marks[f] != "" && strings.Contains(all, marks[f]) })
}

// besideMarks are formats between characters of all kinds, and formats that touch.
func besideMarks() (sources []string) {
	formats := []string{"**b**", "*i*", "~~s~~", "`c`", "***n***", "[l](https://a.test/?q=1|2)"}
	for _, format := range formats {
		for _, r := range `.,;:!?()[]{}"'-/—…«»„“”、。&<>=+|#@%$^*_~字é1` {
			c := string(r)
			sources = append(sources, "x "+c+format+c+" y", "x"+c+format+c+"y", c+format, format+c)
		}
		for _, other := range formats {
			sources = append(sources, format+other, format+" "+other, format+"/"+other)
		}
	}
	return sources
}

var (
	quoteMarks = regexp.MustCompile(`(?m)^>( |$)`)
	colons     = regexp.MustCompile("([*_~`]):")
)

// readable is mrkdwn as the reader knows it: without quotes, which it knows only as Slack returns them, with a space
// that has a width, and with commas where other readers than this one know borders.
func readable(mrkdwn string) string {
	mrkdwn = strings.NewReplacer("\u200b", "\u2009", `"`, ",", "'", ",").Replace(quoteMarks.ReplaceAllString(mrkdwn, ""))
	return colons.ReplaceAllString(mrkdwn, "$1,")
}

// shown returns the visible characters of texts, with their formats in brackets, where they change.
func shown(texts []markdown.Meant) string {
	var b strings.Builder
	last := ""
	for _, m := range texts {
		slices.Sort(m.Formats)
		formats := strings.ReplaceAll(strings.Join(slices.Compact(m.Formats), " "), "'", ",")
		for _, r := range m.Text {
			if strings.ContainsRune(`"':,`, r) || !unicode.IsGraphic(r) || unicode.IsSpace(r) {
				continue
			}
			if formats != last {
				b.WriteString("⟦" + formats + "⟧")
				last = formats
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

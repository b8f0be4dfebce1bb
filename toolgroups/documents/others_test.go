package documents_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/emulator/npmtest"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups/documents/office"
)

//go:embed testdata/others/sheets.cjs
var sheetsScript string

//go:embed testdata/others/texts.cjs
var textsScript string

// made is a document that a library of others wrote, with what another library reads in it.
type made struct {
	Name   string `json:"name"`
	Data   []byte `json:"data"`
	Sheets []struct {
		Name   string
		Hidden bool
		Cells  map[string]cell
	}
	Lines []string
	Rough bool // the library parts lines otherwise
}

// cell is what another library finds in a cell: a text, a number, or the day of a date.
type cell struct {
	Text, Format, Shown, Formula, Link, Comment string
	Number, Serial                              *float64
	Changes                                     bool // the program that wrote the workbook computes it or shows it otherwise
}

// grid is a sink that keeps cells by their sheet and place, and lines.
type grid struct {
	sheets []office.Part
	cells  []map[string]string
	lines  []string
}

// farCell matches a cell far to the right, which names its column.
var farCell = regexp.MustCompile(`^([A-Z]{2,3}): (.*)`)

// Begin keeps a part.
func (g *grid) Begin(p office.Part) bool {
	g.sheets, g.cells = append(g.sheets, p), append(g.cells, map[string]string{})
	return true
}

// Add keeps a block.
func (g *grid) Add(b office.Block) error {
	for at, text := range b.Cells {
		name := wording.ColumnName(at)
		if m := farCell.FindStringSubmatch(text); m != nil {
			name, text = m[1], m[2]
		}
		if text != "" {
			g.cells[len(g.cells)-1][name+strconv.Itoa(b.Number)] = text
		}
	}
	if b.Cells == nil {
		g.lines = append(g.lines, strings.Split(b.Text, "\n")...)
	}
	return nil
}

func readGrid(t *testing.T, m made) *grid {
	t.Helper()
	g := &grid{}
	if _, err := office.Read(bytes.NewReader(m.Data), int64(len(m.Data)), m.Name, g); err != nil {
		t.Errorf("%s: %v", m.Name, err)
	}
	return g
}

// madeBy returns what a script makes, and the documents that are given to it.
func madeBy(t *testing.T, script string, given []made, least int, packages ...string) (list []made) {
	t.Helper()
	if err := json.Unmarshal(npmtest.Run(t, script, given, packages...), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) < least {
		t.Errorf("only %d documents were made", len(list))
	}
	return list
}

// written returns what write_document makes of a text.
func written(t *testing.T, name, content string) []made {
	t.Helper()
	h := newHarness(t)
	args, err := json.Marshal(map[string]string{"path": name, "content": content})
	if err != nil {
		t.Fatal(err)
	}
	h.must(t, "write_document", string(args))
	data, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return []made{{Name: name, Data: data}}
}

// everyKind has each kind of block and of cell.
const everyKind = withoutNote + "[^n]\n\n[^n]: A note.\n"

const withoutNote = "# Harbour & Co\n\nThe **harbour** in *spring*, ~~not 12~~, says `count.sh`; see [the list](https://a.example/?a=1&b=2).\nA second line.\n\n" +
	"1. Count\n   - in the east\n   - 日本 😀\n2. Repair\n\nAgain:\n\n3. three\n4. four\n\n> Quoted\n\n```go\nfunc main() {\n\tprintln(\"<&>\")\n}\n```\n\n---\n\n" +
	"## Costs: spring/autumn\n\n| Season | Ships | Cost | Share | Day |\n|:---|---:|:-:|---|---|\n| Spring | 120 | 1,200.50 | 12.5% | 2026-03-01 |\n| Autumn | 95 | 900 | 50 % | 2026-09-01 14:30 |\n| =SUM(B2:B3) | 007 | -1,234 | TRUE | two<br>lines |\n| x | 0.1 | 1e5 | | \\| |\n\n" +
	"### Costs: spring/autumn\n\n| a | b |\n|---|---|\n| **x** | [y](https://a.example/) \\| z |\n\nThe end."

// meantCells and meantLines are what everyKind means, so that two readers do not agree on something else.
var (
	meantCells = []map[string]string{
		{
			"A1": "Season", "B1": "Ships", "C1": "Cost", "D1": "Share", "E1": "Day",
			"A2": "Spring", "B2": "120", "C2": "1200.5", "D2": "12.5%", "E2": "2026-03-01",
			"A3": "Autumn", "B3": "95", "C3": "900", "D3": "50%", "E3": "2026-09-01 14:30",
			"A4": "=SUM(B2:B3)", "B4": "007", "C4": "-1234", "D4": "TRUE", "E4": "two<br>lines",
			"A5": "x", "B5": "0.1", "C5": "1e5", "E5": `\|`,
		},
		{"A1": "a", "B1": "b", "A2": "x", "B2": `y (https://a.example/) \| z`},
	}
	meantLines = strings.Split(`# Harbour & Co
The harbour in spring, ~~not 12~~, says count.sh; see the list (https://a.example/?a=1&b=2).
A second line.
N Count
  - in the east
  - 日本 😀
N Repair
Again:
N three
N four
Quoted
func main() {
 println("<&>")
}
## Costs: spring/autumn
| Season | Ships | Cost | Share | Day |
| Spring | 120 | 1,200.50 | 12.5% | 2026-03-01 |
| Autumn | 95 | 900 | 50 % | 2026-09-01 14:30 |
| =SUM(B2:B3) | 007 | -1,234 | TRUE | two<br>lines |
| x | 0.1 | 1e5 |  | \| |
### Costs: spring/autumn
| a | b |
| x | y (https://a.example/) \| z |
The end.[^1]
[^1]: A note.`, "\n")
)

// Workbooks of other libraries are read as another library reads them, cell by cell, and so are ours by two.
func TestCellsAreReadAsOthersReadThem(t *testing.T) {
	t.Parallel()
	for _, m := range madeBy(t, sheetsScript, written(t, "ours.xlsx", everyKind), 33, "exceljs", "xlsx", "write-excel-file", "odf-kit") {
		compareCells(t, m)
		if strings.HasPrefix(m.Name, "for ") {
			if diff := cmp.Diff(meantCells, readGrid(t, m).cells); diff != "" {
				t.Errorf("%s (-meant +written):\n%s", m.Name, diff)
			}
		}
	}
}

// compareCells reads a workbook and compares it with what another library reads in it.
func compareCells(t *testing.T, m made) {
	t.Helper()
	g := readGrid(t, m)
	if len(g.sheets) != len(m.Sheets) {
		t.Errorf("%s: %d sheets, want %d", m.Name, len(g.sheets), len(m.Sheets))
		return
	}
	for i, s := range m.Sheets {
		if p := g.sheets[i]; p.Name != strings.TrimSpace(s.Name) && p.Name != "" || p.Hidden != s.Hidden {
			t.Errorf("%s: sheet %q (hidden: %v), want %q (%v)", m.Name, p.Name, p.Hidden, s.Name, s.Hidden)
		}
		for at, got := range g.cells[i] {
			if _, ok := s.Cells[at]; !ok {
				t.Errorf("%s: %s!%s: got %q, want nothing", m.Name, s.Name, at, got)
			}
		}
		for at, want := range s.Cells {
			if got := g.cells[i][at]; !want.isShownAs(got) {
				t.Errorf("%s: %s!%s: got %q, want %s", m.Name, s.Name, at, got, want)
			}
		}
	}
}

// isShownAs reports whether a text says what is in the cell.
func (c cell) isShownAs(got string) bool {
	for _, more := range []string{" [comment: " + plain(c.Comment) + "]", " (=" + plain(c.Formula) + ")", " (" + c.Link + ")"} {
		got = strings.TrimSuffix(got, more)
		if got == strings.TrimSpace(more) {
			got = ""
		}
	}
	if c.Comment != "" && strings.Contains(got, "[") {
		return false
	}
	switch {
	case c.Changes:
		return true
	case c.Serial != nil:
		return isMoment(got, *c.Serial, c.Format)
	case c.Number != nil:
		shown := c.Shown
		if scaled.MatchString(c.Format) { // what it shows is the unit of another number
			shown = ""
		}
		return isNumber(got, *c.Number, shown)
	}
	return got == plain(c.Text)
}

// scaled matches the formats of thousands, of millions and of powers of ten.
var scaled = regexp.MustCompile(`,[,"]|E\+|^General$`)

// currencies are names as OpenDocument writes them.
var currencies = strings.NewReplacer(" EUR", "€", " USD", "$", " SEK", "kr", " PLN", "zł", " INR", "₹", " BRL", "R$")

// plain is a text as it stands in a row of a table.
func plain(text string) string {
	var lines []string
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.ReplaceAll(strings.Join(lines, "<br>"), "|", `\|`)
}

// isNumber reports whether a text is a number as it is shown: with its sign, its percent sign, its currency and its
// unit.
func isNumber(got string, want float64, shown string) bool {
	got = currencies.Replace(got)
	for _, r := range currencies.Replace(shown) {
		if (r == '%' || r == '°' || unicode.IsLetter(r) || unicode.Is(unicode.Sc, r)) && !strings.ContainsRune(got, r) {
			return false
		}
	}
	digits := strings.TrimFunc(got, func(r rune) bool { return !unicode.IsDigit(r) && !strings.ContainsRune("-", r) })
	if at := strings.IndexFunc(digits, unicode.IsDigit); at > 1 {
		digits = "-" + digits[at:]
	}
	n, err := strconv.ParseFloat(digits, 64)
	if strings.HasSuffix(got, "%") && !strings.HasSuffix(got, " %") {
		n /= 100
	}
	return err == nil && math.Abs(n-want) <= math.Abs(want)*1e-14
}

// isMoment reports whether a text is the date, the time or the length of a time of a serial number, as exactly as
// its format shows it. There is none before the calendar begins.
func isMoment(got string, serial float64, format string) bool {
	if serial < 0 && isNumber(got, serial, "") {
		return true
	}
	exact := 0.501
	if strings.Contains(format, "s.0") || strings.Contains(format, "s].0") {
		exact = 0.001
	}
	for _, layout := range []string{"2006-01-02 15:04:05.999", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", "15:04:05", "15:04"} {
		at, err := time.Parse(layout, got)
		if err != nil {
			continue
		}
		if at.Year() == 0 {
			at = at.AddDate(1899, 11, 29)
		}
		days := float64(at.UnixMilli())/86_400_000 + 25_569
		return math.Abs(days-serial)*86_400 < exact || serial < 61 && math.Abs(days-1-serial)*86_400 < exact
	}
	var h, m int
	var s float64
	_, err := fmt.Sscanf(got, "%d:%d:%f", &h, &m, &s)
	return err == nil && math.Abs(float64(h*3600+m*60)+s-serial*86_400) < exact
}

// String says what is in the cell.
func (c cell) String() string {
	switch {
	case c.Serial != nil:
		return fmt.Sprintf("the moment %v as %q (%s)", *c.Serial, c.Shown, c.Format)
	case c.Number != nil:
		return fmt.Sprintf("the number %v as %q (%s)", *c.Number, c.Shown, c.Format)
	}
	return fmt.Sprintf("%q with formula %q, link %q, comment %q", c.Text, c.Formula, c.Link, c.Comment)
}

var (
	// orderedItem matches the number of a list item, tableRule what follows the first row of a table, and structure
	// what begins a line or parts cells.
	orderedItem = regexp.MustCompile(`^((?:  )*)(?:[0-9]+(?:\.[0-9]+)*|[a-zA-Z]|[ivxIVX]+)[.)] `)
	tableRule   = regexp.MustCompile(`^\|(---\|)+$`)
	structure   = regexp.MustCompile(` \(https:[^)]*\)|^ *(?:#+|-|N|Notes:) |^\[(?:chart|picture)[^]]*\]|\\?\||<br>|\s|~~|\[\^\d+\]:?|\^`)
)

// Texts and slides of other libraries are read as another library reads them, and ours by two: line by line, or
// letter by letter where the other library parts lines otherwise.
func TestLinesAreReadAsOthersReadThem(t *testing.T) {
	t.Parallel()
	for _, m := range madeBy(t, textsScript, written(t, "ours.docx", everyKind), 20, "docx", "pptxgenjs", "odf-kit", "mammoth", "officeparser") {
		got, want := linesOf(readGrid(t, m).lines), linesOf(m.Lines)
		if m.Name == "ours.docx" {
			if diff := cmp.Diff(meantLines, got); diff != "" {
				t.Errorf("ours.docx (-meant +written):\n%s", diff)
			}
		}
		if m.Rough {
			got, want = letters(got), letters(want)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-theirs +ours):\n%s", m.Name, diff)
		}
	}
}

// linesOf returns lines in the form in which they are compared.
func linesOf(lines []string) (list []string) {
	for _, line := range lines {
		line = strings.NewReplacer("\u00ad", "", "\t", " ").Replace(line) // what is not kept
		line = orderedItem.ReplaceAllString(strings.TrimRight(line, " "), "${1}N ")
		if line != "" && !tableRule.MatchString(line) {
			list = append(list, line)
		}
	}
	return list
}

// letters returns lines as one, without what shows their structure.
func letters(lines []string) []string {
	var all strings.Builder
	for _, line := range lines {
		all.WriteString(structure.ReplaceAllString(line, ""))
	}
	return []string{all.String()}
}

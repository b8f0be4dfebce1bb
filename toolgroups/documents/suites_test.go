package documents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// suite skips the test unless it is one of the night, in which the program has to be there.
func suite(t *testing.T, program string) {
	t.Helper()
	if os.Getenv("TEST_ONECLAW_NIGHTLY") == "" {
		t.Skip("TEST_ONECLAW_NIGHTLY is not set")
	}
	if _, err := exec.LookPath(program); err != nil {
		t.Fatal(err)
	}
}

// convert has LibreOffice write documents in another format, and returns what it wrote, by their names.
func convert(t *testing.T, list []made, format string) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	args := []string{"-env:UserInstallation=file://" + filepath.Join(dir, "profile"), "--headless", "--convert-to", format, "--outdir", filepath.Join(dir, "out")}
	for _, m := range list {
		name := filepath.Join(dir, m.Name)
		if err := os.WriteFile(name, m.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, name)
	}
	if out, err := exec.CommandContext(t.Context(), "soffice", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	converted := map[string][]byte{}
	for _, m := range list {
		base, _, _ := strings.Cut(m.Name, ".")
		data, err := os.ReadFile(filepath.Join(dir, "out", base+"."+format))
		if err != nil {
			t.Errorf("LibreOffice has not read %s: %v", m.Name, err)
		}
		converted[m.Name] = data
	}
	return converted
}

// Workbooks that LibreOffice has read and written say the same as before, and so do those written here.
func TestCellsThatLibreOfficeWrites(t *testing.T) {
	suite(t, "soffice")
	var books []made
	for _, m := range madeBy(t, sheetsScript, written(t, "ours.xlsx", everyKind), 33, "exceljs", "xlsx", "write-excel-file", "odf-kit") {
		if !strings.HasSuffix(m.Name, ".xlsx") || m.Name == "exceljs table and picture.xlsx" { // its picture gets into a cell
			continue
		}
		books = append(books, m)
	}
	for _, format := range []string{"ods", "xlsx"} {
		for name, data := range convert(t, books, format) {
			for _, m := range books {
				if m.Name == name {
					m.Data, m.Name = data, m.Name+" as "+format
					for _, sheet := range m.Sheets {
						for at, c := range sheet.Cells {
							c.Changes = c.Formula != "" || name == "exceljs formulas.xlsx" || c.Serial != nil && isLibreOfficesOwn(c.Format, format)
							sheet.Cells[at] = c
						}
					}
					compareCells(t, m)
				}
			}
		}
	}
}

// isLibreOfficesOwn reports whether LibreOffice does not know the format of a moment, or saves the time without its
// day as it shows it.
func isLibreOfficesOwn(code, format string) bool {
	return strings.Contains(code, "[ss].") || strings.Contains(code, "x-sysdate") || code == "y" || format == "ods" && !strings.ContainsAny(code, "yd")
}

// Texts and slides that LibreOffice has read and written say the same as before.
func TestLinesThatLibreOfficeWrites(t *testing.T) {
	suite(t, "soffice")
	all := madeBy(t, textsScript, written(t, "ours.docx", everyKind), 20, "docx", "pptxgenjs", "odf-kit", "mammoth", "officeparser")
	for _, way := range [][2]string{{".docx", "odt"}, {".docx", "rtf"}, {".docx", "docx"}, {".odt", "docx"}, {".pptx", "odp"}, {".pptx", "pptx"}} {
		var list []made
		for _, m := range all {
			if strings.HasSuffix(m.Name, way[0]) && (way[0] != ".docx" || !m.Rough) {
				list = append(list, m)
			}
		}
		converted := convert(t, list, way[1])
		for _, m := range list {
			if m.Name == "docx picture and box.docx" && way[1] == "rtf" {
				continue // LibreOffice leaves the box out
			}
			read := func() string {
				return strings.ReplaceAll(letters(linesOf(readGrid(t, m).lines))[0], "\u2011", "-") // a hyphen at which no line breaks
			}
			want := read()
			m.Data = converted[m.Name]
			if diff := cmp.Diff(want, read()); diff != "" {
				t.Errorf("%s as %s (-before +after):\n%s", m.Name, way[1], diff)
			}
		}
	}
}

// markup matches targets of links, and what is neither letter nor digit.
var markup = regexp.MustCompile(` ?\]?\(https:[^)]*\)|<br>|[^\p{L}\p{N}]`)

// Documents that pandoc makes of a text have the letters of the text in its order, and so has what is written here
// of it. Where a page may have marks of Markdown, others do not.
func TestTextsThatPandocWrites(t *testing.T) {
	suite(t, "pandoc")
	read := func(m made) string {
		return markup.ReplaceAllString(strings.Join(linesOf(readGrid(t, m).lines), "\n"), "")
	}
	want := read(written(t, "ours.docx", withoutNote)[0])
	for _, format := range []string{"docx", "odt", "rtf", "epub", "html", "pptx"} {
		name := filepath.Join(t.TempDir(), "x."+format)
		cmd := exec.CommandContext(t.Context(), "pandoc", "-s", "-f", "gfm", "-t", format, "-o", name)
		cmd.Stdin = strings.NewReader(withoutNote)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", format, err, out)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, read(made{Name: "x." + format, Data: data})); diff != "" {
			t.Errorf("%s (-ours +pandoc's):\n%s", format, diff)
		}
	}
}

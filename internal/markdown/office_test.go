package markdown_test

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/markdown"
)

// unpacked are the files of a document, each checked to be XML.
func unpacked(t *testing.T, data []byte) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(bytes.NewReader(content)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v in\n%s", f.Name, err, content)
			}
		}
		files[f.Name] = string(content)
	}
	return files
}

// TestOfficeDocuments compares what documents are made of with golden files. AbiWord, Gnumeric, python-docx
// and openpyxl open such files; toolgroups/documents reads them back.
func TestOfficeDocuments(t *testing.T) {
	source, err := os.ReadFile("testdata/office/report.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := markdown.Parse(string(source))
	docx, err := doc.DOCX()
	if err != nil {
		t.Fatal(err)
	}
	xlsx, left, err := doc.XLSX()
	if err != nil || left != 16 {
		t.Fatalf("%d blocks were left out, %v", left, err)
	}
	word, book := unpacked(t, docx), unpacked(t, xlsx)
	for name, text := range map[string]string{
		"document.xml": word["word/document.xml"], "document.xml.rels": word["word/_rels/document.xml.rels"],
		"workbook.xml": book["xl/workbook.xml"], "sheet1.xml": book["xl/worksheets/sheet1.xml"], "sheet2.xml": book["xl/worksheets/sheet2.xml"],
	} {
		file := filepath.Join("testdata/office", name)
		for _, end := range []string{"</w:p>", "</w:tr>", "</w:tblGrid>", "</w:tbl>", "</row>", "</cols>"} {
			text = strings.ReplaceAll(text, end, end+"\n")
		}
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCellsAreWhatTheyLookLike(t *testing.T) {
	for text, want := range map[string]string{
		"12":               ` s="0"><v>12</v>`,
		"-0.5":             ` s="0"><v>-0.5</v>`,
		"007":              `<t xml:space="preserve">007</t>`,
		"1234567890123456": `<t xml:space="preserve">1234567890123456</t>`,
		"1,200":            ` s="5"><v>1200</v>`,
		"1,200.50":         ` s="6"><v>1200.50</v>`,
		"1,2":              `<t xml:space="preserve">1,2</t>`,
		"50 %":             ` s="7"><v>0.5</v>`,
		"12.5%":            ` s="8"><v>0.125</v>`,
		"2026-03-01":       ` s="3"><v>46082</v>`,
		"2026-03-01 06:00": ` s="4"><v>46082.25</v>`,
		"2026-13-01":       `<t xml:space="preserve">2026-13-01</t>`,
		"TRUE":             ` t="b"><v>1</v>`,
		"=1+1":             `t="inlineStr"><is><t xml:space="preserve">=1+1</t>`,
		"a<br>b &":         ` s="2" t="inlineStr"><is><t xml:space="preserve">a` + "\n" + `b &amp;</t>`,
		"+1":               `<t xml:space="preserve">+1</t>`,
		"@SUM(1)":          `<t xml:space="preserve">@SUM(1)</t>`,
	} {
		data, _, err := markdown.Parse("| h |\n|---|\n| " + text + " |").XLSX()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := unpacked(t, data)["xl/worksheets/sheet1.xml"]; !strings.Contains(got, `<c r="A2"`+want) && !strings.Contains(got, want) || strings.Contains(got, "<f>") {
			t.Errorf("%s is %s", text, got)
		}
	}
	if _, _, err := markdown.Parse("no table").XLSX(); !errors.Is(err, markdown.ErrNoTable) {
		t.Errorf("without a table: %v", err)
	}
}

func TestSheetsHaveNamesOfTheirOwn(t *testing.T) {
	const table = "\n\n| a |\n|---|\n| b |\n\n"
	long := strings.Repeat("x", 40)
	data, _, err := markdown.Parse(table + "# A/B: [c]" + table + "# a b c" + table + "# " + long + table + "# " + long + table + "# " + strings.Repeat("😀", 40) + table).XLSX()
	if err != nil {
		t.Fatal(err)
	}
	book := unpacked(t, data)["xl/workbook.xml"]
	for _, want := range []string{`"Sheet"`, `"A B c"`, `"a b c 2"`, `"` + long[:31] + `"`, `"` + long[:29] + ` 2"`, `"` + strings.Repeat("😀", 15) + `"`} {
		if !strings.Contains(book, "name="+want) {
			t.Errorf("no sheet %s in %s", want, book)
		}
	}
}

// Footnotes of Markdown become footnotes of Word. What cannot be one stays text.
func TestFootnotesBecomeFootnotesOfWord(t *testing.T) {
	const source = "# Top[^a]\n\nOne[^b] and again[^b], gone[^x], ![^a]\n\n| a[^c] |\n|---|\n| b |\n\n[^a]: First [page](https://harbour.example/).\n\n    - item\n\n[^b]: **Second**, see[^d].\n[^c]: In a table.\n[^d]: Only from a note.\n[^e]: From nowhere.\n"
	docx, err := markdown.Parse(source).DOCX()
	if err != nil {
		t.Fatal(err)
	}
	files := unpacked(t, docx)
	body, notes := files["word/document.xml"], files["word/footnotes.xml"]
	for file, wants := range map[string][]string{
		body: {
			`Top</w:t></w:r><w:r><w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr><w:footnoteReference w:id="1"/></w:r></w:p>`,
			`One</w:t></w:r><w:r><w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr><w:footnoteReference w:id="2"/></w:r>`,
			` and again</w:t></w:r><w:r><w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr><w:t>2</w:t></w:r>`,
			`, gone[^x], !</w:t>`, `<w:footnoteReference w:id="3"/>`, `[4] </w:t>`, `Only from a note.`, `[^e]: </w:t>`, `From nowhere.`,
		},
		notes:                                  {`w:id="1"><w:p><w:pPr><w:pStyle w:val="FootnoteText"/></w:pPr>`, `<w:footnoteRef/>`, `First `, `<w:hyperlink r:id="l0">`, `item</w:t>`, `<w:b/>`, `, see</w:t></w:r><w:r><w:t xml:space="preserve">[4]</w:t></w:r>`, `In a table.`},
		files["word/_rels/footnotes.xml.rels"]: {`https://harbour.example/`},
		files["word/_rels/document.xml.rels"]:  {`Target="footnotes.xml"`},
		files["[Content_Types].xml"]:           {`PartName="/word/footnotes.xml"`},
	} {
		for _, want := range wants {
			if !strings.Contains(file, want) {
				t.Errorf("no %s in\n%s", want, file)
			}
		}
	}
	if strings.Contains(body, "First") || strings.Count(notes, "<w:footnote ") != 5 {
		t.Errorf("the body is\n%s\nthe footnotes are\n%s", body, notes)
	}
	plain, err := markdown.Parse("a [^b] c").DOCX()
	if files := unpacked(t, plain); err != nil || files["word/footnotes.xml"] != "" || !strings.Contains(files["word/document.xml"], "a [^b] c") {
		t.Errorf("without footnotes: %v", err)
	}
	// Looking for each of very many takes too long: they stay text.
	many := strings.Repeat("x[^1] ", 2_000) + "\n\n[^1]: y\n"
	if data, err := markdown.Parse(many).DOCX(); err != nil || unpacked(t, data)["word/footnotes.xml"] != "" {
		t.Errorf("with many references: %v", err)
	}
}

// A row is as high as its lines: LibreOffice shows one line otherwise.
func TestRowsAreAsHighAsTheirLines(t *testing.T) {
	data, _, err := markdown.Parse("| a | b<br>c |\n|---|---|\n| d | e |\n| f<br>g<br>h | i |\n| " + strings.Repeat("x<br>", 50) + " | j |\n| " + strings.Repeat("long ", 40) + " | k |").XLSX()
	if err != nil {
		t.Fatal(err)
	}
	got := unpacked(t, data)["xl/worksheets/sheet1.xml"]
	for _, want := range []string{`<row r="1" ht="30" customHeight="1">`, `<row r="2">`, `<row r="3" ht="45" customHeight="1">`, `<row r="4" ht="409" customHeight="1">`, `<row r="5">`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

// FuzzOffice writes whatever comes: each file of it is XML.
func FuzzOffice(f *testing.F) {
	source, err := os.ReadFile("testdata/office/report.md")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(source))
	f.Add("a[^1] b[^2]\n\n> [^1]: c[^2]\n\n[^2]: | d |\n    |---|\n\n[^3]: e")
	f.Add("- \n  - a\n    9. b\n\n> # c\n>\n> | \x01 | <br> |\n> |---|---|\n> | [\x7f](<a b>) | &#0; |")
	f.Fuzz(func(t *testing.T, text string) {
		doc := markdown.Parse(text)
		docx, err := doc.DOCX()
		if err != nil {
			t.Fatal(err)
		}
		unpacked(t, docx)
		if xlsx, _, err := doc.XLSX(); err == nil {
			unpacked(t, xlsx)
		} else if !errors.Is(err, markdown.ErrNoTable) {
			t.Fatal(err)
		}
	})
}

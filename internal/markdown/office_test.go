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

// FuzzOffice writes whatever comes: each file of it is XML.
func FuzzOffice(f *testing.F) {
	source, err := os.ReadFile("testdata/office/report.md")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(source))
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

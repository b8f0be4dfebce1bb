package documents_test

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"
)

// zipped is an archive of names and contents, in turns.
func zipped(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i+1 < len(files); i += 2 {
		w, err := z.Create(files[i])
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What is marked in a text is found as people type it.
func TestMarkedTextIsFound(t *testing.T) {
	h := newHarness(t)
	run := func(format, text string) string {
		return `<w:r><w:rPr>` + format + `</w:rPr><w:t>` + text + `</w:t></w:r>`
	}
	const raised, lowered = `<w:vertAlign w:val="superscript"/>`, `<w:vertAlign w:val="subscript"/>`
	h.put(t, "marks.docx", zipped(t, "_rels/.rels", `<R><R Id="r" Type="x/officeDocument" Target="a.xml"/></R>`,
		"a.xml", `<w:document xmlns:w="w"><w:body><w:p>`+run("", "CO")+run(lowered, "2")+run("", " in 10")+run(raised, "6")+run("", " tons, x")+run(raised, "2n")+run("<w:strike/>", " old")+run("", " price")+`<w:r><w:footnoteReference w:id="1"/></w:r>`+run("", " here")+`</w:p></w:body></w:document>`))
	for _, query := range []string{"CO2 in 106 tons", "co_2", "10^6", "x2n", "old price here", "price tons"} {
		if got := h.must(t, "search_document", `{"path":"marks.docx","query":"`+query+`"}`).Text; !strings.HasPrefix(got, "Found ") {
			t.Errorf("%s: %s", query, got)
		}
	}
}

// Rows and columns that the person does not see are marked where the model reads or finds them.
func TestHiddenRowsAndColumnsAreMarked(t *testing.T) {
	h := newHarness(t)
	const relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	h.put(t, "hidden.xlsx", zipped(t,
		"_rels/.rels", `<R><R Id="r" Type="x/officeDocument" Target="book.xml"/></R>`,
		"book.xml", `<workbook xmlns:r="`+relations+`"><sheets><sheet name="One" r:id="s"/></sheets></workbook>`,
		"_rels/book.xml.rels", `<R><R Id="s" Type="x/worksheet" Target="one.xml"/></R>`,
		"one.xml", `<worksheet><cols><col min="2" max="3" hidden="1"/></cols><sheetData><row r="1"><c r="A1"><v>1</v></c><c r="B1"><v>2</v></c></row><row r="2" hidden="1"><c r="A2"><v>77</v></c></row></sheetData></worksheet>`))
	h.put(t, "hidden.ods", zipped(t, "mimetype", "application/vnd.oasis.opendocument.spreadsheet", "content.xml",
		`<d xmlns:t="t"><body><spreadsheet><t:table t:name="One"><t:table-column/><t:table-column-group><t:table-column t:number-columns-repeated="2" t:visibility="collapse"/></t:table-column-group>`+
			`<t:table-row><t:table-cell t:value-type="float" t:value="1"/><t:table-cell t:value-type="float" t:value="2"/></t:table-row><t:table-row t:visibility="filter"><t:table-cell t:value-type="float" t:value="77"/></t:table-row></t:table></spreadsheet></body></d>`))
	for _, name := range []string{"hidden.xlsx", "hidden.ods"} {
		got := h.must(t, "read_document", `{"path":"`+name+`"}`).Text
		if want := "| | A | B (hidden) |\n|---|---|---|\n| 1 | 1 | 2 |\n| 2 (hidden) | 77 |"; !strings.HasSuffix(got, want) {
			t.Errorf("%s:\n%s", name, got)
		}
		if got := h.must(t, "search_document", `{"path":"`+name+`","query":"77"}`).Text; !strings.Contains(got, "row 2 (hidden)") {
			t.Errorf("%s: found\n%s", name, got)
		}
	}
}

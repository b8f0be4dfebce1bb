package office_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"oneclaw/toolgroups/documents/office"
)

// Each of these is refused with a sentence, before it costs more than its limit.
func TestHostileDocumentsAreRefused(t *testing.T) {
	laughs := `<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>`
	outside := `<!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/passwd">]>`
	document := func(start string) []byte {
		return archive("_rels/.rels", relationsTo("r", "officeDocument", "word/document.xml"), "word/document.xml", start)
	}
	many := make([]string, 0, 2*10_001)
	for i := range 10_001 {
		many = append(many, "word/media/"+strconv.Itoa(i), "")
	}
	locked := archive("content.xml", "<a/>", "META-INF/manifest.xml", `<m><file-entry><encryption-data/></file-entry></m>`)
	for _, tc := range []struct {
		name string
		data []byte
		want string
	}{
		{"entities", document(laughs + `<w:document xmlns:w="w"><w:body><w:p><w:r><w:t>&c;</w:t></w:r></w:p></w:body></w:document>`), "declares entities"},
		{"entities of other files", document(outside + `<document><body><p><r><t>&a;</t></r></p></body></document>`), "declares entities"},
		{"an entity that is not declared", document(`<document><body><p><r><t>&a;</t></r></p></body></document>`), "invalid character entity"},
		{"depth", word(strings.Repeat("<w:sdt>", 100_000)), "deeper than the limit"},
		{"depth of tables", word(strings.Repeat("<w:tbl><w:tr><w:tc>", 200)), "deeper than the limit"},
		{"depth of groups", []byte(`{\rtf1 ` + strings.Repeat("{", 100_000)), "deeper than the limit"},
		{"depth of a page", []byte("<html>" + strings.Repeat("<b>", 600)), "cannot be read as HTML"},
		{"a text without end", word(p("<w:r><w:t>" + strings.Repeat("x", 9<<20) + "</w:t></w:r>")), "an element of more than the limit"},
		{"a name without end", word("<" + strings.Repeat("x", 9<<20)), "an element of more than the limit"},
		{"a paragraph without end", []byte(`{\rtf1 ` + strings.Repeat("x", 9<<20)), "an element of more than the limit"},
		{"a cell without end", []byte(`"` + strings.Repeat("x", 9<<20)), "an element of more than the limit"},
		{"texts of cells", book("", "xl/texts.xml", "<sst>"+strings.Repeat("<si><t>"+strings.Repeat("x", 1<<20)+"</t></si>", 50)+"</sst>"), "of texts in its cells"},
		{"files", word("", many...), "holds 10003 files"},
		{"a password", locked, "protected with a password"},
		{"a protected book", archive("META-INF/container.xml", "<a/>", "META-INF/rights.xml", "<a/>"), "protected against copying"},
		{"no document", archive("_rels/.rels", "<a/>"), "is damaged"},
		{"another document", archive("_rels/.rels", relationsTo("r", "officeDocument", "a.xml"), "a.xml", "<a/>"), "holds no document"},
		{"itself", archive("_rels/.rels", relationsTo("r", "officeDocument", "_rels/.rels")), "holds no document"},
		{"parts of a page", []byte("<html>" + strings.Repeat("<p>x", 200_000)), "cannot be read as HTML"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := "x.html"
			if tc.name == "a cell without end" {
				name = "x.csv"
			}
			got := read(name, tc.data)
			_, refusal, refused := strings.Cut(got, "! ")
			if refused != (tc.want != "") || !strings.Contains(refusal, tc.want) {
				t.Errorf("got %.300q, want %q", got, tc.want)
			}
		})
	}
}

// Whatever a document has very many of costs no more for each.
func TestVeryManyPartsAreRead(t *testing.T) {
	const many = 30_000
	cells := strings.Repeat(`<col min="1" max="16384" hidden="1"/>`, many)
	links := strings.Repeat(`<hyperlink ref="A1" r:id="l"/>`, many)
	for _, tc := range []struct {
		name, file string
		data       []byte
		word       string
		want       int
	}{
		{"notes of a paragraph", "x.odt", open("text", "<o:p>"+strings.Repeat("<o:note><o:p>word</o:p></o:note>", many)+"</o:p>"), "word", many},
		{"text boxes of a paragraph", "x.rtf", []byte(`{\rtf1 ` + strings.Repeat(`{\shptxt word}`, many) + `\par}`), "word", many},
		{"signs of a formula", "x.rtf", []byte(`{\rtf1 {\*\moMath ` + strings.Repeat(`\u8804?`, many) + `}\par}`), "[formula]", 1},
		{"texts of a formula", "x.docx", word(p(omml("<m:r><m:t>" + strings.Repeat("x<!-- -->", many) + "</m:t></m:r>"))), "[formula]", 1},
		{"styles of a text", "x.docx", word(p(strings.Repeat(r("a ")+run("<w:strike/>", "b"), many))), "b", many},
		{"hidden columns", "x.xlsx", archive("_rels/.rels", relationsTo("r", "officeDocument", "book.xml"), "book.xml", `<workbook xmlns:r="`+officeNS+`"><sheets><sheet r:id="s"/></sheets></workbook>`,
			"_rels/book.xml.rels", relationsTo("s", "worksheet", "one.xml"), "_rels/one.xml.rels", `<R><R Id="l" Type="x/hyperlink" Target="https://a.example" TargetMode="External"/></R>`,
			"one.xml", `<worksheet xmlns:r="`+officeNS+`"><cols>`+cells+`</cols><sheetData><row><c><v>1</v></c></row></sheetData><hyperlinks>`+links+`</hyperlinks></worksheet>`), "1 (https://a.example)", 1},
		{"fields in each other", "x.docx", word(p(strings.Repeat(`<w:r><w:fldChar w:fldCharType="begin"/></w:r>`, many) + r("word"))), "word", 1},
	} {
		if got := read(tc.file, tc.data); strings.Count(got, tc.word) != tc.want {
			t.Errorf("%s: %d times, want %d, in %.300q", tc.name, strings.Count(got, tc.word), tc.want, got)
		}
	}
}

// An archive with a password has it on its files, whose names can be read.
func TestAFileWithAPasswordIsRefused(t *testing.T) {
	data := word(p(r("a")))
	marked := bytes.ReplaceAll(data, []byte("PK\x01\x02\x14\x00\x14\x00\x08"), []byte("PK\x01\x02\x14\x00\x14\x00\x09"))
	if z, err := zip.NewReader(bytes.NewReader(marked), int64(len(marked))); err != nil || z.File[0].Flags&1 == 0 {
		t.Fatalf("the archive is not marked: %v", err)
	}
	if got := read("x.docx", marked); !strings.Contains(got, "protected with a password") {
		t.Errorf("got %q", got)
	}
}

// Whatever is missing of a file, what is left of it is read or refused, and nothing breaks.
func TestDamagedDocumentsAreRefused(t *testing.T) {
	files, err := filepath.Glob("testdata/files/*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for cut := 1; cut < 20; cut++ {
			read(file, data[:len(data)*cut/20])
			broken := bytes.Clone(data)
			for at := cut; at < len(broken); at += 997 {
				broken[at] ^= 0x55
			}
			read(file, broken)
		}
	}
	if got := read("x.docx", word(p(r("a")))[:200]); !strings.Contains(got, "! is damaged or incomplete") {
		t.Errorf("got %q", got)
	}
}

// stopped is a sink that ends the reading.
type stopped struct{ blocks int }

// Begin wants everything.
func (s *stopped) Begin(office.Part) bool { return true }

// Add ends with the third block.
func (s *stopped) Add(office.Block) error {
	if s.blocks++; s.blocks == 3 {
		return errEnough
	}
	return nil
}

const errEnough = office.Refusal("enough")

func TestASinkEndsTheReading(t *testing.T) {
	for _, data := range [][]byte{word(strings.Repeat(p(r("a")), 9)), book(strings.Repeat("<row><c><v>1</v></c></row>", 9)), []byte("a\nb\nc\nd\ne")} {
		var s stopped
		if _, err := office.Read(bytes.NewReader(data), int64(len(data)), "x", &s); !errors.Is(err, errEnough) || s.blocks != 3 {
			t.Errorf("%d blocks, %v", s.blocks, err)
		}
	}
}

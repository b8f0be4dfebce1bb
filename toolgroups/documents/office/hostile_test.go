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
		{"a cell without end", []byte(`"` + strings.Repeat("x\n", 5<<20)), "an element of more than the limit"},
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

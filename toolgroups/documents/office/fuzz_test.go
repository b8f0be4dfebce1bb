package office_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// fuzz reads documents that are made of what the fuzzer finds: whatever it is, the blocks are
// text, in their order, and none is longer than its limit.
func fuzz(f *testing.F, name string, document func(string) []byte, seeds ...string) {
	f.Helper()
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, inner string) {
		got := read(name, document(inner))
		if !utf8.ValidString(got) {
			t.Errorf("got %q", got)
		}
	})
}

func FuzzWord(f *testing.F) {
	fuzz(f, "x.docx", func(body string) []byte {
		return word(body, "word/_rels/document.xml.rels", relationsTo("a", "styles", "document.xml", "b", "numbering", "document.xml", "c", "footnotes", "document.xml", "h", "aFChunk", "document.xml", "x", "chart", "document.xml"))
	}, p(r("a")), p(run(`<w:vertAlign w:val="superscript"/><w:strike/>`, "6")+omml(`<m:f><m:num>`+mt("a")+`</m:num><m:den><m:m><m:mr><m:e/></m:mr></m:m></m:den></m:f><m:nary/><m:acc/>`))+`<w:altChunk r:id="h"/>`,
		p(`<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox/></w:ffData></w:fldChar><w:instrText>EQ x</w:instrText><w:fldChar w:fldCharType="end"/><w:sym w:font="Symbol" w:char="F061"/><w:drawing><c:chart r:id="x"/></w:drawing></w:r>`), `<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/><w:vMerge/></w:tcPr><w:p/></w:tc></w:tr></w:tbl>`,
		`<w:p><w:pPr><w:pStyle w:val="Heading1"/><w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr></w:pPr><w:hyperlink r:id="a"><w:r><w:br w:type="page"/><w:t>x</w:t></w:r></w:hyperlink></w:p>`,
		`<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="lowerRoman"/><w:lvlText w:val="%1"/></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num>`)
}

func FuzzBook(f *testing.F) {
	fuzz(f, "x.xlsx", func(rows string) []byte {
		return book(rows, "xl/texts.xml", "<sst>"+rows+"</sst>", "xl/styles.xml", "<styleSheet>"+rows+"</styleSheet>")
	}, `<row hidden="1"><c t="str"><f>_xlfn.A(_xlpm.x)</f><v>_x000D_</v></c></row><fonts><font><strike/></font></fonts><cellXfs><xf fontId="0"/></cellXfs>`,
		`<row r="1"><c r="A1" t="s" s="1"><f>A2+$B$1</f><v>1</v></c><c r="XFD1"><v>46000.5</v></c></row>`,
		`<si><r><t>x</t></r></si><numFmts><numFmt numFmtId="200" formatCode="[h]:mm;@"/></numFmts><cellXfs><xf numFmtId="200"/></cellXfs>`)
}

func FuzzSlides(f *testing.F) {
	fuzz(f, "x.pptx", func(shapes string) []byte {
		return slides(shapes, "ppt/slides/_rels/one.xml.rels", relationsTo("c", "chart", "one.xml", "n", "notesSlide", "one.xml"))
	}, box(`<a:lstStyle><a:lvl2pPr><a:buAutoNum type="alphaLcPeriod" startAt="4"/></a:lvl2pPr></a:lstStyle><a:p><a:pPr lvl="1"/>`+drawn(`baseline="30000" strike="sngStrike"`, "x")+omml(mt("y"))+`</a:p>`),
		`<p:sp><p:nvPr><p:ph type="title"/></p:nvPr><a:p><a:pPr lvl="2"><a:buChar/></a:pPr><a:r><a:t>x</a:t></a:r></a:p></p:sp>`,
		`<a:tbl><a:tr><a:tc><a:p><a:r><a:t>x</a:t></a:r></a:p></a:tc></a:tr></a:tbl><c:chart r:id="c"/><c:ser><c:val><c:v>1</c:v></c:val></c:ser>`)
}

func FuzzOpenDocument(f *testing.F) {
	for _, kind := range []string{"text", "spreadsheet", "presentation"} {
		f.Add(kind, `<o:h o:outline-level="2">x</o:h><o:list><o:list-item><o:p>a<o:s o:c="3"/>b</o:p></o:list-item></o:list><o:p><o:note><o:p>n</o:p></o:note></o:p>`)
		f.Add(kind, `<o:table o:name="T"><o:table-row o:number-rows-repeated="9"><o:table-cell o:formula="of:=[.A1]" o:value-type="float" o:value="1" o:number-columns-repeated="99999"><o:p>1</o:p></o:table-cell></o:table-row></o:table>`)
		f.Add(kind, `<o:list o:id="a"><o:list-item o:start-value="3"><o:h>x</o:h><o:list/></o:list-item></o:list><o:p><o:frame><o:object><math><msubsup><mi>x</mi></msubsup></math></o:object><o:desc>y</o:desc></o:frame></o:p><o:section o:display="none"><o:p>z</o:p></o:section>`)
		f.Add(kind, `<o:page><o:frame o:class="title"><o:p>x</o:p></o:frame><o:notes><o:p>n</o:p></o:notes></o:page>`)
	}
	f.Fuzz(func(t *testing.T, kind, body string) {
		if got := read("x.odt", open(kind, body)); !utf8.ValidString(got) {
			t.Errorf("got %q", got)
		}
	})
}

func FuzzEPUB(f *testing.F) {
	fuzz(f, "x.epub", epub, "<h1>x</h1><p>a<ul><li>b</ul><pre>\n\n```</pre><table><tr><td>1<td>2</table>")
}

func FuzzRTF(f *testing.F) {
	fuzz(f, "x.rtf", func(inner string) []byte { return []byte(`{\rtf1` + inner) },
		`\ansicpg932{\fonttbl{\f1\fcharset204 x;}}\f1\'cf\u-10179?\u-8704?\trowd\intbl a\cell\row\page{\footnote x}\bin3 abc}`,
		`{\*\moMath{\mf{\mnum{\mr a}}{\mden 2}}}{\super 6}{\v x}{\shptxt\par y}{\object{\*\objclass Equation}}\trowd\cellx9\cellx5\intbl a\cell b\cell\row`,
		`{\stylesheet{\s1 heading 1;}}\s1 a\par{\field{\*\fldinst HYPERLINK "x"}{\fldrslt y}}{\listtext 1.\tab}z\par}`)
}

func FuzzMail(f *testing.F) {
	fuzz(f, "x.eml", func(inner string) []byte {
		return []byte("From: a@b.c\nSubject: x\nDate: now\nContent-Type: multipart/mixed; boundary=b\n\n--b\n" + inner)
	},
		"Content-Type: text/html; charset=x\nContent-Transfer-Encoding: base64\n\nPGI+eDwvYj4=\n--b\nContent-Type: message/rfc822\n\nFrom: a\nTo: b\nSubject: =?x?B?/w==?=\n\ny\n--b--",
		"Content-Type: multipart/alternative; boundary=c\n\n--c\n\nplain\n--c\nContent-Type: text/html\nContent-Disposition: attachment; filename=a.csv\n\na;b\n--c--\n--b--")
}

func FuzzText(f *testing.F) {
	for _, name := range []string{"x.csv", "x.tsv", "x.html", "x.txt"} {
		f.Add(name, "a;b\n\"c\n;d\"\n\xff\xfe<p>")
	}
	f.Fuzz(func(t *testing.T, name, data string) {
		if got := read(name, []byte(data)); !utf8.ValidString(got) {
			t.Errorf("got %q", got)
		}
	})
}

// FuzzFile begins with whole files of other programs.
func FuzzFile(f *testing.F) {
	files, err := filepath.Glob("testdata/files/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 10_000 && !strings.HasSuffix(file, ".md") {
			f.Add(filepath.Base(file), data)
		}
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if got := read(name, data); !utf8.ValidString(got) {
			t.Errorf("got %q", got)
		}
	})
}

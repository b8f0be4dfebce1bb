package office_test

import (
	"strings"
	"testing"
)

// A comment on a cell is its text alone, at its cell, be that empty or left out of the file.
func TestACommentOnACellIsItsTextAlone(t *testing.T) {
	comments := `<comments xmlns:mc="mc"><authors><author>Ann</author></authors><commentList>` +
		`<comment ref="A1" authorId="0"><text><r><t>hello </t></r><r><t>there</t></r></text><mc:AlternateContent><mc:Choice Requires="v2"><commentPr><anchor><from><col>0</col><row>790</row></from><to><col>2264</col><row>41</row></to></anchor></commentPr></mc:Choice></mc:AlternateContent></comment>` +
		`<comment ref="C1"><text><t>on nothing</t></text></comment><comment ref="B3"><text><t>on no row_x000D_</t></text></comment><comment ref="A9"><text><t>behind</t></text></comment></commentList></comments>`
	of := func(more ...string) []byte {
		return book(`<row r="1"><c r="A1"><v>10</v></c></row><row r="4"><c r="A4"><v>4</v></c></row>`, append([]string{"xl/worksheets/_rels/one.xml.rels", relationsTo("c", "comments", "../comments1.xml", "t", "threadedComment", "../threads.xml"), "xl/comments1.xml", comments}, more...)...)
	}
	checkContents(t, []documentCase{
		{"Excel", "x.xlsx", of(), "1: | 10 [comment: hello there] |  | [comment: on nothing] |\n3: |  | [comment: on no row] |\n4: | 4 |\n9: | [comment: behind] |\n"},
		{
			"a thread, which the other comment only repeats", "x.xlsx",
			of("xl/threads.xml", `<ThreadedComments><threadedComment ref="A1" personId="{1}"><text>is it ten?</text></threadedComment><threadedComment ref="A1" personId="{2}"><text>yes</text></threadedComment></ThreadedComments>`),
			"1: | 10 [comment: is it ten?; comment: yes] |  | [comment: on nothing] |\n3: |  | [comment: on no row] |\n4: | 4 |\n9: | [comment: behind] |\n",
		},
		{
			"OpenDocument", "x.ods", styled("spreadsheet", "", `<o:table><o:table-row><o:table-cell o:value-type="float" o:value="10"><o:annotation><o:creator>Ann</o:creator><o:date>2026-03-01</o:date><o:p>hello</o:p><o:p>there</o:p></o:annotation><o:p>10</o:p></o:table-cell><o:table-cell><o:annotation><o:p>on nothing</o:p></o:annotation></o:table-cell></o:table-row></o:table>`),
			"1: | 10 [comment of Ann: hello there] | [comment: on nothing] |\n",
		},
	})
}

// A note follows the paragraph or the table that refers to it: whoever reads a part of a document has both.
func TestANoteFollowsWhatRefersToIt(t *testing.T) {
	related := []string{
		"word/_rels/document.xml.rels", relationsTo("a", "footnotes", "notes.xml", "b", "comments", "comments.xml"),
		"word/_rels/notes.xml.rels", `<Relationships><Relationship Id="l" Type="x/hyperlink" Target="https://a.example/n" TargetMode="External"/></Relationships>`,
		"word/notes.xml", `<w:footnotes xmlns:w="w" xmlns:r="r"><w:footnote w:id="1">` + p(`<w:hyperlink r:id="l">`+r("first")+`</w:hyperlink>`) + `</w:footnote><w:footnote w:id="2">` + p(r("second")+`<w:r><w:commentReference w:id="7"/></w:r>`) + `</w:footnote></w:footnotes>`,
		"word/comments.xml", `<w:comments xmlns:w="w"><w:comment w:id="7" w:author="Ann">` + p(r("really?")) + `</w:comment></w:comments>`,
	}
	mark := func(kind, id string) string { return `<w:r><w:` + kind + `Reference w:id="` + id + `"/></w:r>` }
	odfNote := `<o:note><o:note-citation>1</o:note-citation><o:note-body><o:p>first</o:p></o:note-body></o:note>`
	checkContents(t, []documentCase{
		{
			"Word", "x.docx",
			word(p(r("one")+mark("footnote", "1"))+p(r("two"))+p(`<w:r><w:br w:type="page"/></w:r>`+r("three")+mark("comment", "7")+mark("footnote", "2")), related...),
			"1: one[^1]\n[^1]: first (https://a.example/n)\n\n2: two\n=== 2 \n\n1: three[^2][^3]\n[^2]: comment of Ann: really?\n[^3]: second [comment of Ann: really?]\n",
		},
		{
			"Word: a heading and a table", "x.docx",
			word(p(`<w:pPr><w:outlineLvl w:val="0"/></w:pPr>`+r("Top")+mark("footnote", "1"))+`<w:tbl><w:tr><w:tc>`+p(r("a")+mark("comment", "7"))+`</w:tc><w:tc>`+p(r("b"))+`</w:tc></w:tr><w:tr><w:tc>`+p(r("c"))+`</w:tc><w:tc>`+p(r("d"))+`</w:tc></w:tr></w:tbl>`+p(r("e")), related...),
			"1: # Top[^1]\n\n2: [^1]: first (https://a.example/n)\n\n3: | a[^2] | b |\n|---|---|\n4: | c | d |\n\n5: [^2]: comment of Ann: really?\n\n6: e\n",
		},
		{"OpenDocument", "x.odt", styled("text", "", `<o:p>one`+odfNote+`</o:p><o:list><o:list-item><o:p>two`+odfNote+`</o:p></o:list-item></o:list><o:p>three</o:p>`), "1: one[^1]\n[^1]: first\n\n2: - two[^2]\n  [^2]: first\n\n3: three\n"},
		{"RTF", "x.rtf", []byte(`{\rtf1\trowd\cellx100\cellx200\pard\intbl a{\super\chftn{\footnote\pard first}}\cell b\cell\row\pard one{\footnote second}\par two{\*\atnid A}{\*\atnauthor Ann}\chatn{\*\annotation{\*\atnref 1}really?}\par}`), "1: | a[^1] | b |\n|---|---|\n\n2: [^1]: first\n\n3: one[^2]\n[^2]: second\n\n4: two[^3]\n[^3]: comment of Ann: really?\n"},
		{
			"PowerPoint", "x.pptx", slides(box(`<a:p>`+drawn("", "a")+`</a:p>`), "ppt/slides/_rels/one.xml.rels", relationsTo("c", "comments", "../comments/c.xml"),
				"ppt/_rels/presentation.xml.rels", relationsTo("s", "slide", "slides/one.xml", "a", "authors", "authors.xml"), "ppt/authors.xml", `<authorLst><author id="{1}" name="Ann"/></authorLst>`,
				"ppt/comments/c.xml", `<cmLst><cm authorId="{1}"><replyLst><reply authorId="{2}"><txBody><a:p xmlns:a="a"><a:r><a:t>yes</a:t></a:r></a:p></txBody></reply></replyLst><txBody><a:p xmlns:a="a"><a:r><a:t>really?</a:t></a:r></a:p></txBody></cm><cm authorId="{1}"><text>old</text></cm></cmLst>`),
			"1: a\n\n2: comment of Ann: really?\n\n3: comment: yes\n\n4: comment of Ann: old\n",
		},
		{"OpenDocument slides", "x.odp", styled("presentation", "", `<o:page><o:annotation><o:creator>Ann</o:creator><o:p>really?</o:p></o:annotation></o:page>`), "1: comment of Ann: really?\n"},
	})
	// Notes without end are written between the rows of their table.
	cell := `<o:table-row><o:table-cell><o:p>x<o:note><o:note-body><o:p>` + strings.Repeat("y", 1<<20) + `</o:p></o:note-body></o:note></o:p></o:table-cell><o:table-cell><o:p>z</o:p></o:table-cell></o:table-row>`
	got := read("x.odt", styled("text", "", `<o:table>`+strings.Repeat(cell, 12)+`</o:table>`))
	if n := strings.Count(got, "y"); n != 12<<20 || strings.Contains(got, "! ") {
		t.Errorf("%d characters of notes, the end is %q", n, got[max(0, len(got)-100):])
	}
}

// The target of a link stands behind its words.
func TestTheTargetsOfLinksAreShown(t *testing.T) {
	link := func(id, target string) string {
		return `<Relationships><Relationship Id="` + id + `" Type="x/hyperlink" Target="` + target + `" TargetMode="External"/></Relationships>`
	}
	field := func(instruction, result string) string {
		return `<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>` + instruction + `</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>` + result + `<w:r><w:fldChar w:fldCharType="end"/></w:r>`
	}
	linked := func(text string) string {
		return `<a:r><a:rPr><a:hlinkClick r:id="l"/></a:rPr><a:t>` + text + `</a:t></a:r>`
	}
	checkContents(t, []documentCase{
		{
			"Excel", "x.xlsx", archive(
				"_rels/.rels", relationsTo("r", "officeDocument", "xl/workbook.xml"),
				"xl/workbook.xml", `<workbook xmlns:r="`+officeNS+`"><sheets><sheet name="One" r:id="s"/></sheets></workbook>`,
				"xl/_rels/workbook.xml.rels", relationsTo("s", "worksheet", "worksheets/one.xml"),
				"xl/worksheets/_rels/one.xml.rels", link("l", "https://a.example/x"),
				"xl/worksheets/one.xml", `<worksheet xmlns:r="`+officeNS+`"><sheetData><row><c r="A1" t="str"><v>page</v></c><c r="B1" t="str"><v>https://a.example/x</v></c><c r="C1"><v>3</v></c></row></sheetData><hyperlinks><hyperlink ref="A1:A2" r:id="l" location="part"/><hyperlink ref="B1" r:id="l"/><hyperlink ref="C1" location="One!A1"/></hyperlinks></worksheet>`),
			"1: | page (https://a.example/x#part) | https://a.example/x | 3 |\n",
		},
		{"PowerPoint", "x.pptx", slides(box(`<a:p>`+drawn("", "see ")+linked("the ")+linked("page")+drawn("", ".")+`</a:p>`), "ppt/slides/_rels/one.xml.rels", link("l", "https://a.example/x")), "1: see the page (https://a.example/x).\n"},
		{"PowerPoint: a shape", "x.pptx", slides(`<p:sp><p:nvSpPr><p:cNvPr><a:hlinkClick r:id="l"/></p:cNvPr></p:nvSpPr><p:txBody><a:p>`+drawn("", "go")+`</a:p></p:txBody></p:sp>`, "ppt/slides/_rels/one.xml.rels", link("l", "https://a.example/x")), "1: go (https://a.example/x)\n"},
		{"PowerPoint: a shape and its text", "x.pptx", slides(`<p:sp><p:nvSpPr><p:cNvPr><a:hlinkClick r:id="l"/></p:cNvPr></p:nvSpPr><p:txBody><a:p>`+linked("go")+`</a:p></p:txBody></p:sp>`, "ppt/slides/_rels/one.xml.rels", link("l", "https://a.example/x")), "1: go (https://a.example/x)\n"},
		{"Word: a field", "x.docx", word(p(r("see ") + field(` HYPERLINK "https://a.example/x" `, r("the ")+r("page")) + r("."))), "1: see the page (https://a.example/x).\n"},
		{"Word: a simple field", "x.docx", word(p(`<w:fldSimple w:instr='HYPERLINK "https://a.example/x"'>` + r("page") + `</w:fldSimple>`)), "1: page (https://a.example/x)\n"},
		{"Word: in several runs", "x.docx", word(p(`<w:hyperlink r:id="l">`+r("the ")+r("page")+`</w:hyperlink>`), "word/_rels/document.xml.rels", link("l", "https://a.example/x")), "1: the page (https://a.example/x)\n"},
		{"OpenDocument", "x.ods", styled("spreadsheet", "", `<o:table><o:table-row><o:table-cell><o:p><o:a x:href="https://a.example/x">page</o:a></o:p></o:table-cell></o:table-row></o:table>`), "1: | page (https://a.example/x) |\n"},
		{"OpenDocument slides: a picture, and no page numbers", "x.odp", styled("presentation", "", `<o:page><o:a x:href="https://a.example/x"><o:frame><o:image/></o:frame></o:a><o:frame o:class="page-number"><o:text-box><o:p>7</o:p></o:text-box></o:frame></o:page>`), "1: [picture]\n2: (https://a.example/x)\n"},
		{"OpenDocument slides", "x.odp", styled("presentation", "", `<o:page><o:frame><o:text-box><o:p><o:a x:href="mailto:ann@a.example">ann@a.example</o:a></o:p></o:text-box></o:frame></o:page>`), "1: ann@a.example\n"},
	})
}

// What a document contains is read, or it is said that it is not.
func TestWhatADocumentContainsIsReadOrNamed(t *testing.T) {
	sym := func(font, char string) string {
		return `<w:r><w:sym w:font="` + font + `" w:char="` + char + `"/></w:r>`
	}
	chunk := func(name, data string) []byte {
		return word(p(r("before"))+`<w:altChunk r:id="h"/>`+p(r("after")), "word/_rels/document.xml.rels", relationsTo("h", "aFChunk", name), "word/"+name, data)
	}
	checked := func(kind, value string) string {
		return `<w:r><w:fldChar w:fldCharType="begin"><w:ffData>` + kind + `</w:ffData></w:fldChar></w:r><w:r><w:instrText> FORMX </w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>` + r(value)
	}
	chart := `<c:chartSpace xmlns:c="c" xmlns:a="a"><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Ships</a:t></a:r><a:r><a:t> by year</a:t></a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser><c:tx><c:strRef><c:strCache><c:pt idx="0"><c:v>North_x000D_</c:v></c:pt></c:strCache></c:strRef></c:tx>` +
		`<c:cat><c:pt idx="0"><c:v>Jan</c:v></c:pt><c:pt idx="1"><c:v>Feb</c:v></c:pt><c:pt idx="2"><c:v>Mar</c:v></c:pt></c:cat><c:val><c:pt idx="0"><c:v>3</c:v></c:pt><c:pt idx="2"><c:v>5</c:v></c:pt></c:val></c:ser></c:barChart><c:catAx><c:title><c:tx><c:rich><a:p><a:r><a:t>Month</a:t></a:r></a:p></c:rich></c:tx></c:title></c:catAx></c:plotArea></c:chart></c:chartSpace>`
	const chartText = `[chart "Ships by year", axes "Month": North: Jan 3, Mar 5]`
	mht := "MIME-Version: 1.0\r\nContent-Type: multipart/related;\r\n    type=\"text/html\";\r\n    boundary=\"----=x\"\r\n\r\n\r\n------=x\r\nContent-Type: text/html;\r\n    charset=\"utf-8\"\r\nContent-Transfer-Encoding: quoted-printable\r\nContent-Location: file:///C:/fake/document.html\r\n\r\n<html><body><h1>T=C3=B6p</h1><p>a=\r\n b</p></body></html>\r\n\r\n------=x--\r\n"
	cases := []documentCase{
		{"check boxes and signs", "x.docx", word(p(sym("Wingdings", "F0FE") + r(" a ") + sym("Wingdings", "F0A8") + r(" b ") + sym("Wingdings 2", "F052") + r(" ") + sym("Symbol", "F061") + r(" ") + sym("Symbol", "00A3") + r(" ") + sym("Wingdings", "F024") + r(" ") + sym("MS Gothic", "2612") + r(" ") + sym("Own", "F041"))), "1: ☑ a ☐ b ☑ α ≤ [symbol] ☒ [symbol]\n"},
		{"text in a font of signs", "x.docx", word(p(run(`<w:rFonts w:ascii="Symbol" w:hAnsi="Symbol"/>`, "a £ b") + run(`<w:rFonts w:ascii="Wingdings"/>`, "\uf0fc"))), "1: α ≤ β✓\n"},
		{"signs of RTF", "x.rtf", []byte(`{\rtf1{\fonttbl{\f0 Arial;}{\f1\fcharset2 Symbol;}{\f2\fcharset2 Wingdings;}}\f0 a {\f1 a \'a3 \u-3999?} {\f2\'fe} {\listtext\f1\'b7\tab}\par}`), "1: - a α ≤ α ☑\n"},
		{"signs of PowerPoint", "x.pptx", slides(box(`<a:p><a:r><a:rPr><a:latin typeface="Wingdings"/></a:rPr><a:t>` + "\u00fe" + `</a:t></a:r>` + drawn("", " a_x000B_b") + `</a:p>`)), "1: ☑ a\nb\n"},
		{"form fields of Word", "x.docx", word(p(checked(`<w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox>`, " a ") + checked(`<w:checkBox><w:default w:val="0"/></w:checkBox>`, " b ") + checked(`<w:ddList><w:result w:val="1"/><w:listEntry w:val="x"/><w:listEntry w:val="y"/></w:ddList>`, " c"))), "1: ☒ a ☐ b y c\n"},
		{"form fields of RTF", "x.rtf", []byte(`{\rtf1{\field{\*\fldinst FORMCHECKBOX {\*\formfield{\fftype1\ffres25{\*\ffname a}\ffdefres1}}}{\fldrslt}} a {\field{\*\fldinst FORMCHECKBOX {\*\formfield{\fftype1\ffres0\ffdefres1}}}{\fldrslt}} b {\field{\*\fldinst FORMDROPDOWN {\*\formfield{\fftype2\ffres1\ffhaslistbox{\*\ffl x}{\*\ffl y}}}}{\fldrslt}}\par}`), "1: ☒ a ☐ b y\n"},
		{"characters by their numbers", "x.xlsx", book(`<row><c t="s"><v>0</v></c><c t="inlineStr"><is><t>a_x000D_`+"\n"+`b</t></is></c><c t="str"><v>c_x0041_</v></c><c t="inlineStr"><is><t>_x005F_x000D_ _xyz_</t></is></c></row>`, "xl/texts.xml", `<sst><si><t>x_x000D_y</t></si></sst>`), "1: | x<br>y | a<br>b | cA | _x000D_ _xyz_ |\n"},
		{"names of newer functions", "x.xlsx", book(`<row><c><f>_xlfn.XLOOKUP(A1,B1:B2,_xlfn._xlws.FILTER(C1:C2,_xlfn.LAMBDA(_xlpm.x,_xlpm.x)))</f><v>3</v></c></row>`), "1: | 3 (=XLOOKUP(A1,B1:B2,FILTER(C1:C2,LAMBDA(x,x)))) |\n"},
		{"names of newer functions in OpenDocument", "x.ods", styled("spreadsheet", "", `<o:table><o:table-row><o:table-cell o:formula="of:=COM.MICROSOFT.XLOOKUP([.A1];[.B1:.B2])" o:value-type="float" o:value="3"/></o:table-row></o:table>`), "1: | 3 (=XLOOKUP(A1;B1:B2)) |\n"},
		{"a page in a document", "x.docx", chunk("c.html", "<html><body><h1>Top</h1><p>a</p></body></html>"), "1: before\n\n2: # Top\n\n3: a\n\n4: after\n"},
		{"a web archive in a document", "x.docx", chunk("afchunk.mht", mht), "1: before\n\n2: # Töp\n\n3: a b\n\n4: after\n"},
		{"a document in a document", "x.docx", chunk("c.docx", string(word(p(r("in"))+`<w:altChunk r:id="h"/>`, "word/_rels/document.xml.rels", relationsTo("h", "aFChunk", "c.html"), "word/c.html", "<p>x"))), "1: before\n\n2: in\n\n3: [A part of this document, c.html, is a part of another such part.]\n\n4: after\n"},
		{"RTF in a document", "x.docx", chunk("c.rtf", `{\rtf1 in\par}`), "1: before\n\n2: in\n\n3: after\n"},
		{"a part that cannot be read", "x.docx", chunk("c.bin", "\x00\x01\x02"), "1: before\n\n2: [A part of this document, c.bin, is no document that can be read: it is in a binary format. DOCX, XLSX, PPTX, ODT, ODS, EPUB, RTF, CSV, HTML and text are read.]\n\n3: after\n"},
		{"a part that is missing", "x.docx", word(`<w:altChunk r:id="h"/>`), "1: [A part of this document is damaged or incomplete (\"\" is missing). Ask for it once more.]\n"},
		{"a hidden slide", "x.odp", styled("presentation", `<o:style o:name="h" o:family="drawing-page"><o:drawing-page-properties o:visibility="hidden"/></o:style>`, `<o:page o:name="a"><o:frame><o:p>x</o:p></o:frame></o:page><o:page o:name="b" o:style-name="h"/>`), "1: x\n=== 2 b (hidden)\n"},
		{"a chart on a slide", "x.pptx", slides(`<c:chart xmlns:c="c" r:id="c"/>`, "ppt/slides/_rels/one.xml.rels", relationsTo("c", "chart", "../charts/c.xml"), "ppt/charts/c.xml", chart), "1: " + chartText + "\n"},
		{"a chart in a text", "x.docx", word(p(r("a ")+`<w:r><w:drawing><c:chart xmlns:c="c" r:id="c"/></w:drawing></w:r>`), "word/_rels/document.xml.rels", relationsTo("c", "chart", "charts/c.xml"), "word/charts/c.xml", chart), "1: a " + chartText + "\n"},
		{
			"what is drawn on a sheet", "x.xlsx",
			book(`<row><c><v>1</v></c></row>`, "xl/worksheets/_rels/one.xml.rels", relationsTo("d", "drawing", "../drawings/d.xml"), "xl/drawings/_rels/d.xml.rels", relationsTo("c", "chart", "../charts/c.xml"), "xl/charts/c.xml", chart,
				"xl/drawings/d.xml", `<xdr:wsDr xmlns:xdr="x" xmlns:a="a" xmlns:r="`+officeNS+`"><xdr:twoCellAnchor><xdr:from><xdr:col>2</xdr:col><xdr:row>4</xdr:row></xdr:from><xdr:sp><xdr:nvSpPr><xdr:cNvPr/></xdr:nvSpPr><xdr:txBody><a:p><a:r><a:t>note</a:t></a:r></a:p></xdr:txBody></xdr:sp></xdr:twoCellAnchor>`+
					`<xdr:twoCellAnchor><xdr:from><xdr:col>0</xdr:col><xdr:row>9</xdr:row></xdr:from><c:chart xmlns:c="c" r:id="c"/></xdr:twoCellAnchor><xdr:pic><xdr:cNvPr descr="a crane"/><a:blip/></xdr:pic></xdr:wsDr>`),
			"1: | 1 |\n\n2: At C5: note\n\n3: At A10: " + chartText + "\n\n4: At A10: [picture: a crane]\n",
		},
		{
			"a chart of OpenDocument", "x.odt", styled("text", "", `<o:p>a <o:frame><o:object x:href="./Object 1"/></o:frame></o:p>`, "Object 1/content.xml",
				`<o:document-content xmlns:o="o"><o:body><o:chart><o:chart><o:title><o:p>Ships</o:p></o:title><o:plot-area><o:axis><o:title><o:p>Month</o:p></o:title></o:axis></o:plot-area><o:table><o:table-header-rows><o:table-row><o:table-cell><o:p/></o:table-cell><o:table-cell><o:p>North</o:p></o:table-cell></o:table-row></o:table-header-rows>`+
					`<o:table-rows><o:table-row><o:table-cell><o:p>Jan</o:p></o:table-cell><o:table-cell o:value-type="float" o:value="3"><o:p>3</o:p></o:table-cell></o:table-row></o:table-rows></o:table></o:chart></o:chart></o:body></o:document-content>`),
			"1: a [chart \"Ships\", axes \"Month\": North: Jan 3]\n",
		},
		{
			"a chart of OpenDocument without names", "x.ods", styled("spreadsheet", "", `<o:table><o:shapes><o:frame><o:object x:href="./Object 1"/></o:frame></o:shapes><o:table-row><o:table-cell><o:p>a</o:p></o:table-cell></o:table-row></o:table>`, "Object 1/content.xml",
				`<o:document-content xmlns:o="o"><o:body><o:chart><o:chart><o:table><o:table-row><o:table-cell/></o:table-row><o:table-row><o:table-cell/><o:table-cell o:value-type="float" o:value="10"/></o:table-row></o:table></o:chart></o:chart></o:body></o:document-content>`),
			"1: | a |\n\n2: [chart: 10]\n",
		},
		{"pictures", "x.docx", word(p(`<w:r><w:drawing><wp:docPr xmlns:wp="wp" descr="a crane"/><pic:pic xmlns:pic="pic"/></w:drawing></w:r>` + `<w:r><w:drawing><wp:docPr xmlns:wp="wp"/><pic:pic xmlns:pic="pic"/></w:drawing></w:r>`)), "1: [picture: a crane][picture]\n"},
		{"pictures of OpenDocument", "x.odt", styled("text", "", `<o:p><o:frame><o:image/><o:title>T</o:title><o:desc>a crane</o:desc></o:frame><o:frame><o:image/></o:frame></o:p>`), "1: [picture: T: a crane][picture]\n"},
		{"an object of another program", "x.docx", word(p(`<w:r><w:object><o:OLEObject xmlns:o="o" ProgID="Excel.Sheet.12"/></w:object></w:r>`)), "1: [embedded object: Excel.Sheet.12]\n"},
		{"a text box of RTF", "x.rtf", []byte(`{\rtf1 before{\shp{\*\shpinst{\sp{\sn shapeType}{\sv 202}}{\shptxt\pard box one\par box two\par}}{\shprslt{\*\do\dptxbx{\dptxbxtext\pard box one\par}}}} after\par next\par}`), "1: before after\nbox one\nbox two\n\n2: next\n"},
		{"a text box of Word", "x.docx", word(p(r("before ") + `<w:txbxContent>` + p(r("box one")) + p(r("box two")) + `</w:txbxContent>` + r("after"))), "1: before after\nbox one\nbox two\n"},
		{"a text box of OpenDocument", "x.odt", styled("text", "", `<o:p>before <o:frame><o:text-box><o:p>box one</o:p><o:list><o:list-item><o:p>box two</o:p></o:list-item></o:list></o:text-box></o:frame>after</o:p>`), "1: before after\nbox one\n- box two\n"},
		{"a text box of an older RTF", "x.rtf", []byte(`{\rtf1{\*\do\dobxcolumn{\dptxbx{\dptxbxtext\pard box\par}}}a\par}`), "1: a\nbox\n"},
	}
	checkContents(t, cases)
}

// A table has as many columns as its widest row, also if a merged cell is all of the first one.
func TestATableBeginsWithAMergedCell(t *testing.T) {
	tc := func(format, text string) string {
		return `<w:tc><w:tcPr>` + format + `</w:tcPr>` + p(r(text)) + `</w:tc>`
	}
	const want = "1: | Title |  |  |\n|---|---|---|\n2: | a | b | c |\n3: | ab |  | c |\n"
	row := func(edges, cells string) string { return `\trowd` + edges + `\pard\intbl ` + cells + `\row` }
	long := strings.Repeat(row(`\cellx100\cellx200`, `a\cell b\cell`), 700)
	checkContents(t, []documentCase{
		{"RTF", "x.rtf", []byte(`{\rtf1` + row(`\cellx813`, `Title\cell`) + row(`\cellx271\cellx527\cellx813`, `a\cell b\cell c\cell`) + row(`\cellx520\cellx813`, `ab\cell c\cell`) + `}`), want},
		{"Word", "x.docx", word(`<w:tbl><w:tr>` + tc("", "Title") + `</w:tr><w:tr>` + tc("", "a") + tc("", "b") + tc("", "c") + `</w:tr><w:tr>` + tc(`<w:gridSpan w:val="2"/>`, "ab") + tc("", "c") + `</w:tr></w:tbl>`), want},
		{"Word: a row that begins later", "x.docx", word(`<w:tbl><w:tr>` + tc("", "a") + tc("", "b") + `</w:tr><w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>` + tc("", "c") + `</w:tr><w:tr><w:trPr><w:hidden/></w:trPr>` + tc("", "d") + tc("", "e") + `</w:tr><w:tr><w:trPr><w:del/></w:trPr>` + tc("", "f") + `</w:tr></w:tbl>`), "1: | a | b |\n|---|---|\n2: |  | c |\n3: | [hidden row] d | e |\n"},
		{"a single column", "x.rtf", []byte(`{\rtf1` + row(`\cellx813`, `a\cell`) + row(`\cellx813`, `b\cell`) + `\pard c\par}`), "1: a\n\n2: b\n\n3: c\n"},
		{"two tables", "x.rtf", []byte(`{\rtf1` + row(`\cellx1\cellx200`, `a\cell b\cell`) + `\pard c\par` + row(`\cellx100\cellx300`, `d\cell e\cell`) + `}`), "1: | a | b |\n|---|---|\n\n2: c\n\n3: | d | e |\n|---|---|\n"},
		{"a row of more or fewer cells than edges", "x.rtf", []byte(`{\rtf1` + row(`\cellx300`, `Title\cell`) + row(`\cellx100\cellx200\cellx300`, `a\cell b\cell c\cell\cell\cell`) + row(`\cellx100\cellx200\cellx300`, `d\cell`) + `}`), "1: | Title |  |  |\n|---|---|---|\n2: | a | b | c |\n3: | d |  |  |\n"},
		{"a table in a cell", "x.rtf", []byte(`{\rtf1\trowd\cellx100\cellx200\pard\intbl\itap2 x\nestcell{\nonesttables\par}y\nestcell{\*\nesttableprops\trowd\cellx50\cellx100\nestrow}\pard\intbl after\cell b\cell\row}`), "1: | x<br>y<br>after | b |\n|---|---|\n"},
	})
	got := content("x.rtf", []byte(`{\rtf1`+row(`\cellx200`, `Title\cell`)+long+`}`))
	if n := strings.Count(got, "| a | b |\n"); n != 700 || !strings.HasPrefix(got, "1: | Title |  |\n|---|---|\n2: | a | b |\n") {
		t.Errorf("%d rows, beginning with %.100q", n, got)
	}
}

// A number in a sheet has the currency or the unit that its format shows.
func TestNumbersHaveTheirUnits(t *testing.T) {
	for _, tc := range []struct{ code, value, want string }{
		{`#,##0.00&quot; kg&quot;`, "1200.5", "1200.5 kg"},
		{`&quot;$&quot;#,##0.00`, "-5", "-$5"},
		{`_-* #,##0.00\ [$€-407]_-;\-* #,##0.00\ [$€-407]_-`, "5", "5 €"},
		{`[$CHF] #,##0;[Red]-[$CHF] #,##0`, "-5", "-CHF 5"},
		{`€0`, "5", "€5"},
		{`General\ \°\C`, "5", "5 °C"},
		{`0%&quot; of all&quot;`, "0.5", "50% of all"},
		{`0.0,,&quot;M&quot;`, "1500000", "1500000"},
		{`[&lt;2]0&quot; item&quot;;0&quot; items&quot;`, "1", "1"},
		{`#,##0_);(#,##0)`, "-5", "-5"},
		{`0.00E+00`, "5", "5"},
		{`&quot;open`, "5", "open 5"},
		{`[$€`, "5", "€5"},
		{`\`, "5", "5"},
	} {
		got := content("x.xlsx", book(`<row><c s="0"><v>`+tc.value+`</v></c></row>`, "xl/styles.xml", `<styleSheet><numFmts><numFmt numFmtId="170" formatCode="`+tc.code+`"/></numFmts><cellXfs><xf numFmtId="170"/></cellXfs></styleSheet>`))
		if want := "1: | " + tc.want + " |\n"; got != want {
			t.Errorf("%s: %q, want %q", tc.code, got, want)
		}
	}
	if got := content("x.ods", styled("spreadsheet", "", `<o:table><o:table-row><o:table-cell o:value-type="currency" o:currency="EUR" o:value="5"><o:p>5,00 €</o:p></o:table-cell></o:table-row></o:table>`)); got != "1: | 5 EUR |\n" {
		t.Errorf("OpenDocument: %q", got)
	}
}

// The first line of a CSV file may name the separator. It is no row.
func TestACSVFileNamesItsSeparator(t *testing.T) {
	checkContents(t, []documentCase{
		{"semicolons", "x.csv", []byte("sep=;\r\na;b,c\r\n1;2,5\r\n"), "1: | a | b,c |\n2: | 1 | 2,5 |\n"},
		{"behind a mark, in quotes", "x.csv", []byte("\ufeff\"sep=|\"\na|b;c;d\n"), "1: | a | b;c;d |\n"},
		{"a tab", "x.csv", []byte("SEP=\t\na\tb,c\n"), "1: | a | b,c |\n"},
		{"a row that only looks so", "x.csv", []byte("sep=;,x\na,b\n"), "1: | sep=; | x |\n2: | a | b |\n"},
	})
}

// One bad part never takes the whole: the rest is read, and the part is named.
func TestADamagedPartDoesNotTakeTheWhole(t *testing.T) {
	const bad = `<a><b>`
	paragraph := p(r("a"))
	wordWith := func(kind string) []byte {
		return word(paragraph, "word/_rels/document.xml.rels", relationsTo("x", kind, "part.xml"), "word/part.xml", bad)
	}
	const named = `[A part of this document, part.xml, is damaged or incomplete (XML syntax error on line 1: unexpected EOF). Ask for it once more.]`
	entities := `<!DOCTYPE l [<!ENTITY a "ha">]><w:footnotes xmlns:w="w"/>`
	slide := `<p:sp xmlns:p="p"><p:txBody><a:p xmlns:a="a"><a:r><a:t>b</a:t></a:r></a:p></p:txBody></p:sp>`
	cases := []documentCase{
		{"entities in the notes", "x.docx", word(paragraph, "word/_rels/document.xml.rels", relationsTo("x", "footnotes", "part.xml"), "word/part.xml", entities), "1: a\n[A part of this document, part.xml, declares entities of its own, which are not read: such a file can be an attack. Ask for it in another format.]\n"},
		{"relations", "x.docx", word(paragraph, "word/_rels/document.xml.rels", bad), "1: a\n[A part of this document, document.xml.rels, is damaged or incomplete (XML syntax error on line 1: unexpected EOF). Ask for it once more.]\n"},
		{"a sheet", "x.xlsx", archive("_rels/.rels", relationsTo("r", "officeDocument", "xl/workbook.xml"),
			"xl/workbook.xml", `<workbook xmlns:r="`+officeNS+`"><sheets><sheet name="One" r:id="s"/><sheet name="Two" r:id="t"/></sheets></workbook>`,
			"xl/_rels/workbook.xml.rels", relationsTo("s", "worksheet", "part.xml", "t", "worksheet", "two.xml"),
			"xl/part.xml", `<worksheet><sheetData><row><c><v>1</v></c></row><row><c>`, "xl/two.xml", `<worksheet><sheetData><row><c><v>2</v></c></row></sheetData></worksheet>`), "1: | 1 |\n\n2: " + named + "\n=== 2 Two\n1: | 2 |\n"},
		{"comments on cells", "x.xlsx", book(`<row><c><v>1</v></c></row>`, "xl/worksheets/_rels/one.xml.rels", relationsTo("c", "comments", "part.xml"), "xl/worksheets/part.xml", bad), "1: | 1 |\n\n2: " + named + "\n"},
		{"a slide", "x.pptx", archive("_rels/.rels", relationsTo("r", "officeDocument", "ppt/presentation.xml"),
			"ppt/presentation.xml", `<p:presentation xmlns:p="p" xmlns:r="`+officeNS+`"><p:sldIdLst><p:sldId r:id="s"/><p:sldId r:id="t"/></p:sldIdLst></p:presentation>`,
			"ppt/_rels/presentation.xml.rels", relationsTo("s", "slide", "part.xml", "t", "slide", "two.xml"), "ppt/part.xml", `<sld><sp>`, "ppt/two.xml", `<sld>`+slide+`</sld>`), "1: " + named + "\n=== 2 \n\n1: b\n"},
		{"common styles", "x.odt", styled("text", "", `<o:p>a</o:p>`, "styles.xml", bad), "1: a\n[A part of this document, styles.xml, is damaged or incomplete (XML syntax error on line 1: unexpected EOF). Ask for it once more.]\n"},
		{"an object", "x.odt", styled("text", "", `<o:p>a <o:frame><o:object x:href="./Object 1"/></o:frame></o:p>`, "Object 1/content.xml", bad), "1: a [embedded object]\n[A part of this document, content.xml, is damaged or incomplete (XML syntax error on line 1: unexpected EOF). Ask for it once more.]\n"},
		{"a chapter", "x.epub", archive("META-INF/container.xml", `<container><rootfiles><rootfile full-path="main.opf"/></rootfiles></container>`,
			"main.opf", `<package><manifest><item id="a" href="a.xhtml"/><item id="b" href="b.xhtml"/></manifest><spine><itemref idref="a"/><itemref idref="b"/></spine></package>`, "b.xhtml", "<p>b"), "1: b\n\n2: [A part of this document, a.xhtml, is damaged or incomplete (\"a.xhtml\" is missing). Ask for it once more.]\n"},
	}
	for _, kind := range []string{"styles", "numbering", "footnotes", "comments"} {
		cases = append(cases, documentCase{kind, "x.docx", wordWith(kind), "1: a\n" + named + "\n"})
	}
	checkContents(t, cases)
}

package office_test

import (
	"strings"
	"testing"
)

func p(runs string) string { return "<w:p>" + runs + "</w:p>" }

func r(text string) string { return "<w:r><w:t>" + text + "</w:t></w:r>" }

// What the programs of testdata/files do not write is made here, by the formats' own documents.
func TestWhatWordWrites(t *testing.T) {
	styles := `<w:styles xmlns:w="w"><w:style w:type="paragraph" w:styleId="Ber"><w:name w:val="heading 2"/></w:style>` +
		`<w:style w:type="paragraph" w:styleId="Own"><w:basedOn w:val="Ber"/></w:style><w:style w:type="paragraph" w:styleId="Loop"><w:basedOn w:val="Loop"/></w:style></w:styles>`
	numbering := `<w:numbering xmlns:w="w"><w:abstractNum w:abstractNumId="7">` +
		`<w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1."/></w:lvl>` +
		`<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2"/></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="7"/></w:num>` +
		`<w:num w:numId="3"><w:abstractNumId w:val="7"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="0"/></w:lvlOverride></w:num></w:numbering>`
	related := []string{
		"word/_rels/document.xml.rels", relationsTo("a", "styles", "styles.xml", "b", "numbering", "numbering.xml", "c", "footnotes", "notes.xml"),
		"word/styles.xml", styles, "word/numbering.xml", numbering,
	}
	itemOf := func(list, level, text string) string {
		return p(`<w:pPr><w:numPr><w:ilvl w:val="` + level + `"/><w:numId w:val="` + list + `"/></w:numPr></w:pPr>` + r(text))
	}
	item := func(level, text string) string { return itemOf("1", level, text) }
	for _, tc := range []struct{ name, body, want string }{
		{
			"pages as they were last laid out", p(r("one")+`<w:r><w:lastRenderedPageBreak/><w:t>two</w:t></w:r>`) + p(`<w:r><w:br w:type="page"/></w:r>`) + p(`<w:r><w:lastRenderedPageBreak/><w:t>three</w:t></w:r>`),
			"=== 1 \n\n1: one\n=== 2 \n\n1: two\n=== 3 \n\n1: three\n",
		},
		{
			"a page before a paragraph", p(r("one")) + p(`<w:pPr><w:pageBreakBefore/></w:pPr>`+r("two")) + p(`<w:pPr><w:pageBreakBefore w:val="0"/></w:pPr>`+r("too")),
			"=== 1 \n\n1: one\n=== 2 \n\n1: two\n\n2: too\n",
		},
		{
			"a page that ends in a table", `<w:tbl><w:tr><w:tc>` + p(r("a")) + `</w:tc><w:tc>` + p(`<w:r><w:lastRenderedPageBreak/></w:r>`+r("b")) + `</w:tc></w:tr></w:tbl>` + p(r("c")),
			"=== 1 \n\n1: | a | b |\n|---|---|\n=== 2 \n\n1: c\n",
		},
		{
			"headings by the style that theirs is based on", p(`<w:pPr><w:pStyle w:val="Own"/></w:pPr>`+r("H")) + p(`<w:pPr><w:pStyle w:val="Loop"/></w:pPr>`+r("no")) + p(`<w:pPr><w:outlineLvl w:val="0"/></w:pPr>`+r("Top")),
			"=== 1 \n\n1: ## H\n\n2: no\n\n3: # Top\n",
		},
		{
			"numbers of levels", item("0", "a") + item("1", "b") + item("1", "c") + item("0", "d") + item("1", "e"),
			"=== 1 \n\n1: III. a\n2:   III.1 b\n3:   III.2 c\n4: IV. d\n5:   IV.1 e\n",
		},
		{
			"a list goes on with the numbers of another of its kind, and its own start counts once", item("0", "a") + itemOf("2", "0", "b") + itemOf("3", "0", "c") + itemOf("3", "0", "d") + item("0", "e"),
			"=== 1 \n\n1: III. a\n2: IV. b\n3: 0. c\n4: I. d\n5: II. e\n",
		},
		{
			"a text box and its copy for older programs", p(r("before") + `<mc:AlternateContent><mc:Choice><w:txbxContent>` + p(r("box")) + `</w:txbxContent></mc:Choice><mc:Fallback><w:txbxContent>` + p(r("box")) + `</w:txbxContent></mc:Fallback></mc:AlternateContent>`),
			"=== 1 \n\n1: before\nbox\n",
		},
		{
			"a table in a table", `<w:tbl><w:tr><w:tc>` + p(r("a")) + `<w:tbl><w:tr><w:tc>` + p(r("b")) + `</w:tc></w:tr></w:tbl></w:tc><w:tc>` + p(r("c")) + `</w:tc></w:tr></w:tbl>`,
			"=== 1 \n\n1: | a<br>b | c |\n|---|---|\n",
		},
		{"a field shows its result", p(`<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> DATE </w:instrText></w:r>` + r("1 May")), "=== 1 \n\n1: 1 May\n"},
		{
			"content controls and formulas", `<w:sdt><w:sdtPr><w:alias w:val="x"/></w:sdtPr><w:sdtContent>` + p(r("in")) + `</w:sdtContent></w:sdt>` + p(`<m:oMath xmlns:m="m"><m:r><m:t>x+1</m:t></m:r></m:oMath>`),
			"=== 1 \n\n1: in\n\n2: x+1\n",
		},
		{"moved and deleted text", p(`<w:moveFrom>` + r("old") + `</w:moveFrom><w:moveTo>` + r("new") + `</w:moveTo><w:del><w:r><w:delText>x</w:delText></w:r></w:del>`), "=== 1 \n\n1: new\n"},
		{"nothing", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := read("x.docx", word(tc.body, related...)); got != "Word document\n"+tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestWhatExcelWrites(t *testing.T) {
	texts := `<sst><si><t>plain</t></si><si><r><t>rich </t></r><r><t>text</t></r><rPh><t>spoken</t></rPh></si></sst>`
	styles := `<styleSheet><numFmts><numFmt numFmtId="170" formatCode="[$-407]d\. mmmm yyyy;@"/><numFmt numFmtId="171" formatCode="[hh]:mm"/>` +
		`<numFmt numFmtId="172" formatCode="#,##0.00&quot; days&quot;"/><numFmt numFmtId="173" formatCode="hh:mm"/>` +
		`<numFmt numFmtId="174" formatCode="[h]:mm:ss.0"/><numFmt numFmtId="175" formatCode="mm"/><numFmt numFmtId="176" formatCode="[Magenta]0&quot;%&quot;"/></numFmts>` +
		`<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="170"/><xf numFmtId="171"/><xf numFmtId="172"/><xf numFmtId="10"/><xf numFmtId="173"/><xf numFmtId="47"/><xf numFmtId="174"/><xf numFmtId="175"/><xf numFmtId="176"/></cellXfs></styleSheet>`
	more := []string{"xl/texts.xml", texts, "xl/styles.xml", styles}
	for _, tc := range []struct{ name, rows, want string }{
		{"texts", `<row r="1"><c r="A1" t="s"><v>0</v></c><c t="s"><v>1</v></c><c t="s"><v>9</v></c><c t="s"><v>x</v></c></row>`, "1: | plain | rich text |\n"},
		{"rows without numbers", `<row><c><v>1</v></c></row><row r="7"><c r="B7"><v>2</v></c></row><row><c><v>3</v></c></row>`, "1: | 1 |\n7: |  | 2 |\n8: | 3 |\n"},
		{
			"dates", `<row><c s="1"><v>61</v></c><c s="2"><v>46082.25</v></c><c s="3"><v>1.5</v></c><c s="4"><v>2.5</v></c><c s="6"><v>0.75</v></c><c s="1"><v>-3</v></c><c s="1"><v>1</v></c></row>`,
			"1: | 1900-03-01 | 2026-03-01 06:00 | 36:00:00 | 2.5 days | 18:00 | -3 | 1900-01-01 |\n",
		},
		{
			"numbers", `<row><c><v>0.30000000000000004</v></c><c><v>1E+300</v></c><c><v>123456789012345</v></c><c><v>12345678901234567</v></c><c s="5"><v>0.125</v></c><c><v>NaN</v></c><c><v>1e999</v></c></row>`,
			"1: | 0.3 | 1e+300 | 123456789012345 | 12345678901234567 | 12.5% | NaN | 1e999 |\n",
		},
		{
			"formulas and what was saved of them", `<row><c r="A1"><f>B1*2</f><v>4</v></c><c r="B1"><v>2</v></c></row><row><c r="A2"><f>B2*2</f><v>6</v></c></row><row><c r="A3"><f>B2*2</f><v>6</v></c></row>` +
				`<row><c r="A4"><f t="shared" si="0">B4+1</f><v>1</v></c></row><row><c r="A5"><f t="shared" si="0"/><v>2</v></c></row><row><c r="A6" t="str"><f>WEBSERVICE("http://evil.example")</f><v></v></c></row>`,
			"1: | 4 (=B1*2) | 2 |\n2: | 6 |\n3: | 6 (=B2*2) |\n4: | 1 (=B4+1) |\n5: | 2 |\n6: | (=WEBSERVICE(\"http://evil.example\")) |\n",
		},
		{"far to the right", `<row><c r="A1"><v>1</v></c><c r="XFD1"><v>2</v></c><c r="XFE1"><v>3</v></c><c r="ZZZZ1"><v>4</v></c><c r="1"><v>5</v></c></row>`, "1: | 1 | XFD: 2 |\n"},
		{
			"fractions of seconds, months and percent signs", `<row><c s="7"><v>0.2565</v></c><c s="8"><v>1.2565</v></c><c s="9"><v>46082</v></c><c s="10"><v>25.5</v></c><c s="8"><v>200000.75</v></c></row>`,
			"1: | 06:09:21.6 | 30:09:21.6 | 2026-03-01 | 25.5 % | 4800018:00:00 |\n",
		},
		{"dates of ISO 8601", `<row><c t="d"><v>2026-03-01T12:30:00.000Z</v></c><c t="d"><v>2026-03-01T12:30:05.5+02:00</v></c><c t="d"><v>2026-03-01T08:00:00</v></c><c t="d"><v>2026-03-01</v></c><c t="d"><v>soon</v></c></row><row><c t="d"><v>1900-01-15</v></c><c t="d"><v>9999-12-31T00:00:00Z</v></c></row>`, "1: | 2026-03-01 12:30 | 2026-03-01 12:30:05.5 | 2026-03-01 08:00 | 2026-03-01 | soon |\n2: | 1900-01-15 | 9999-12-31 |\n"},
		{"errors and truth", `<row><c t="e"><f>#N/A</f><v>#N/A</v></c><c t="b"><f>TRUE()</f><v>1</v></c></row><row><c t="e"><v>#REF!</v></c><c t="b"><v>1</v></c><c t="d"><v>2026-03-01T00:00:00Z</v></c></row>`, "1: | #N/A | TRUE |\n2: | #REF! | TRUE | 2026-03-01 |\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := read("x.xlsx", book(tc.rows, more...))
			got = strings.TrimPrefix(got, "Excel workbook\n=== 1 One\n")
			if got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestSlidesInTheirOrder(t *testing.T) {
	got := read("x.pptx", slides(`<p:sp><p:nvSpPr><p:cNvPr/><p:nvPr><p:ph idx="1"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>item</a:t></a:r></a:p>`+
		`<a:p><a:pPr lvl="1"/><a:r><a:t>below</a:t></a:r><a:br/><a:fld><a:t>7</a:t></a:fld></a:p><a:p><a:pPr><a:buNone/></a:pPr><a:r><a:t>plain</a:t></a:r></a:p></p:txBody></p:sp>`+
		`<p:sp><p:nvSpPr><p:nvPr><p:ph type="sldNum"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>1</a:t></a:r></a:p></p:txBody></p:sp>`+
		`<p:graphicFrame><dgm:relIds xmlns:dgm="dgm" r:dm="d"/></p:graphicFrame><p:graphicFrame><c:chart xmlns:c="c" r:id="gone"/></p:graphicFrame>`,
		"ppt/slides/_rels/one.xml.rels", relationsTo("d", "diagramData", "../diagrams/data.xml"),
		"ppt/diagrams/data.xml", `<dgm:dataModel xmlns:dgm="dgm" xmlns:a="a"><dgm:t><a:p><a:r><a:t>step</a:t></a:r></a:p></dgm:t></dgm:dataModel>`))
	if want := "PowerPoint presentation\n=== 1 \n\n1: - item\n2:   - below\n    7\n\n3: plain\n\n4: step\n\n5: [chart]\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Numbers in OpenDocument have their units only in what was shown, in the language of who saved them.
func TestNumbersOfOpenDocumentHaveTheUnitsThatAreShown(t *testing.T) {
	for _, tc := range []struct{ value, shown, want string }{
		{"46082.75", "46,082.8°C", "46082.75 °C"},
		{"-1234.5", "-1.234,50 €", "-1234.5 €"},
		{"-12.5", "$(12.50)", "-$12.5"},
		{"0.6", "60%", "60%"},
		{"0.126", "12,6 %", "12.6%"},
		{"60", "60%", "60 %"},
		{"46082750", "46.1M", "46082750"},
		{"0.5", "5 pro Mille", "0.5"},
		{"1", "TRUE", "TRUE"},
		{"0", "-", "0"},
		{"7", "sieben", "7"},
		{"3", "", "3"},
	} {
		got := read("x.ods", open("spreadsheet", `<o:table o:name="T"><o:table-row><o:table-cell o:value-type="float" o:value="`+tc.value+`"><o:p>`+tc.shown+`</o:p></o:table-cell></o:table-row></o:table>`))
		if want := "OpenDocument spreadsheet\n=== 1 T\n1: | " + tc.want + " |\n"; got != want {
			t.Errorf("%s: got %q, want %q", tc.shown, got, want)
		}
	}
}

func TestWhatOpenDocumentRepeats(t *testing.T) {
	got := read("x.ods", open("spreadsheet", `<o:table o:name="T"><o:table-column/><o:table-row o:number-rows-repeated="3"><o:table-cell o:value-type="float" o:value="1.50" o:number-columns-repeated="2"><o:p>1,50</o:p></o:table-cell></o:table-row>`+
		`<o:table-row o:number-rows-repeated="1048570"><o:table-cell o:number-columns-repeated="16384"/></o:table-row>`+
		`<o:table-row><o:table-cell o:number-columns-repeated="16383" o:value-type="string"><o:p>x</o:p></o:table-cell><o:table-cell><o:p>y</o:p></o:table-cell></o:table-row></o:table>`))
	if want := "OpenDocument spreadsheet\n=== 1 T\n1: | 1.5 | 1.5 [the same down to row 3] |\n1048574: | x |" + strings.Repeat(" x |", 99) + " XFD: y |\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRTFOfWord(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"code pages of fonts", `\ansicpg1251{\fonttbl{\f0\fcharset204 A;}{\f1\fcharset128 B;}}\f0\'cf\'f0\'e8 \f1\'93\'fa\'96\'7b\par`, "1: При 日本\n"},
		{"Unicode with what stands for it", `\uc1\u8364? \u-10179?\u-8704? {\uc2\u228 ae}x\par`, "1: € 😀 äx\n"},
		{"items", `{\listtext\pard\plain\f3 \'b7\tab}\pard\ilvl0 one\par{\listtext 2.\tab}\pard\ilvl1 two\par`, "1: - one\n2:   2. two\n"},
		{"headings", `{\stylesheet{\s1 heading 1;}{\s2\sbasedon1 Other;}}\pard\s1 Top\par\pard\outlinelevel2 Third\par\pard text\par`, "\n1: # Top\n\n2: ### Third\n\n3: text\n"},
		{"cells of several paragraphs", `\trowd\pard\intbl a\par b\cell c\cell\row\trowd\pard\intbl d\cell\cell\row\pard after\par`, "\n1: | a<br>b | c |\n|---|---|\n2: | d |  |\n\n3: after\n"},
		{"links and pictures", `{\field{\*\fldinst{HYPERLINK "https://a.example/"}}{\fldrslt{here}}}{\pict\pngblip 89504e47}{\object{\result x}}.\par`, "1: here (https://a.example/)[picture][embedded object].\n"},
		{"hidden and unknown", `a{\v secret}{\*\unknown stuff}{\*\shppict{\pict 00}}\bin3 {{{b\par`, "1: a[hidden: secret][picture]b\n"},
		{"pages and notes", `one{\footnote note}\par\page two\par`, "1: one[^1]\n[^1]: note\n=== 2 \n\n1: two\n"},
		{"signs", `a\~b\_c\emdash\ldblquote d\rdblquote\{\\\}\line e\tab f\par`, "1: a b-c—“d”{\\}\ne\tf\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := strings.TrimPrefix(read("x.rtf", []byte(`{\rtf1\ansi `+tc.body+`}`)), "RTF document\n=== 1 \n")
			if strings.TrimLeft(got, "\n") != strings.TrimLeft(tc.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestTablesAndTexts(t *testing.T) {
	for _, tc := range []struct{ name, data, want string }{
		{"x.csv", "a,b\n\"x, \"\"y\"\"\",2\n\n3", "CSV table\n=== 1 \n1: | a | b |\n2: | x, \"y\" | 2 |\n4: | 3 |\n"},
		{"x.csv", "\ufeffa;b;c\n1,5;\"zwei\nZeilen\";\n", "CSV table\n=== 1 \n1: | a | b | c |\n2: | 1,5 | zwei<br>Zeilen |\n"},
		{"x.csv", "\"two\nlines\",1\nnext,2\n", "CSV table\n=== 1 \n1: | two<br>lines | 1 |\n2: | next | 2 |\n"},
		{"x.tsv", "a\tb|c\n", "CSV table\n=== 1 \n1: | a | b\\|c |\n"},
		{"x.csv", "n\xe4me;gr\xf6\xdfe\n", "CSV table (encoding guessed: windows-1252)\n=== 1 \n1: | näme | größe |\n"},
		{"x.csv", "\xc8\xec\xff;\xc3\xee\xf0\xee\xe4\n\xc8\xe2\xe0\xed \xcf\xe5\xf2\xf0\xee\xe2;\xcc\xee\xf1\xea\xe2\xe0\n", "CSV table (encoding guessed: windows-1251)\n=== 1 \n1: | Имя | Город |\n2: | Иван Петров | Москва |\n"},
		{"x.csv", "Imi\xea;Miasto\n\xa3ukasz \xaf\xf3\xb3\xe6;\xa3\xf3d\x9f\n", "CSV table (encoding guessed: windows-1250)\n=== 1 \n1: | Imię | Miasto |\n2: | Łukasz Żółć | Łódź |\n"},
		{"x.csv", "\x96\xbc\x91\x4f,\x93\x73\x8e\x73\n\x8e\x52\x93\x63\x91\xbe\x98\x59,\x93\x8c\x8b\x9e\n", "CSV table (encoding guessed: shift_jis)\n=== 1 \n1: | 名前 | 都市 |\n2: | 山田太郎 | 東京 |\n"},
		{"x.txt", "plain\n\xcf\xf0\xe8\xe2\xe5\xf2, \xec\xe8\xf0", "text (encoding guessed: windows-1251)\n=== 1 \n1: plain\n2: Привет, мир\n"},
		{"x.csv", "Menge;Preis\n1,5;2,25\n2,5;3,75\n", "CSV table\n=== 1 \n1: | Menge | Preis |\n2: | 1,5 | 2,25 |\n3: | 2,5 | 3,75 |\n"},
		{"x.csv", "1,5\t2,5\n3,5\t4,5\n", "CSV table\n=== 1 \n1: | 1,5 | 2,5 |\n2: | 3,5 | 4,5 |\n"},
		{"x.csv", "a;b\rc;d\r", "CSV table\n=== 1 \n1: | a | b |\n2: | c | d |\n"},
		{"x.txt", "one\rtwo\r\rthree", "text\n=== 1 \n1: one\n2: two\n3: \n4: three\n"},
		{"x.csv", "Konto, Januar\n\nDatum;Betrag\n1.1.;-12,50\n", "CSV table\n=== 1 \n1: | Konto, Januar |\n3: | Datum | Betrag |\n4: | 1.1. | -12,50 |\n"},
		{"x.csv", "\"a;b\",c\n", "CSV table\n=== 1 \n1: | a;b | c |\n"},
		{"x.csv", "a,\"open\nb,\"c\nd\"\n", "CSV table\n=== 1 \n1: | a | open |\n2: | b | c<br>d |\n"},
		{"x.csv", "name,size\n\"Big\" Joe,1\npipe,5\" long\nbox,\"6\"\" wide\"\n\"a \"b\" c\",2\n", "CSV table\n=== 1 \n1: | name | size |\n2: | Big\" Joe,1 |\n3: | pipe | 5\" long |\n4: | box | 6\" wide |\n5: | a \"b\" c | 2 |\n"},
		{"x.txt", "one line of text\n\n  three\x07\r\nfour", "text\n=== 1 \n1: one line of text\n2: \n3:   three\n4: four\n"},
		{"x.txt", "\xff\xfea\x00\xe4\x00", "text\n=== 1 \n1: aä\n"},
		{
			"x.html", "<h1>Top</h1><p>a <a href='https://a.example/x'>link</a></p><ul><li>one<li>two</ul><table><tr><th>a<th>b<tr><td>1<td>2</table><script>evil()</script><img src='https://a.example/p.png'>",
			"HTML page\n=== 1 \n\n1: # Top\n\n2: a [link](https://a.example/x)\n\n3: - one\n4: - two\n\n5: | a | b |\n|---|---|\n6: | 1 | 2 |\n\n7: ![](https://a.example/p.png)\n",
		},
		{"page", "<!DOCTYPE html><p>no extension", "HTML page\n=== 1 \n\n1: no extension\n"},
		{"x.epub", string(epub("<html><body><h2>One</h2><p>text</p><pre><code>a\n\nb</code></pre></body></html>")), "EPUB book\n=== 1 One\n\n1: ## One\n\n2: text\n\n3: ```\na\n\nb\n```\n"},
	} {
		if got := read(tc.name, []byte(tc.data)); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}

// What is written wrongly in a mail takes neither the text nor the files with it, and what is lost is named.
func TestMailsAreReadInSpiteOfFaults(t *testing.T) {
	head := "From: a@example.com\r\nTo: b@example.com\r\nSubject: s\r\nDate: x\r\n"
	text := head + "Content-Type: multipart/mixed; boundary=A; charset=\r\n\r\n--A\r\nContent-Type: text/html; charset=utf-8; format = flowed; x\r\n\r\n<p>Hello</p>\r\n" +
		"--A\r\nContent-Type: text/csv; name=my report.csv\r\nContent-Disposition: attachment; filename=my report.csv\r\n\r\na;b\r\n1;2\r\n--A--\r\n"
	for name, tc := range map[string]struct {
		mail string
		want []string
	}{
		"parameters without quotes": {text, []string{": Hello\n", "- part 2: my report.csv (text/csv, 8 bytes)", "| 1 | 2 |"}},
		"damaged base64":            {head + "Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\nSGVsbG8gd29ybGQh*!$\r\nSGVsbG8=\r\n", []string{"Hello world!", "[The rest of this text is damaged.]"}},
	} {
		got := read("m.eml", []byte(tc.mail))
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, got)
			}
		}
	}
}

// The encoding of a text shows where its first character beyond ASCII is, which may be far behind its
// beginning, or a page declares it.
func TestTheEncodingOfATextIsFound(t *testing.T) {
	ascii := strings.Repeat("only ASCII\n", 1_000)
	for _, tc := range []struct{ name, text, want string }{
		{"x.txt", ascii + "M\xfcller", "Müller"},
		{"x.txt", ascii + "Müller", "Müller"},
		{"x.txt", "ä" + ascii + "M\xfcller", "M\uFFFDller"}, // damage
		{"x.csv", "a;b\n" + ascii + "M\xfcller;1", "| Müller | 1 |"},
		{"x.html", "<!DOCTYPE html><meta charset=windows-1252><!--" + ascii + "--><p>M\xfcller", "Müller"},
		{"x.html", "<!DOCTYPE html><meta charset=iso-8859-2><!--" + ascii + "--><p>\xb1", "ą"},
		{"x.html", "<!DOCTYPE html><meta charset=utf-8><!--" + ascii + "--><p>Müller", "Müller"},
	} {
		if got := strings.TrimSpace(read(tc.name, []byte(tc.text))); !strings.HasSuffix(got, tc.want) {
			t.Errorf("%s ends %q, want %q", tc.name, got[max(0, len(got)-30):], tc.want)
		}
	}
}

// What the name of a file says does not count where its content says otherwise.
func TestTheContentSaysWhatAFileIs(t *testing.T) {
	for _, tc := range []struct {
		name string
		data []byte
		want string
	}{
		{"x.txt", word(p(r("a"))), "Word document\n"},
		{"x.docx", book(`<row><c><v>1</v></c></row>`), "Excel workbook\n"},
		{"x.xlsx", []byte(`{\rtf1 a}`), "RTF document\n"},
		{"x.doc", []byte("<html><body>saved as a page"), "HTML page\n"},
		{"x.xls", []byte("a\tb"), "text\n"},
		{"x.docx", []byte("only text"), "! is damaged or incomplete"},
		{"x.docx", []byte("%PDF-1.7"), "! is a PDF. Load the group pdf"},
		{"x.docx", []byte("\x89PNG\r\n\x1a\n"), "! is damaged"},
		{"x.dat", []byte("\x89PNG\r\n\x1a\n"), "! is no document but image/png"},
		{"x.dat", []byte("a\x00b\x01"), "! is no document that can be read"},
		{"x.txt", nil, "! is empty"},
		{"x.zip", archive("a.txt", "a"), "! is an archive of files"},
		{"x.pages", archive("Index/Document.iwa", "a"), "! is a document of Apple's Pages"},
		{"x.odg", open("chart", ""), "! holds no text"},
		{"x.docm", word(p(r("a")), "word/vbaProject.bin", "\xd0\xcf\x11\xe0macro"), "Word document\n=== 1 \n\n1: a\n"},
	} {
		if got := read(tc.name, tc.data); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// A text that is longer than a block becomes several, cut at a space, and none of it is lost.
func TestALongTextBecomesSeveralBlocks(t *testing.T) {
	text := strings.TrimSpace(strings.Repeat("wörd ", 12_000))
	got := read("x.txt", []byte(text+"\nend"))
	if n := strings.Count(got, "wörd"); n != 12_000 || !strings.Contains(got, "\n3: wörd") || !strings.HasSuffix(got, "\n4: end\n") {
		t.Errorf("%d words, %d lines, and the end is %q", n, strings.Count(got, "\n"), got[len(got)-20:])
	}
	got = read("x.csv", []byte(strings.Repeat(strings.Repeat("x", 9_000)+",", 4)+"y\nend"))
	if !strings.Contains(got, "x… | … | …") || !strings.HasSuffix(got, "2: | end |\n") {
		t.Errorf("a long row is %d characters long", len(got))
	}
}

package office_test

import (
	"strings"
	"testing"
)

// content returns what is read of a document, without its format and the beginning of its first part.
func content(name string, data []byte) string {
	got := read(name, data)
	if _, after, found := strings.Cut(got, "=== 1"); found {
		_, got, _ = strings.Cut(after, "\n")
	}
	return strings.TrimLeft(got, "\n")
}

type documentCase struct {
	name, file string
	data       []byte
	want       string
}

func checkContents(t *testing.T, cases []documentCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := content(tc.file, tc.data); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// run makes a run of Word with a format.
func run(format, text string) string {
	return "<w:r><w:rPr>" + format + "</w:rPr><w:t>" + text + "</w:t></w:r>"
}

// drawn makes a run of DrawingML with attributes.
func drawn(attributes, text string) string {
	return "<a:r><a:rPr " + attributes + "/><a:t>" + text + "</a:t></a:r>"
}

// box makes a shape of paragraphs.
func box(paragraphs string) string { return "<p:sp><p:txBody>" + paragraphs + "</p:txBody></p:sp>" }

// styled makes a text of OpenDocument with automatic styles.
func styled(kind, styles, body string, more ...string) []byte {
	return archive(append([]string{
		"mimetype", "application/vnd.oasis.opendocument." + kind, "content.xml",
		`<o:document-content xmlns:o="o" xmlns:x="x"><o:automatic-styles>` + styles + `</o:automatic-styles><o:body><o:` + kind + `>` + body + `</o:` + kind + `></o:body></o:document-content>`,
	}, more...)...)
}

const odfSpans = `<o:style o:name="up" o:family="text"><o:text-properties o:text-position="super 58%"/></o:style>` +
	`<o:style o:name="down" o:family="text"><o:text-properties o:text-position="-33% 58%"/></o:style>` +
	`<o:style o:name="old" o:family="text"><o:text-properties o:text-line-through-style="solid"/></o:style>` +
	`<o:style o:name="none" o:family="text" o:parent-style-name="old"><o:text-properties o:text-line-through-style="none"/></o:style>` +
	`<o:style o:name="dark" o:family="text"><o:text-properties o:display="none"/></o:style>`

// 10 with a raised 6 is not 106, and a struck price is no price: such text is marked.
func TestTextThatIsRaisedLoweredStruckOrHiddenIsMarked(t *testing.T) {
	span := func(style, text string) string { return `<o:span o:style-name="` + style + `">` + text + `</o:span>` }
	const up, down = `<w:vertAlign w:val="superscript"/>`, `<w:vertAlign w:val="subscript"/>`
	wordStyles := []string{
		"word/_rels/document.xml.rels", relationsTo("a", "styles", "styles.xml"),
		"word/styles.xml", `<w:styles xmlns:w="w"><w:style w:type="character" w:styleId="Old"><w:rPr><w:strike/></w:rPr></w:style>` +
			`<w:style w:type="character" w:styleId="Older"><w:basedOn w:val="Old"/></w:style>` +
			`<w:style w:type="paragraph" w:styleId="Gone"><w:rPr><w:vanish/></w:rPr></w:style></w:styles>`,
	}
	checkContents(t, []documentCase{
		{"Word", "x.docx", word(p(r("10") + run(up, "6") + r(" units of H") + run(down, "2") + r("O, ") + run("<w:strike/>", "not ") + r("x") + run(up, "2n") + run(up, "+1") + r(" m") + run(up, "2"))), "1: 10^6 units of H_2O, ~~not~~ x^(2n+1) m^2\n"},
		{"what follows is no part of it", "x.docx", word(p(r("x") + run(down, "1") + r("2, x") + run(down, "i") + r("j, x") + run(up, "-3") + r(", 1") + run(up, "st") + r(" a") + run(up, " ") + r("b"))), "1: x_(1)2, x_(i)j, x^-3, 1st a b\n"},
		{"raised by its position", "x.docx", word(p(r("10") + run(`<w:position w:val="8"/>`, "6") + r(" a") + run(`<w:position w:val="-8"/>`, "n") + r(" ") + run(`<w:position w:val="-2"/>`, "adjusted"))), "1: 10^6 a_n adjusted\n"},
		{"switched off", "x.docx", word(p(run(`<w:strike w:val="0"/>`, "a") + run(`<w:vertAlign w:val="baseline"/>`, "b") + run(`<w:vanish w:val="false"/>`, "c"))), "1: abc\n"},
		{"hidden in Word", "x.docx", word(p(r("a ") + run("<w:vanish/>", "se") + run("<w:vanish/>", "cret") + r(" b"))), "1: a [hidden: secret] b\n"},
		{"by the style in Word", "x.docx", word(p(r("a ")+run(`<w:rStyle w:val="Older"/>`, "b")+run(`<w:rStyle w:val="Older"/><w:strike w:val="0"/>`, "c"))+p(`<w:pPr><w:pStyle w:val="Gone"/></w:pPr>`+r("d")), wordStyles...), "1: a ~~b~~c\n\n2: [hidden: d]\n"},
		{"struck twice, with a raised part", "x.docx", word(p(run("<w:dstrike/>", "10") + run("<w:dstrike/>"+up, "6") + r(" 9"))), "1: ~~10^6~~ 9\n"},
		{"a raised mark of a note is none of the text", "x.docx", word(p(r("a")+`<w:r><w:rPr>`+up+`</w:rPr><w:footnoteReference w:id="1"/></w:r>`), "word/_rels/document.xml.rels", relationsTo("a", "footnotes", "n.xml"), "word/n.xml", `<w:footnotes xmlns:w="w"><w:footnote w:id="1">`+p(r("n"))+`</w:footnote></w:footnotes>`), "1: a[^1]\n[^1]: n\n"},
		{"PowerPoint", "x.pptx", slides(box(`<a:p>` + drawn("", "10") + drawn(`baseline="30000"`, "6") + drawn("", " H") + drawn(`baseline="-25000"`, "2") + drawn("", "O ") + drawn(`strike="sngStrike"`, "old") + drawn(`strike="noStrike"`, " new") + `</a:p>`)), "1: 10^6 H_2O ~~old~~ new\n"},
		{"OpenDocument text", "x.odt", styled("text", odfSpans, `<o:p>10`+span("up", "6")+` H`+span("down", "2")+`O `+span("old", "a"+span("none", "b"))+` `+span("dark", "c")+`</o:p><o:section o:display="none"><o:p>d</o:p></o:section>`), "1: 10^6 H_2O ~~a~~b [hidden: c]\n\n2: [hidden: d]\n"},
		{"by a common style", "x.odt", styled("text", "", `<o:p>a`+span("Old", "b")+`</o:p>`, "styles.xml", `<o:document-styles xmlns:o="o"><o:styles><o:style o:name="Old" o:family="text"><o:text-properties o:text-line-through-type="single"/></o:style></o:styles></o:document-styles>`), "1: a~~b~~\n"},
		{"RTF", "x.rtf", []byte(`{\rtf1 10{\super 6} H{\sub 2}O {\strike old}{\striked1 er} {\up8 x}{\up2 y} a\super b\nosupersub c{\deleted gone}{\v secret}\par}`), "1: 10^6 H_2O ~~older~~ ^(x)y a^(b)c[hidden: secret]\n"},
		{
			"Excel", "x.xlsx", book(`<row><c t="inlineStr"><is><r><t>10</t></r><r><rPr><vertAlign val="superscript"/></rPr><t>6</t></r><r><rPr><strike/></rPr><t> old</t></r></is></c><c s="1"><v>5</v></c><c s="0"><v>6</v></c></row>`,
				"xl/styles.xml", `<styleSheet><fonts><font/><font><strike/></font></fonts><cellXfs><xf fontId="0"/><xf fontId="1"/></cellXfs></styleSheet>`), "1: | 10^6 ~~old~~ | ~~5~~ | 6 |\n",
		},
		{
			"OpenDocument sheet", "x.ods", styled("spreadsheet", odfSpans+`<o:style o:name="c" o:family="table-cell"><o:text-properties o:text-line-through-style="solid"/></o:style>`,
				`<o:table><o:table-row><o:table-cell><o:p>10`+span("up", "6")+`</o:p></o:table-cell><o:table-cell o:style-name="c" o:value-type="float" o:value="5"/></o:table-row></o:table>`), "1: | 10^6 | ~~5~~ |\n",
		},
		{"a page", "x.html", []byte("<p>10<sup>6</sup> log<sub>2</sub>8 <s>old</s> <del>er</del></p>"), "1: 10^6 log_(2)8 ~~old~~ ~~er~~\n"},
	})
}

// omml makes a formula of Office.
func omml(inner string) string {
	return `<m:oMath xmlns:m="m">` + inner + `</m:oMath>`
}

func mt(text string) string { return `<m:r><m:t>` + text + `</m:t></m:r>` }

// A formula is read on one line, with parentheses where a program shows its parts above each other.
func TestFormulasAreReadOnOneLine(t *testing.T) {
	const (
		fraction = `<m:f><m:num><m:r><m:t>a</m:t></m:r><m:r><m:t>+</m:t></m:r><m:r><m:t>b</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f>`
		root     = `<m:rad><m:radPr><m:degHide m:val="1"/></m:radPr><m:deg/><m:e><m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:e></m:rad>`
		rtf      = `{\mmath{\*\moMath{\mf{\mnum{\mr a}{\mr +}{\mr b}}{\mden{\mr 2}}}{\mr \u8804\'3f}{\mrad{\mradPr{\mdegHide 1}}{\mdeg }{\me{\msSup{\me{\mr x}}{\msup{\mr 2}}}}}}{\mmathPict{\*\shppict{\pict 00}}}}`
		mathML   = `<math><semantics><mrow><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac><mo>≤</mo><msqrt><msup><mi>x</mi><mn>2</mn></msup></msqrt></mrow><annotation encoding="StarMath 5.0">{a+b} over 2</annotation></semantics></math>`
		want     = "1: so (a+b)/2 ≤ √(x^2).\n"
	)
	frame := `<o:p>so <o:frame><o:object x:href="./Object 1"/><o:image x:href="./Pictures/1"/></o:frame>.</o:p>`
	cases := []documentCase{
		{"Word", "x.docx", word(p(r("so ") + omml(fraction+mt("≤")+root) + r("."))), want},
		{"Word, in a paragraph of its own", "x.docx", word(p(`<m:oMathPara xmlns:m="m">` + omml(fraction) + `</m:oMathPara>`)), "1: (a+b)/2\n"},
		{"Word, between paragraphs", "x.docx", word(p(r("a")) + omml(fraction)), "1: a\n\n2: (a+b)/2\n"},
		{"Word, in a cell", "x.docx", word(`<w:tbl><w:tr><w:tc>` + p(omml(fraction)) + `</w:tc><w:tc>` + p(r("b")) + `</w:tc></w:tr></w:tbl>`), "1: | (a+b)/2 | b |\n|---|---|\n"},
		{"PowerPoint", "x.pptx", slides(box(`<a:p>` + drawn("", "so ") + `<mc:AlternateContent xmlns:mc="mc"><mc:Choice><a14:m xmlns:a14="a14">` + omml(fraction+mt("≤")+root) + `</a14:m></mc:Choice><mc:Fallback>` + drawn("", "?") + `</mc:Fallback></mc:AlternateContent>` + drawn("", ".") + `</a:p>`)), want},
		{"RTF", "x.rtf", []byte(`{\rtf1 so ` + rtf + `.\par}`), want},
		{"OpenDocument", "x.odt", styled("text", "", frame, "Object 1/content.xml", mathML), want},
		{"OpenDocument, with a slash", "x.odt", styled("text", "", strings.Replace(frame, "./Object 1", "Formula-0/", 1), "Formula-0/content.xml", mathML), want},
		{"OpenDocument, in the text", "x.odt", styled("text", "", `<o:p>so <o:frame><o:object>`+mathML+`</o:object></o:frame>.</o:p>`), want},
		{"OpenDocument slide", "x.odp", styled("presentation", "", `<o:page><o:frame><o:object x:href="./Object 1"/></o:frame></o:page>`, "Object 1/content.xml", mathML), "1: (a+b)/2 ≤ √(x^2)\n"},
		{"a formula that is missing", "x.odt", styled("text", "", frame), "1: so [embedded object].\n"},
		{"an editor of its own in Word", "x.docx", word(p(r("so ") + `<w:r><w:object><v:shape xmlns:v="v"><v:imagedata/></v:shape><o:OLEObject xmlns:o="o" ProgID="Equation.3"/></w:object></w:r>`)), "1: so [formula]\n"},
		{"an editor of its own in RTF", "x.rtf", []byte(`{\rtf1 so {\object\objemb{\*\objclass Equation.3}{\*\objdata 0105}{\result{\pict 00}}}\par}`), "1: so [formula]\n"},
		{"an editor of its own in PowerPoint", "x.pptx", slides(`<p:graphicFrame><p:oleObj progId="Equation.3"><p:pic><p:blipFill><a:blip/></p:blipFill></p:pic></p:oleObj></p:graphicFrame>`), "1: [formula]\n"},
		{"a field", "x.docx", word(p(`<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> EQ \f(a,b) </w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>`)), "1: [formula: \\f(a,b)]\n"},
		{"nothing to read", "x.docx", word(p(r("so ") + omml(`<m:r/>`))), "1: so [formula]\n"},
		{"a page", "x.html", []byte(`<p>so ` + mathML + `.</p>`), want},
	}
	for _, tc := range []struct{ name, inner, want string }{
		{"scripts", `<m:sSubSup><m:e>` + mt("x") + `</m:e><m:sub>` + mt("i") + `</m:sub><m:sup>` + mt("2n") + `</m:sup></m:sSubSup>`, "x_i^(2n)"},
		{"a sum", `<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>` + mt("i=1") + `</m:sub><m:sup>` + mt("n") + `</m:sup><m:e>` + mt("i") + `</m:e></m:nary>`, "∑_(i = 1)^n i"},
		{"an integral", `<m:nary><m:sub>` + mt("0") + `</m:sub><m:sup>` + mt("1") + `</m:sup><m:e>` + mt("x") + `</m:e></m:nary>` + mt("dx"), "∫_0^1 xdx"},
		{"roots", `<m:rad><m:deg>` + mt("3") + `</m:deg><m:e>` + mt("n") + `</m:e></m:rad>` + mt("+") + `<m:rad><m:deg>` + mt("n") + `</m:deg><m:e>` + mt("2") + `</m:e></m:rad>`, "∛(n)+root(n, 2)"},
		{"parentheses", `<m:d><m:dPr><m:begChr m:val="|"/><m:endChr m:val="|"/></m:dPr><m:e>` + mt("x") + `</m:e></m:d><m:d><m:e>` + mt("a") + `</m:e><m:e>` + mt("b") + `</m:e></m:d>`, "|x|(a|b)"},
		{"a binomial coefficient", `<m:f><m:fPr><m:type m:val="noBar"/></m:fPr><m:num>` + mt("n") + `</m:num><m:den>` + mt("k") + `</m:den></m:f>`, "binom(n, k)"},
		{"a matrix", `<m:m><m:mr><m:e>` + mt("a") + `</m:e><m:e>` + mt("b") + `</m:e></m:mr><m:mr><m:e>` + mt("c") + `</m:e><m:e>` + mt("d") + `</m:e></m:mr></m:m>`, "[a, b; c, d]"},
		{"functions and limits", `<m:func><m:fName><m:limLow><m:e>` + mt("lim") + `</m:e><m:lim>` + mt("x→0") + `</m:lim></m:limLow></m:fName><m:e>` + mt("f") + `</m:e></m:func>`, "lim_(x → 0) f"},
		{"accents and bars", `<m:acc><m:accPr><m:chr m:val="&#x20D7;"/></m:accPr><m:e>` + mt("v") + `</m:e></m:acc><m:bar><m:barPr><m:pos m:val="top"/></m:barPr><m:e>` + mt("ab") + `</m:e></m:bar>`, "v\u20d7overline(ab)"},
		{"equations below each other", `<m:eqArr><m:e>` + mt("a&amp;=1") + `</m:e><m:e>` + mt("b&amp;=2") + `</m:e></m:eqArr>`, "a = 1; b = 2"},
		{"fractions of fractions", `<m:f><m:num>` + fraction + `</m:num><m:den>` + mt("cd") + `</m:den></m:f>`, "((a+b)/2)/(cd)"},
	} {
		cases = append(cases, documentCase{tc.name, "x.docx", word(p(omml(tc.inner))), "1: " + tc.want + "\n"})
	}
	for _, tc := range []struct{ name, inner, want string }{
		{"a sum in MathML", `<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><mi>i</mi>`, "∑_(i = 1)^n i"},
		{"scripts in MathML", `<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup><msub><mi>y</mi><mn>1</mn></msub><mmultiscripts><mi>C</mi><mn>6</mn><none/><mprescripts/><none/><mn>14</mn></mmultiscripts>`, "x_i^2y_1^14C_6"},
		{"roots in MathML", `<mroot><mi>x</mi><mn>3</mn></mroot>`, "∛(x)"},
		{"fences in MathML", `<mfenced open="[" close=")"><mi>a</mi><mi>b</mi></mfenced><mover><mi>x</mi><mo>→</mo></mover>`, "[a,b)x\u20d7"},
		{"a table in MathML", `<mtable><mtr><mtd><mi>a</mi></mtd><mtd><mi>b</mi></mtd></mtr><mtr><mtd><mi>c</mi></mtd><mtd><mi>d</mi></mtd></mtr></mtable>`, "[a, b; c, d]"},
		{"a binomial coefficient in MathML", `<mfrac linethickness="0"><mi>n</mi><mi>k</mi></mfrac>`, "binom(n, k)"},
	} {
		cases = append(cases, documentCase{tc.name, "x.odt", styled("text", "", frame, "Object 1/content.xml", "<math>"+tc.inner+"</math>"), "1: so " + tc.want + ".\n"})
	}
	checkContents(t, cases)
}

// A formula that is too large is named, and costs no more than others.
func TestAFormulaIsBounded(t *testing.T) {
	many := strings.Repeat("<m:r><m:t>x</m:t></m:r>", 20_000)
	long := mt(strings.Repeat("x", 30_000))
	deep := strings.Repeat("<m:f><m:num>", 100) + mt("x") + strings.Repeat("</m:num><m:den>"+mt(strings.Repeat("y", 300))+"</m:den></m:f>", 100)
	for name, inner := range map[string]string{"elements": many, "characters": long, "nested fractions": deep} {
		if got := content("x.docx", word(p(r("a ")+omml(inner)+r(" b")))); got != "1: a [formula] b\n" {
			t.Errorf("%s: %.200q", name, got)
		}
	}
	if got := content("x.rtf", []byte(`{\rtf1 a {\*\moMath `+strings.Repeat(`{\mr x}`, 20_000)+`} b\par}`)); got != "1: a [formula] b\n" {
		t.Errorf("RTF: %.200q", got)
	}
}

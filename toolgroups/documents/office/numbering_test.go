package office_test

import (
	"strings"
	"testing"
)

// Items have the numbers that the office program shows.
func TestItemsHaveTheNumbersThatTheProgramShows(t *testing.T) {
	level := func(at, rest string) string { return `<w:lvl w:ilvl="` + at + `">` + rest + `</w:lvl>` }
	decimal := func(at, start string) string {
		return level(at, `<w:start w:val="`+start+`"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%`+string(at[0]+1)+`."/>`)
	}
	num := func(id, kind, more string) string {
		return `<w:num w:numId="` + id + `"><w:abstractNumId w:val="` + kind + `"/>` + more + `</w:num>`
	}
	startAt := func(at, start string) string {
		return `<w:lvlOverride w:ilvl="` + at + `"><w:startOverride w:val="` + start + `"/></w:lvlOverride>`
	}
	document := func(numbering, body string, styles ...string) []byte {
		return word(body, "word/_rels/document.xml.rels", relationsTo("b", "numbering", "numbering.xml", "a", "styles", "styles.xml"),
			"word/numbering.xml", `<w:numbering xmlns:w="w">`+numbering+`</w:numbering>`, "word/styles.xml", `<w:styles xmlns:w="w">`+strings.Join(styles, "")+`</w:styles>`)
	}
	item := func(list, level, text string) string {
		run := ""
		if text != "" {
			run = r(text)
		}
		return p(`<w:pPr><w:numPr><w:ilvl w:val="` + level + `"/><w:numId w:val="` + list + `"/></w:numPr></w:pPr>` + run)
	}
	kind := func(id string, levels ...string) string {
		return `<w:abstractNum w:abstractNumId="` + id + `">` + strings.Join(levels, "") + `</w:abstractNum>`
	}
	listStyle := func(levels string) string {
		return `<o:list-style o:name="L">` + levels + `</o:list-style>`
	}
	number := func(level, more string) string {
		return `<o:list-level-style-number o:level="` + level + `" ` + more + `/>`
	}
	list := func(attributes, items string) string { return `<o:list ` + attributes + `>` + items + `</o:list>` }
	li := func(inner string) string { return `<o:list-item>` + inner + `</o:list-item>` }
	op := func(text string) string { return `<o:p>` + text + `</o:p>` }
	auto := func(format, more, text string) string {
		return `<a:p><a:pPr ` + more + `><a:buAutoNum type="` + format + `"/></a:pPr>` + drawn("", text) + `</a:p>`
	}
	checkContents(t, []documentCase{
		{
			"Word: later items with another list of the kind, as LibreOffice saves them", "x.docx",
			document(kind("1", decimal("0", "1"))+num("1", "1", "")+num("4", "1", startAt("0", "3")), item("4", "0", "a")+item("1", "0", "b")+item("1", "0", "c")),
			"1: 3. a\n2: 4. b\n3: 5. c\n",
		},
		{
			"Word: an item without text has a number", "x.docx",
			document(kind("1", decimal("0", "1"))+num("1", "1", ""), item("1", "0", "a")+item("1", "0", "")+item("1", "0", "b")),
			"1: 1. a\n2: 3. b\n",
		},
		{
			"Word: items in cells and text boxes", "x.docx",
			document(kind("1", decimal("0", "1"))+num("1", "1", ""), `<w:tbl><w:tr><w:tc>`+item("1", "0", "a")+`</w:tc><w:tc>`+p(r("x"))+`</w:tc></w:tr><w:tr><w:tc>`+item("1", "0", "b")+`</w:tc><w:tc>`+p(r("y"))+`</w:tc></w:tr></w:tbl>`+p(r("z")+`<w:txbxContent>`+item("1", "0", "c")+`</w:txbxContent>`)),
			"1: | 1. a | x |\n|---|---|\n2: | 2. b | y |\n\n3: z\n3. c\n",
		},
		{
			"Word: levels that a list has of its own, letters after Z, and formats", "x.docx",
			document(kind("1", level("0", `<w:start w:val="26"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1)"/>`))+num("1", "1", "")+
				num("2", "1", `<w:lvlOverride w:ilvl="0"><w:lvl><w:start w:val="9"/><w:numFmt w:val="decimalZero"/><w:lvlText w:val="No. %1"/></w:lvl></w:lvlOverride>`), item("1", "0", "a")+item("1", "0", "b")+item("1", "0", "c")+item("2", "0", "d")),
			"1: z) a\n2: aa) b\n3: bb) c\n4: No. 29 d\n",
		},
		{
			"Word: a level that goes on, one without a number, and decimal numbers of Roman ones", "x.docx",
			document(kind("1", level("0", `<w:start w:val="1"/><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1."/>`),
				level("1", `<w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2"/><w:isLgl/><w:lvlRestart w:val="0"/>`),
				level("2", `<w:start w:val="1"/><w:numFmt w:val="none"/><w:lvlText w:val=""/>`))+num("1", "1", ""), item("1", "0", "a")+item("1", "1", "b")+item("1", "0", "c")+item("1", "1", "d")+item("1", "2", "e")),
			"1: I. a\n2:   1.1 b\n3: II. c\n4:   2.2 d\n\n5: e\n",
		},
		{
			"Word: a level that says neither its start nor its format", "x.docx",
			document(kind("1", decimal("0", "1"), level("1", `<w:lvlText w:val="%1.%2"/>`))+num("1", "1", ""), item("1", "0", "a")+item("1", "1", "b")+item("1", "1", "c")),
			"1: 1. a\n2:   1.0 b\n3:   1.1 c\n",
		},
		{
			"numbers of other scripts", "x.docx",
			document(kind("1", level("0", `<w:start w:val="9"/><w:numFmt w:val="chineseCountingThousand"/><w:lvlText w:val="%1、"/>`), level("1", `<w:start w:val="20"/><w:numFmt w:val="decimalEnclosedCircle"/><w:lvlText w:val="%2"/>`))+num("1", "1", ""), item("1", "0", "a")+item("1", "0", "b")+item("1", "0", "c")+item("1", "1", "d")+item("1", "1", "e")),
			"1: 九、 a\n2: 十、 b\n3: 十一、 c\n4:   ⑳ d\n5:   21 e\n",
		},
		{
			"Word: an item that a change deletes has no number", "x.docx",
			document(kind("1", decimal("0", "1"))+num("1", "1", ""), item("1", "0", "a")+p(`<w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr><w:rPr><w:del w:id="1"/></w:rPr></w:pPr><w:del><w:r><w:delText>x</w:delText></w:r></w:del>`)+item("1", "0", "b")),
			"1: 1. a\n2: 2. b\n",
		},
		{
			"Word: bullets that say whether an item is done", "x.docx",
			document(kind("1", level("0", `<w:numFmt w:val="bullet"/><w:lvlText w:val="`+"\uf0fe"+`"/><w:rPr><w:rFonts w:ascii="Wingdings"/></w:rPr>`), level("1", `<w:numFmt w:val="bullet"/><w:lvlText w:val="☐"/>`), level("2", `<w:numFmt w:val="bullet"/><w:lvlText w:val="•"/>`))+num("1", "1", ""), item("1", "0", "a")+item("1", "1", "b")+item("1", "2", "c")),
			"1: ☑ a\n2:   ☐ b\n3:     - c\n",
		},
		{
			"Word: a list that a style defines, and headings by their styles", "x.docx",
			document(`<w:abstractNum w:abstractNumId="1"><w:numStyleLink w:val="S"/></w:abstractNum><w:abstractNum w:abstractNumId="2"><w:styleLink w:val="S"/>`+
				level("0", `<w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1"/>`)+level("1", `<w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2"/><w:pStyle w:val="H2"/>`)+`</w:abstractNum>`+num("1", "1", "")+num("2", "2", ""),
				p(`<w:pPr><w:pStyle w:val="H1"/></w:pPr>`+r("a"))+p(`<w:pPr><w:pStyle w:val="H2"/></w:pPr>`+r("b"))+item("2", "0", "c"),
				`<w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>`,
				`<w:style w:type="paragraph" w:styleId="H2"><w:name w:val="heading 2"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>`),
			"1: # 1 a\n\n2: ## 1.1 b\n\n3: 2 c\n",
		},
		{
			"OpenDocument: a start, and lists in lists", "x.odt",
			styled("text", listStyle(number("1", `o:num-format="1" o:start-value="3" o:num-suffix="."`)+number("2", `o:num-format="a" o:num-prefix="(" o:num-suffix=")"`)), list(`o:style-name="L"`, li(op("a"))+li(op("b")+list("", li(op("c"))+li(op("d"))))+li(op("e")+op("more")))),
			"1: 3. a\n2: 4. b\n3:   (a) c\n4:   (b) d\n5: 5. e\n6:   more\n",
		},
		{
			"OpenDocument: numbers of several levels, and an item with a number of its own", "x.odt",
			styled("text", listStyle(number("1", `o:num-format="I"`)+number("2", `o:num-format="1" o:display-levels="2" o:num-suffix="."`)), list(`o:style-name="L"`, li(op("a")+list("", li(op("b"))+li(op("c"))))+`<o:list-item o:start-value="7">`+op("d")+list("", li(op("e")))+`</o:list-item>`)),
			"1: I a\n2:   I.1. b\n3:   I.2. c\n4: VII d\n5:   VII.1. e\n",
		},
		{
			"OpenDocument: lists that go on, as LibreOffice saves them", "x.odt",
			styled("text", listStyle(number("1", `o:num-format="1" o:num-suffix="."`)+number("2", `o:num-format="a" o:num-suffix="."`)), list(`o:id="x" o:style-name="L"`, `<o:list-item o:start-value="3">`+op("a")+`</o:list-item>`)+list(`o:style-name="L"`, li(list("", li(op("b")))))+list(`o:continue-list="x" o:style-name="L"`, li(op("c")))+op("between")+list(`o:style-name="L" o:continue-numbering="true"`, li(op("d")))+list(`o:style-name="L"`, li(op("e")))),
			"1: 3. a\n2:   a. b\n3: 4. c\n\n4: between\n\n5: 5. d\n6: 1. e\n",
		},
		{
			"OpenDocument: an item that is only a list, and several lists in an item", "x.odt",
			styled("text", listStyle(number("1", `o:num-format="1" o:num-suffix="."`)+number("2", `o:num-format="1" o:display-levels="2" o:num-suffix="."`)), list(`o:style-name="L"`, li(list("", li(op("a"))))+li(op("b")+list("", li(op("c")))+op("more")+list("", li(op("d")))+list(`o:continue-numbering="true"`, li(op("e"))))+li(op(""))+li(op("f")))),
			"1:   1.1. a\n2: 2. b\n3:   2.1. c\n4:   more\n5:   2.1. d\n6:   2.2. e\n7: 4. f\n",
		},
		{
			"OpenDocument: common styles, and numbered headings", "x.odt",
			styled("text", "", `<o:h o:outline-level="1">a</o:h><o:h o:outline-level="2">b</o:h><o:h o:outline-level="1" o:is-list-header="true">c</o:h><o:h o:outline-level="1">d</o:h>`+list(`o:style-name="L"`, li(op("e"))),
				"styles.xml", `<o:document-styles xmlns:o="o"><o:styles>`+listStyle(number("1", `o:num-format="A" o:num-suffix=")"`))+
					`<o:outline-style><o:outline-level-style o:level="1" o:num-format="1"/><o:outline-level-style o:level="2" o:num-format="1" o:display-levels="2"/></o:outline-style></o:styles></o:document-styles>`),
			"1: # 1 a\n\n2: ## 1.1 b\n\n3: # c\n\n4: # 2 d\n\n5: A) e\n",
		},
		{
			"OpenDocument: bullets that say whether an item is done", "x.odt",
			styled("text", listStyle(`<o:list-level-style-bullet o:level="1" o:bullet-char="✓"/><o:list-level-style-bullet o:level="2" o:bullet-char="•"/>`), list(`o:style-name="L"`, li(op("a")+list("", li(op("b")))))),
			"1: ✓ a\n2:   - b\n",
		},
		{
			"OpenDocument: items in cells", "x.odt",
			styled("text", listStyle(number("1", `o:num-format="1" o:num-suffix="."`)), `<o:table><o:table-row><o:table-cell>`+list(`o:style-name="L"`, li(op("a"))+li(op("b")))+`</o:table-cell><o:table-cell>`+op("c")+`</o:table-cell></o:table-row></o:table>`),
			"1: | 1. a<br>2. b | c |\n|---|---|\n",
		},
		{
			"OpenDocument slides: lists of a shape go on", "x.odp",
			styled("presentation", strings.Replace(listStyle(number("1", `o:num-format="1" o:start-value="3" o:num-suffix="."`)), `"L"`, `"L1"`, 1)+strings.Replace(listStyle(number("1", `o:num-format="1" o:start-value="3" o:num-suffix="."`)), `"L"`, `"L2"`, 1),
				`<o:page><o:frame><o:text-box>`+list(`o:style-name="L1"`, li(op("a"))+li(op("b")))+list(`o:style-name="L2"`, li(list("", li(op("c"))))+li(op("d")))+`</o:text-box></o:frame><o:frame><o:text-box>`+list(`o:style-name="L1"`, li(op("e")))+`</o:text-box></o:frame></o:page>`),
			"1: 3. a\n2: 4. b\n3:   - c\n4: 5. d\n\n5: 3. e\n",
		},
		{
			"PowerPoint", "x.pptx",
			slides(box(auto("arabicPeriod", "", "a") + auto("arabicPeriod", "", "b") + auto("alphaLcParenR", `lvl="1"`, "c") + auto("alphaLcParenR", `lvl="1"`, "d") + auto("arabicPeriod", "", "e") + `<a:p>` + drawn("", "between") + `</a:p>` + auto("arabicPeriod", "", "f") + auto("romanUcPeriod", "", "g") + auto("arabicParenBoth", "", "h"))),
			"1: 1. a\n2: 2. b\n3:   a) c\n4:   b) d\n5: 3. e\n\n6: between\n\n7: 1. f\n8: I. g\n9: (1) h\n",
		},
		{
			"PowerPoint: a start, and numbers by the shape", "x.pptx",
			slides(box(`<a:lstStyle><a:lvl1pPr><a:buAutoNum type="arabicParenR" startAt="3"/></a:lvl1pPr></a:lstStyle><a:p>` + drawn("", "a") + `</a:p><a:p/><a:p>` + drawn("", "b") + `</a:p><a:p><a:pPr><a:buNone/></a:pPr>` + drawn("", "c") + `</a:p>`)),
			"1: 3) a\n2: 4) b\n\n3: c\n",
		},
		{
			"PowerPoint: bullets that say whether an item is done, and a hidden shape", "x.pptx",
			slides(box(`<a:p><a:pPr><a:buFont typeface="Wingdings"/><a:buChar char="q"/></a:pPr>`+drawn("", "a")+`</a:p><a:p><a:pPr><a:buChar char="•"/></a:pPr>`+drawn("", "b")+`</a:p>`) + `<p:sp><p:nvSpPr><p:cNvPr hidden="1"/></p:nvSpPr><p:txBody><a:p>` + drawn("", "c") + `</a:p></p:txBody></p:sp>`),
			"1: ☐ a\n2: - b\n\n3: [hidden: c]\n",
		},
		{
			"PowerPoint: items in cells", "x.pptx",
			slides(`<a:tbl><a:tr><a:tc><a:txBody>` + auto("arabicPeriod", "", "a") + auto("arabicPeriod", "", "b") + `</a:txBody></a:tc><a:tc><a:p>` + drawn("", "c") + `</a:p></a:tc></a:tr></a:tbl>`),
			"1: | 1. a<br>2. b | c |\n|---|---|\n",
		},
		{"RTF: bullets that say whether an item is done", "x.rtf", []byte(`{\rtf1{\fonttbl{\f1\fcharset2 Wingdings;}}{\listtext\f1 \'fe\tab}\pard a\par{\listtext\f1 \'a7\tab}\pard b\par}`), "1: ☑ a\n2: - b\n"},
		{"RTF: numbers of several levels, and items in cells", "x.rtf", []byte(`{\rtf1{\listtext 1.2.\tab}\pard\ilvl1 a\par{\listtext iii)\tab}\pard b\par\trowd\cellx1000\cellx2000{\listtext\pard 1.\tab}\pard\intbl c\cell d\cell\row\pard e\par}`), "1:   1.2. a\n2: iii) b\n\n3: | 1. c | d |\n|---|---|\n\n4: e\n"},
	})
}

package markdown

import (
	"archive/zip"
	"bytes"
	"embed"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"regexp"
	"slices"
	"strings"

	east "github.com/yuin/goldmark/extension/ast"
)

//go:embed parts
var embeddedParts embed.FS

const (
	xmlHead = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	// officeRelations is the namespace of r:id, and the prefix of the relationship types.
	officeRelations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	relationships   = "http://schemas.openxmlformats.org/package/2006/relationships"
	// maxLevel is the deepest list level in Word.
	maxLevel = 8
)

// docxWriter writes the body of a Word document.
type docxWriter struct {
	body  strings.Builder
	links []string // targets by id
	lists []int    // first numbers of ordered lists, by id
	// The footnotes by number, and these numbers in the order of the first references. inNotes is set while
	// footnotes are written.
	notes    map[int]*node
	referred []int
	inNotes  bool
}

// textStyle is the formatting of text.
type textStyle struct{ strong, emphasis, strike, code, link bool }

// blockContext is the context of a block.
type blockContext struct {
	level   int    // of lists
	list    int    // the id of the list of the next paragraph; 0 for none
	mark    string // a mark before the item's text, instead of a list number
	inQuote bool
}

// DOCX returns the document as a Word document. Pictures become links; nothing is fetched.
func (d *Document) DOCX() ([]byte, error) {
	root := d.root
	if strings.Contains(d.source, "[^") {
		root = parse(d.source, parseFootnotes)
	}
	w := &docxWriter{notes: map[int]*node{}}
	var blocks []*node
	for _, n := range root.children {
		if n.kind == kindNote {
			w.notes[n.number] = n
		} else {
			blocks = append(blocks, n)
		}
	}
	w.writeBlocks(blocks, blockContext{})
	footnotes := w.writeFootnotes()
	document := xmlHead + `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="` + officeRelations + `"><w:body>` +
		w.body.String() + `<w:sectPr><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1134" w:right="1134" w:bottom="1134" w:left="1134" w:header="708" w:footer="708" w:gutter="0"/></w:sectPr></w:body></w:document>`
	var related, numbering strings.Builder
	related.WriteString(relationshipXML("s", "styles", "styles.xml", false) + relationshipXML("n", "numbering", "numbering.xml", false))
	types := embeddedPart("types.docx.xml")
	if footnotes != nil {
		related.WriteString(relationshipXML("f", "footnotes", "footnotes.xml", false))
		types = strings.Replace(types, "</Types>", `<Override PartName="/word/footnotes.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"/></Types>`, 1)
	}
	related.WriteString(linksXML(w.links))
	numbering.WriteString(embeddedPart("numbering.docx.xml"))
	for i, first := range w.lists {
		fmt.Fprintf(&numbering, `<w:num w:numId="%d"><w:abstractNumId w:val="1"/>`, i+firstList)
		for level := range maxLevel + 1 {
			fmt.Fprintf(&numbering, `<w:lvlOverride w:ilvl="%d"><w:startOverride w:val="%d"/></w:lvlOverride>`, level, first)
		}
		numbering.WriteString("</w:num>\n")
	}
	return zipFiles(append([][2]string{
		{"[Content_Types].xml", types},
		{"_rels/.rels", relationshipsXML(relationshipXML("d", "officeDocument", "word/document.xml", false) + propertiesLink)},
		{"word/document.xml", document},
		{"word/_rels/document.xml.rels", relationshipsXML(related.String())},
		{"word/styles.xml", embeddedPart("styles.docx.xml")},
		{"word/numbering.xml", numbering.String() + "</w:numbering>"},
	}, footnotes...))
}

// linksXML returns the relationships of links.
func linksXML(targets []string) string {
	var b strings.Builder
	for i, to := range targets {
		b.WriteString(relationshipXML(fmt.Sprintf("l%d", i), "hyperlink", to, true))
	}
	return b.String()
}

// writeFootnotes returns the files with the footnotes to which the body refers, none if there are none. Those
// to which only others refer cannot be footnotes in Word: they end the body.
func (w *docxWriter) writeFootnotes() [][2]string {
	count := len(w.referred)
	for _, number := range slices.Sorted(maps.Keys(w.notes)) {
		if !slices.Contains(w.referred, number) {
			w.referred = append(w.referred, number)
			w.writeBlocks(behindText(fmt.Sprintf("[%d] ", len(w.referred)), w.notes[number].children), blockContext{})
		}
	}
	if count == 0 {
		return nil
	}
	notes := &docxWriter{lists: w.lists, referred: w.referred, inNotes: true}
	notes.body.WriteString(`<w:footnote w:type="separator" w:id="-1"><w:p><w:r><w:separator/></w:r></w:p></w:footnote>` +
		`<w:footnote w:type="continuationSeparator" w:id="0"><w:p><w:r><w:continuationSeparator/></w:r></w:p></w:footnote>`)
	for i, number := range w.referred[:count] {
		children := w.notes[number].children
		first := &node{kind: kindParagraph}
		if len(children) > 0 && children[0].kind == kindParagraph {
			first, children = children[0], children[1:]
		}
		fmt.Fprintf(&notes.body, `<w:footnote w:id="%d">`, i+1)
		notes.writeParagraph(footnoteText, func() {
			notes.body.WriteString(`<w:r><w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr><w:footnoteRef/></w:r>`)
			notes.writeText(" ", textStyle{})
			notes.writeInlines(first.children, textStyle{})
		})
		notes.writeBlocks(children, blockContext{})
		notes.body.WriteString(`</w:footnote>`)
	}
	w.lists = notes.lists
	return [][2]string{
		{"word/footnotes.xml", xmlHead + `<w:footnotes xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="` + officeRelations + `">` + notes.body.String() + `</w:footnotes>`},
		{"word/_rels/footnotes.xml.rels", relationshipsXML(linksXML(notes.links))},
	}
}

// footnoteText is the style of a footnote's paragraph.
const footnoteText = `<w:pStyle w:val="FootnoteText"/>`

// writeReference writes a reference to a footnote. A second one to the same footnote, or one in a footnote,
// repeats its number.
func (w *docxWriter) writeReference(number int, l textStyle) {
	style := `<w:r><w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr>`
	switch at := slices.Index(w.referred, number); {
	case w.inNotes:
		w.writeText(fmt.Sprintf("[%d]", at+1), l)
	case at >= 0:
		fmt.Fprintf(&w.body, `%s<w:t>%d</w:t></w:r>`, style, at+1)
	case w.notes[number] != nil:
		w.referred = append(w.referred, number)
		fmt.Fprintf(&w.body, `%s<w:footnoteReference w:id="%d"/></w:r>`, style, len(w.referred))
	}
}

// bulletList is the id of all unordered lists, and firstList that of the first ordered one.
const bulletList, firstList = 1, 2

// embeddedPart returns a file that every document contains.
func embeddedPart(name string) string {
	data, err := embeddedParts.ReadFile("parts/" + name)
	if err != nil {
		panic(err) // the file is embedded
	}
	return string(data)
}

// The first file of each archive says which program has made it.
const (
	propertiesName = "docProps/app.xml"
	properties     = xmlHead + `<Properties xmlns="http://schemas.openxmlformats.org/officeDocument/2006/extended-properties">` + madeHere + `</Properties>`
	madeHere       = `<Application>OneClaw</Application>`
	propertiesLink = `<Relationship Id="p" Type="` + officeRelations + `/extended-properties" Target="` + propertiesName + `"/>`
)

// MadeHere reports whether this package has made a document. head has at least its first thousand bytes.
// A program that changes the document replaces the name by which it is recognised.
func MadeHere(head []byte) bool { return bytes.Contains(head, []byte(madeHere)) }

// zipFiles returns a ZIP archive of names and contents.
func zipFiles(files [][2]string) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	size := uint64(len(properties))
	w, err := z.CreateRaw(&zip.FileHeader{Name: propertiesName, CRC32: crc32.ChecksumIEEE([]byte(properties)), CompressedSize64: size, UncompressedSize64: size})
	if err == nil {
		_, err = w.Write([]byte(properties))
	}
	if err != nil {
		return nil, fmt.Errorf("markdown: %w", err)
	}
	for _, f := range files {
		w, err := z.Create(f[0])
		if err != nil {
			return nil, fmt.Errorf("markdown: %w", err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			return nil, fmt.Errorf("markdown: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, errors.Join(errors.New("markdown: the archive"), err)
	}
	return b.Bytes(), nil
}

func relationshipsXML(inner string) string {
	return xmlHead + `<Relationships xmlns="` + relationships + `">` + inner + `</Relationships>`
}

func relationshipXML(id, kind, target string, external bool) string {
	mode := ""
	if external {
		mode = ` TargetMode="External"`
	}
	return fmt.Sprintf(`<Relationship Id="%s" Type="%s/%s" Target="%s"%s/>`, id, officeRelations, kind, escapeXML(target), mode)
}

// escapeXML escapes a text for XML.
func escapeXML(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer does not fail
	return b.String()
}

func (w *docxWriter) writeBlocks(nodes []*node, in blockContext) {
	for _, n := range nodes {
		w.writeBlock(n, in)
		in.list, in.mark = 0, "" // only the first block of an item has its mark
	}
}

func (w *docxWriter) writeBlock(n *node, in blockContext) {
	switch n.kind {
	case kindHeading:
		w.writeParagraph(fmt.Sprintf(`<w:pStyle w:val="Heading%d"/>`, min(max(n.level, 1), 6)), func() { w.writeInlines(n.children, textStyle{}) })
	case kindCodeBlock:
		w.writeParagraph(`<w:pStyle w:val="Code"/>`+indentXML(in), func() { w.writeText(strings.TrimRight(n.text, "\n"), textStyle{}) })
	case kindQuote:
		in.inQuote = true
		w.writeBlocks(n.children, in)
	case kindList:
		w.writeList(n, in)
	case kindTable:
		w.writeTable(n)
	case kindRule:
		w.writeParagraph(`<w:pBdr><w:bottom w:val="single" w:sz="6" w:space="1" w:color="A6A6A6"/></w:pBdr>`, func() {})
	default:
		style := ""
		switch {
		case in.list > 0:
			style = fmt.Sprintf(`<w:pStyle w:val="ListParagraph"/><w:numPr><w:ilvl w:val="%d"/><w:numId w:val="%d"/></w:numPr>`, in.level-1, in.list)
		case in.level > 0:
			style = `<w:pStyle w:val="ListParagraph"/>` + indentXML(in)
		case in.inQuote:
			style = `<w:pStyle w:val="Quote"/>`
		case w.inNotes:
			style = footnoteText
		}
		w.writeParagraph(style, func() {
			w.writeText(in.mark, textStyle{})
			w.writeInlines(n.children, textStyle{})
		})
	}
}

// indentXML returns the indentation of a block below the text of an item.
func indentXML(in blockContext) string {
	if in.level == 0 {
		return ""
	}
	return fmt.Sprintf(`<w:ind w:left="%d"/>`, 360*in.level)
}

func (w *docxWriter) writeList(n *node, in blockContext) {
	in.level = min(in.level+1, maxLevel+1)
	id := bulletList
	counts := true
	for i, item := range n.children {
		counts = counts && item.number == n.children[0].number+i
	}
	if n.ordered && counts && len(n.children) > 0 {
		w.lists = append(w.lists, n.children[0].number)
		id = firstList - 1 + len(w.lists)
	}
	for _, item := range n.children {
		in.list, in.mark = id, ""
		switch {
		case n.ordered && !counts:
			in.list, in.mark = 0, fmt.Sprintf("%d. ", item.number)
		case item.checkBox != "":
			in.list, in.mark = 0, item.checkBox+" "
		}
		children := item.children
		if len(children) == 0 || children[0].kind != kindParagraph {
			// Only a paragraph can have a mark.
			children = append([]*node{{kind: kindParagraph}}, children...)
		}
		w.writeBlocks(children, in)
	}
}

func (w *docxWriter) writeTable(n *node) {
	w.body.WriteString(`<w:tbl><w:tblPr><w:tblStyle w:val="TableGrid"/><w:tblW w:w="0" w:type="auto"/></w:tblPr><w:tblGrid>`)
	for range n.align {
		w.body.WriteString(`<w:gridCol/>`)
	}
	w.body.WriteString(`</w:tblGrid>`)
	for i, row := range n.children {
		w.body.WriteString(`<w:tr>`)
		if i == 0 {
			w.body.WriteString(`<w:trPr><w:tblHeader/></w:trPr>`)
		}
		for at, cell := range row.children {
			w.body.WriteString(`<w:tc><w:tcPr><w:tcW w:w="0" w:type="auto"/></w:tcPr>`)
			w.writeParagraph(alignmentXML(n.align, at), func() { w.writeInlines(cell.children, textStyle{strong: i == 0}) })
			w.body.WriteString(`</w:tc>`)
		}
		w.body.WriteString(`</w:tr>`)
	}
	w.body.WriteString(`</w:tbl><w:p/>`) // adjacent tables would merge
}

func alignmentXML(all []east.Alignment, at int) string {
	if at < len(all) && all[at] == east.AlignRight {
		return `<w:jc w:val="right"/>`
	}
	if at < len(all) && all[at] == east.AlignCenter {
		return `<w:jc w:val="center"/>`
	}
	return ""
}

func (w *docxWriter) writeParagraph(properties string, content func()) {
	w.body.WriteString(`<w:p>`)
	if properties != "" {
		w.body.WriteString(`<w:pPr>` + properties + `</w:pPr>`)
	}
	content()
	w.body.WriteString(`</w:p>`)
}

func (w *docxWriter) writeInlines(nodes []*node, l textStyle) {
	for _, n := range nodes {
		with := l
		switch n.kind {
		case kindText:
			w.writeText(n.text, l)
			continue
		case kindBreak:
			w.writeText("\n", l)
			continue
		case kindCode:
			with.code = true
			w.writeText(n.text, with)
			continue
		case kindNote:
			w.writeReference(n.number, l)
			continue
		case kindStrong:
			with.strong = true
		case kindEmphasis:
			with.emphasis = true
		case kindStrike:
			with.strike = true
		case kindLink:
			w.writeLink(n, l)
			continue
		}
		w.writeInlines(n.children, with)
	}
}

// linkScheme matches the schemes of links.
var linkScheme = regexp.MustCompile(`^(?i:https?|mailto):`)

// writeLink writes a web or mail link. Any other link becomes text.
func (w *docxWriter) writeLink(n *node, l textStyle) {
	if !linkScheme.MatchString(n.url) {
		w.writeInlines(n.children, l)
		w.writeText(n.urlSuffix(), l)
		return
	}
	l.link = true
	fmt.Fprintf(&w.body, `<w:hyperlink r:id="l%d">`, len(w.links))
	w.links = append(w.links, n.url)
	w.writeInlines(n.children, l)
	w.body.WriteString(`</w:hyperlink>`)
}

// lineBreak matches a line break in a cell.
var lineBreak = regexp.MustCompile(`(?i)<br\s*/?>`)

// writeText writes a run of text.
func (w *docxWriter) writeText(text string, l textStyle) {
	if text == "" {
		return
	}
	w.body.WriteString(`<w:r>` + l.propertiesXML())
	if !l.code {
		text = lineBreak.ReplaceAllString(text, "\n")
	}
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			w.body.WriteString(`<w:br/>`)
		}
		for j, piece := range strings.Split(line, "\t") {
			if j > 0 {
				w.body.WriteString(`<w:tab/>`)
			}
			if piece != "" {
				w.body.WriteString(`<w:t xml:space="preserve">` + escapeXML(piece) + `</w:t>`)
			}
		}
	}
	w.body.WriteString(`</w:r>`)
}

func (l textStyle) propertiesXML() string {
	var b strings.Builder
	for _, p := range []struct {
		on   bool
		text string
	}{
		{l.link, `<w:rStyle w:val="Hyperlink"/>`},
		{l.code && !l.link, `<w:rStyle w:val="CodeText"/>`},
		{l.strong, `<w:b/>`},
		{l.emphasis, `<w:i/>`},
		{l.strike, `<w:strike/>`},
	} {
		if p.on {
			b.WriteString(p.text)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return `<w:rPr>` + b.String() + `</w:rPr>`
}

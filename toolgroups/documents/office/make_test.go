package office_test

import (
	"archive/zip"
	"bytes"
	"strings"
)

// archive makes a document of names and contents, in turns. Of two files with one name it has the last.
func archive(files ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	last := map[string]int{}
	for i := 0; i+1 < len(files); i += 2 {
		last[files[i]] = i
	}
	for i := 0; i+1 < len(files); i += 2 {
		if last[files[i]] != i {
			continue
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: files[i], Method: zip.Store})
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			panic(err) // a buffer does not fail
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

const officeNS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"

func relationsTo(pairs ...string) string {
	var b strings.Builder
	b.WriteString(`<Relationships>`)
	for i := 0; i+2 < len(pairs); i += 3 {
		b.WriteString(`<Relationship Id="` + pairs[i] + `" Type="` + officeNS + `/` + pairs[i+1] + `" Target="` + pairs[i+2] + `"/>`)
	}
	return b.String() + `</Relationships>`
}

// word makes a DOCX of its body and of more files.
func word(body string, more ...string) []byte {
	return archive(append([]string{
		"_rels/.rels", relationsTo("r", "officeDocument", "word/document.xml"),
		"word/document.xml", `<w:document xmlns:w="w" xmlns:r="` + officeNS + `" xmlns:mc="mc"><w:body>` + body + `</w:body></w:document>`,
	}, more...)...)
}

// book makes an XLSX of the rows of its one sheet and of more files.
func book(rows string, more ...string) []byte {
	return archive(append([]string{
		"_rels/.rels", relationsTo("r", "officeDocument", "xl/workbook.xml"),
		"xl/workbook.xml", `<workbook xmlns:r="` + officeNS + `"><sheets><sheet name="One" r:id="s"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels", relationsTo("s", "worksheet", "worksheets/one.xml", "t", "sharedStrings", "texts.xml", "y", "styles", "styles.xml"),
		"xl/worksheets/one.xml", `<worksheet><sheetData>` + rows + `</sheetData></worksheet>`,
	}, more...)...)
}

// slides makes a PPTX of the shapes of its one slide.
func slides(shapes string, more ...string) []byte {
	return archive(append([]string{
		"_rels/.rels", relationsTo("r", "officeDocument", "ppt/presentation.xml"),
		"ppt/presentation.xml", `<p:presentation xmlns:p="p" xmlns:r="` + officeNS + `"><p:sldIdLst><p:sldId r:id="s"/></p:sldIdLst></p:presentation>`,
		"ppt/_rels/presentation.xml.rels", relationsTo("s", "slide", "slides/one.xml"),
		"ppt/slides/one.xml", `<p:sld xmlns:p="p" xmlns:a="a" xmlns:r="` + officeNS + `"><p:cSld><p:spTree>` + shapes + `</p:spTree></p:cSld></p:sld>`,
	}, more...)...)
}

// open makes a document of OpenDocument of its body.
func open(kind, body string) []byte {
	return archive("mimetype", "application/vnd.oasis.opendocument."+kind, "content.xml",
		`<o:document-content xmlns:o="o"><o:body><o:`+kind+`>`+body+`</o:`+kind+`></o:body></o:document-content>`)
}

// epub makes a book of one chapter.
func epub(chapter string) []byte {
	return archive("META-INF/container.xml", `<container><rootfiles><rootfile full-path="OPS/main.opf"/></rootfiles></container>`,
		"OPS/main.opf", `<package><manifest><item id="a" href="a%20b.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>`,
		"OPS/a b.xhtml", chapter)
}

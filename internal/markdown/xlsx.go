package markdown

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"oneclaw/internal/wording"
)

// ErrNoTable is returned by [Document.XLSX] for a document without a table.
var ErrNoTable = errors.New("markdown: no table")

// Styles of cells, by their index in styles.xlsx.xml.
const (
	styleNone = iota
	styleHead
	styleLines
	styleDate
	styleTime
	styleThousands
	styleThousandths
	stylePercent
	stylePercents
)

const (
	// maxSheetName bounds the name of a sheet, in UTF-16 units, and maxSheets their number.
	maxSheetName = 31
	maxSheets    = 200
	// minWidth and maxWidth bound columns, in characters.
	minWidth, maxWidth = 8, 60
	// maxCellText bounds the text of a cell in Excel.
	maxCellText = 32_000
)

// XLSX returns the tables of the document as a workbook, each in a sheet named after the heading
// above it, and the number of other blocks, which are left out. Numbers, dates and percentages
// are converted; nothing becomes a formula.
func (d *Document) XLSX() (data []byte, left int, err error) {
	var names, sheets []string
	used := map[string]bool{}
	heading := ""
	var visit func(nodes []*node)
	visit = func(nodes []*node) {
		for _, n := range nodes {
			switch {
			case n.kind == kindHeading:
				heading = n.flatText(false)
			case n.kind == kindTable && len(sheets) < maxSheets:
				names = append(names, sheetName(heading, used))
				sheets = append(sheets, sheetXML(n))
			case n.kind == kindQuote || n.kind == kindList || n.kind == kindItem:
				visit(n.children)
			case n.kind != kindRule:
				left++
			}
		}
	}
	visit(d.root.children)
	if len(sheets) == 0 {
		return nil, left, ErrNoTable
	}
	var types, list, related strings.Builder
	related.WriteString(relationshipXML("s", "styles", "styles.xml", false))
	files := make([][2]string, 0, len(sheets)+5)
	for i, content := range sheets {
		file := fmt.Sprintf("sheet%d.xml", i+1)
		files = append(files, [2]string{"xl/worksheets/" + file, content})
		fmt.Fprintf(&list, `<sheet name="%s" sheetId="%d" r:id="t%d"/>`, escapeXString(names[i]), i+1, i+1)
		related.WriteString(relationshipXML(fmt.Sprintf("t%d", i+1), "worksheet", "worksheets/"+file, false))
		fmt.Fprintf(&types, `<Override PartName="/xl/worksheets/%s" ContentType="%s.worksheet+xml"/>`, file, spreadsheetML)
	}
	data, err = zipFiles(append([][2]string{
		{"[Content_Types].xml", xmlHead + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
			`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>` +
			`<Override PartName="/` + propertiesName + `" ContentType="application/vnd.openxmlformats-officedocument.extended-properties+xml"/>` +
			`<Override PartName="/xl/workbook.xml" ContentType="` + spreadsheetML + `.sheet.main+xml"/>` +
			`<Override PartName="/xl/styles.xml" ContentType="` + spreadsheetML + `.styles+xml"/>` + types.String() + `</Types>`},
		{"_rels/.rels", relationshipsXML(relationshipXML("d", "officeDocument", "xl/workbook.xml", false) + propertiesLink)},
		{"xl/workbook.xml", xmlHead + `<workbook xmlns="` + sheetNamespace + `" xmlns:r="` + officeRelations + `"><sheets>` + list.String() + `</sheets></workbook>`},
		{"xl/_rels/workbook.xml.rels", relationshipsXML(related.String())},
		{"xl/styles.xml", embeddedPart("styles.xlsx.xml")},
	}, files...))
	return data, left, err
}

// spreadsheetML begins the content types of a workbook's parts, and sheetNamespace is their XML
// namespace.
const (
	spreadsheetML  = "application/vnd.openxmlformats-officedocument.spreadsheetml"
	sheetNamespace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
)

// invalidNameChars matches characters that sheet names cannot have.
var invalidNameChars = regexp.MustCompile(`[\[\]:*?/\\]+`)

// sheetName returns a unique name for a sheet.
func sheetName(heading string, used map[string]bool) string {
	name := strings.Trim(strings.Join(strings.Fields(invalidNameChars.ReplaceAllString(heading, " ")), " "), "'")
	if name == "" {
		name = "Sheet"
	}
	for n := 1; ; n++ {
		end := ""
		if n > 1 {
			end = " " + strconv.Itoa(n)
		}
		units := []rune(name) // Excel counts UTF-16; other planes are rare in names, and shortened below
		whole := strings.TrimSpace(string(units[:min(len(units), (maxSheetName-len(end))/maxUnits(units))])) + end
		if key := strings.ToLower(whole); !used[key] {
			used[key] = true
			return whole
		}
	}
}

// maxUnits returns the most UTF-16 units of a character.
func maxUnits(text []rune) int {
	for _, r := range text {
		if r > 0xffff {
			return 2
		}
	}
	return 1
}

// sheetXML writes a table as a sheet with a frozen first row.
func sheetXML(n *node) string {
	texts := make([][]string, len(n.children))
	widths := make([]int, len(n.align))
	for i, row := range n.children {
		for at, c := range row.children {
			text := strings.TrimSpace(lineBreak.ReplaceAllString(c.flatText(true), "\n"))
			texts[i] = append(texts[i], text)
			for line := range strings.Lines(text) {
				if at < len(widths) {
					widths[at] = max(widths[at], uniseg.StringWidth(line))
				}
			}
		}
	}
	var columns, rows strings.Builder
	for at, width := range widths {
		widths[at] = min(max(width, minWidth), maxWidth) + 2
		fmt.Fprintf(&columns, `<col min="%d" max="%d" width="%d" customWidth="1"/>`, at+1, at+1, widths[at])
	}
	for i, row := range texts {
		fmt.Fprintf(&rows, `<row r="%d"%s>`, i+1, rowHeight(row, widths, i == 0))
		for at, text := range row {
			rows.WriteString(`<c r="` + wording.ColumnName(at) + strconv.Itoa(i+1) + `"` + cellXML(text, i == 0))
		}
		rows.WriteString(`</row>`)
	}
	return xmlHead + `<worksheet xmlns="` + sheetNamespace + `"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>` +
		`<cols>` + columns.String() + `</cols><sheetData>` + rows.String() + `</sheetData></worksheet>`
}

const (
	// lineHeight is the height of a row of one line, in points, and maxHeight that of the highest row of Excel.
	lineHeight, maxHeight = 15, 409
)

// rowHeight returns the attributes for the height of a row whose cells have several lines. LibreOffice does
// not find it by itself.
func rowHeight(row []string, widths []int, head bool) string {
	most := 1
	for at, text := range row {
		if at >= len(widths) || !head && !strings.Contains(text, "\n") {
			continue // it does not wrap
		}
		lines := 0
		for line := range strings.SplitSeq(text, "\n") {
			lines += max(1, (uniseg.StringWidth(line)+widths[at]-1)/widths[at])
		}
		most = max(most, lines)
	}
	if most == 1 {
		return ""
	}
	return fmt.Sprintf(` ht="%d" customHeight="1"`, min(most*lineHeight, maxHeight))
}

var (
	plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,14})?$`)
	withCommas  = regexp.MustCompile(`^-?[1-9][0-9]{0,2}(,[0-9]{3}){1,4}(\.[0-9]{1,2})?$`)
	percentage  = regexp.MustCompile(`^-?[0-9]{1,9}(\.[0-9]{1,9})? ?%$`)
)

// cellXML returns the rest of a cell's element, after the reference: its type and text.
func cellXML(text string, head bool) string {
	if !head {
		if value, style, ok := typedValue(text); ok {
			return fmt.Sprintf(` s="%d"><v>%s</v></c>`, style, value)
		}
		if value, ok := map[string]int{"FALSE": 0, "TRUE": 1}[text]; ok {
			return fmt.Sprintf(` t="b"><v>%d</v></c>`, value)
		}
	}
	style := styleNone
	switch {
	case text == "":
		return `/>`
	case head:
		style = styleHead
	case strings.Contains(text, "\n"):
		style = styleLines
	}
	if units := []rune(text); len(units) > maxCellText {
		text = string(units[:maxCellText]) + "…"
	}
	return fmt.Sprintf(` s="%d" t="inlineStr"><is><t xml:space="preserve">%s</t></is></c>`, style, strings.ReplaceAll(escapeXString(text), "&#xA;", "\n"))
}

// escapedCharacter begins what Excel reads as a character (ECMA-376, 22.9.2.19).
var escapedCharacter = regexp.MustCompile(`_x[0-9A-Fa-f]{4}`)

// escapeXString escapes a text for a cell or the name of a sheet.
func escapeXString(text string) string {
	return escapeXML(escapedCharacter.ReplaceAllString(text, "_x005F$0"))
}

// typedValue returns a number, percentage or date as a workbook stores it, and its style.
func typedValue(text string) (value string, style int, ok bool) {
	switch {
	case plainNumber.MatchString(text):
		return text, styleNone, true
	case withCommas.MatchString(text):
		style = styleThousands
		if strings.Contains(text, ".") {
			style = styleThousandths
		}
		return strings.ReplaceAll(text, ",", ""), style, true
	case percentage.MatchString(text):
		n, err := strconv.ParseFloat(strings.TrimRight(text, " %"), 64)
		style = stylePercent
		if strings.Contains(text, ".") {
			style = stylePercents
		}
		return strconv.FormatFloat(n/100, 'g', 15, 64), style, err == nil
	}
	for layout, style := range map[string]int{time.DateOnly: styleDate, "2006-01-02 15:04": styleTime} {
		if at, err := time.Parse(layout, text); err == nil && at.Year() > 1900 && at.Year() < 10_000 {
			days := at.Sub(time.Date(1899, time.December, 30, 0, 0, 0, 0, time.UTC)).Hours() / 24
			return strconv.FormatFloat(days, 'f', -1, 64), style, true
		}
	}
	return "", 0, false
}

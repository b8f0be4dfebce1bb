package google

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// sheets emulates spreadsheets.
type sheets struct {
	*owner
	spreadsheets *shelf
	cells        map[string]map[string][][]any // by the spreadsheet's id and the sheet's title
}

func newSheets(o *owner) offer {
	s := &sheets{o, newShelf("spreadsheetId"), map[string]map[string][][]any{}}
	s.seed()
	return offer{map[string]handler{
		"sheets.spreadsheets.values.get":    s.readCells,
		"sheets.spreadsheets.values.update": s.writeCells,
		"sheets.spreadsheets.values.append": s.appendCells,
		"sheets.spreadsheets.values.clear":  s.clearCells,
		"sheets.spreadsheets.batchUpdate":   s.updateSpreadsheet,
	}, map[string]collection{
		"sheets.spreadsheets": {shelf: s.spreadsheets, key: "spreadsheetId", mint: "sheet", made: s.made},
	}}
}

// made completes a new spreadsheet.
func (s *sheets) made(_ *call, d doc) {
	id := fmt.Sprint(d["spreadsheetId"])
	d["spreadsheetUrl"] = "https://docs.google.com/spreadsheets/d/" + id + "/edit"
	if len(list(d["sheets"])) == 0 {
		d["sheets"] = []any{doc{"properties": doc{"title": "Sheet1"}}}
	}
	s.cells[id] = map[string][][]any{}
	for i, sheet := range list(d["sheets"]) {
		props, _ := sheet.(doc)["properties"].(doc)
		props["sheetId"], props["index"], props["sheetType"] = i, i, "GRID"
		props["gridProperties"] = doc{"rowCount": 1000, "columnCount": 26}
		s.cells[id][fmt.Sprint(props["title"])] = nil
	}
}

// area is a range of cells. The ends are exclusive; 0 means open.
type area struct {
	sheet                    string
	row, col, endRow, endCol int
}

var corner = regexp.MustCompile(`^([A-Za-z]*)([0-9]*)$`)

// area parses a range in A1 notation; without a sheet it is in the first one.
func (s *sheets) area(spreadsheet, text string) (area, *rejection) {
	d, ok := s.spreadsheets.find("", spreadsheet)
	if !ok {
		return area{}, missing(spreadsheet)
	}
	first, _ := list(d["sheets"])[0].(doc)["properties"].(doc)
	a := area{sheet: fmt.Sprint(first["title"])}
	name, cells, named := strings.Cut(text, "!")
	name = strings.Trim(name, "'")
	_, exists := s.cells[spreadsheet][name]
	switch {
	case named:
		a.sheet = name
	case exists:
		a.sheet, cells = name, ""
	default:
		cells = text
	}
	if _, ok := s.cells[spreadsheet][a.sheet]; !ok {
		return area{}, invalid("Unable to parse range: %s", text)
	}
	if cells == "" {
		return a, nil
	}
	from, to, two := strings.Cut(cells, ":")
	start, end := corner.FindStringSubmatch(from), corner.FindStringSubmatch(to)
	if start == nil || end == nil || from == "" || two && to == "" {
		return area{}, invalid("Unable to parse range: %s", text)
	}
	a.col, a.row = max(column(start[1])-1, 0), max(number(start[2])-1, 0)
	if !two {
		end = start
	}
	a.endCol, a.endRow = column(end[1]), number(end[2])
	return a, nil
}

func column(letters string) int {
	n := 0
	for _, r := range strings.ToUpper(letters) {
		n = n*26 + int(r-'A') + 1
	}
	return n
}

func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// letters returns the name of a column, counted from 1.
func letters(n int) string {
	name := ""
	for ; n > 0; n = (n - 1) / 26 {
		name = string(rune('A'+(n-1)%26)) + name
	}
	return name
}

// named returns the range of a block of cells as Google writes it.
func (a area) named(rows, cols int) string {
	from := letters(a.col+1) + strconv.Itoa(a.row+1)
	to := letters(a.col+max(cols, 1)) + strconv.Itoa(a.row+max(rows, 1))
	if from == to {
		return a.sheet + "!" + from
	}
	return a.sheet + "!" + from + ":" + to
}

// whole returns the requested range, with open ends closed.
func (a area) whole() string {
	rows, cols := a.endRow-a.row, a.endCol-a.col
	if a.endRow == 0 {
		rows = 1000
	}
	if a.endCol == 0 {
		cols = 26
	}
	return a.named(rows, cols)
}

// cut returns the rows in the area, without empty ends.
func (a area) cut(rows [][]any) []any {
	var out []any
	for i := a.row; i < len(rows) && (a.endRow == 0 || i < a.endRow); i++ {
		row := []any{}
		for j := a.col; j < len(rows[i]) && (a.endCol == 0 || j < a.endCol); j++ {
			row = append(row, rows[i][j])
		}
		for len(row) > 0 && (row[len(row)-1] == "" || row[len(row)-1] == nil) {
			row = row[:len(row)-1]
		}
		out = append(out, row)
	}
	for len(out) > 0 && len(out[len(out)-1].([]any)) == 0 {
		out = out[:len(out)-1]
	}
	return out
}

func (s *sheets) readCells(c *call) (any, *rejection) {
	id := c.vars["spreadsheetId"]
	a, rej := s.area(id, c.vars["range"])
	if rej != nil {
		return nil, rej
	}
	answer := doc{"range": a.whole(), "majorDimension": "ROWS"}
	if values := a.cut(s.cells[id][a.sheet]); len(values) > 0 {
		answer["values"] = values
	}
	return answer, nil
}

// write puts rows into a sheet and reports what it did.
func (s *sheets) write(id string, a area, rows []any) doc {
	sheet := s.cells[id][a.sheet]
	cols, count := 0, 0
	for i, r := range rows {
		for len(sheet) <= a.row+i {
			sheet = append(sheet, nil)
		}
		line := sheet[a.row+i]
		for j, v := range list(r) {
			for len(line) <= a.col+j {
				line = append(line, "")
			}
			if v != nil { // null leaves the cell unchanged
				line[a.col+j] = v
			}
			count++
			cols = max(cols, j+1)
		}
		sheet[a.row+i] = line
	}
	s.cells[id][a.sheet] = sheet
	return doc{
		"spreadsheetId": id, "updatedRange": a.named(len(rows), cols), "updatedRows": len(rows),
		"updatedColumns": cols, "updatedCells": count,
	}
}

// entered checks how values are to be interpreted.
func (c *call) entered() *rejection {
	if option := c.query.Get("valueInputOption"); option != "RAW" && option != "USER_ENTERED" {
		return invalid("'valueInputOption' is required but not specified")
	}
	if given, ok := c.body["range"].(string); ok && given != "" && given != c.vars["range"] {
		return invalid("Requested writing within range [%s], but tried writing to [%s]", c.vars["range"], given)
	}
	return nil
}

func (s *sheets) writeCells(c *call) (any, *rejection) {
	if rej := c.entered(); rej != nil {
		return nil, rej
	}
	id := c.vars["spreadsheetId"]
	a, rej := s.area(id, c.vars["range"])
	if rej != nil {
		return nil, rej
	}
	rows := list(c.body["values"])
	if a.endRow > 0 && len(rows) > a.endRow-a.row && a.endRow > a.row+1 {
		return nil, invalid("Requested writing within range [%s], but tried writing to row [%d]", c.vars["range"], a.row+len(rows))
	}
	return s.write(id, a, rows), nil
}

func (s *sheets) appendCells(c *call) (any, *rejection) {
	if rej := c.entered(); rej != nil {
		return nil, rej
	}
	id := c.vars["spreadsheetId"]
	a, rej := s.area(id, c.vars["range"])
	if rej != nil {
		return nil, rej
	}
	old := len(s.cells[id][a.sheet])
	answer := doc{"spreadsheetId": id}
	if old > 0 {
		answer["tableRange"] = area{sheet: a.sheet}.named(old, len(s.cells[id][a.sheet][0]))
	}
	answer["updates"] = s.write(id, area{sheet: a.sheet, row: old}, list(c.body["values"]))
	return answer, nil
}

func (s *sheets) clearCells(c *call) (any, *rejection) {
	id := c.vars["spreadsheetId"]
	a, rej := s.area(id, c.vars["range"])
	if rej != nil {
		return nil, rej
	}
	rows := s.cells[id][a.sheet]
	for i := a.row; i < len(rows) && (a.endRow == 0 || i < a.endRow); i++ {
		for j := a.col; j < len(rows[i]) && (a.endCol == 0 || j < a.endCol); j++ {
			rows[i][j] = ""
		}
	}
	return doc{"spreadsheetId": id, "clearedRange": a.whole()}, nil
}

// updateSpreadsheet runs the request that adds a sheet; others get an empty reply, as Google
// gives most of them.
func (s *sheets) updateSpreadsheet(c *call) (any, *rejection) {
	id := c.vars["spreadsheetId"]
	d, ok := s.spreadsheets.find("", id)
	requests := list(c.body["requests"])
	if !ok {
		return nil, missing(id)
	}
	if len(requests) == 0 {
		return nil, invalid("Must specify at least one request.")
	}
	var replies []any
	for _, r := range requests {
		add, isAdd := r.(doc)["addSheet"].(doc)
		if !isAdd {
			replies = append(replies, doc{})
			continue
		}
		props, _ := add["properties"].(doc)
		title := fmt.Sprint(props["title"])
		if _, taken := s.cells[id][title]; taken {
			return nil, invalid("Invalid requests[0].addSheet: A sheet with the name %q already exists.", title)
		}
		sheets := list(d["sheets"])
		s.next++
		sheet := doc{
			"title": title, "sheetId": s.next, "index": len(sheets), "sheetType": "GRID",
			"gridProperties": doc{"rowCount": 1000, "columnCount": 26},
		}
		d["sheets"] = append(sheets, doc{"properties": sheet})
		s.cells[id][title] = nil
		replies = append(replies, doc{"addSheet": doc{"properties": sheet}})
	}
	return doc{"spreadsheetId": id, "replies": replies}, nil
}

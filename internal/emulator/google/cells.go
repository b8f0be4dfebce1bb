package google

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// sheets emulates spreadsheets.
type sheets struct {
	*account
	spreadsheets *store
	cells        map[string]map[string][][]any // by the spreadsheet's id and the sheet's title
}

func newSheets(o *account) implementation {
	s := &sheets{o, newStore("spreadsheetId"), map[string]map[string][][]any{}}
	s.seed()
	return implementation{map[string]handler{
		"sheets.spreadsheets.values.get":    s.readCells,
		"sheets.spreadsheets.values.update": s.writeCells,
		"sheets.spreadsheets.values.append": s.appendCells,
		"sheets.spreadsheets.values.clear":  s.clearCells,
		"sheets.spreadsheets.batchUpdate":   s.updateSpreadsheet,
	}, map[string]collection{
		"sheets.spreadsheets": {store: s.spreadsheets, idParam: "spreadsheetId", idPrefix: "sheet", onCreate: s.completeSpreadsheet},
	}}
}

// completeSpreadsheet fills in the fields of a new spreadsheet that the server sets.
func (s *sheets) completeSpreadsheet(_ *call, d doc) {
	id := fmt.Sprint(d["spreadsheetId"])
	d["spreadsheetUrl"] = "https://docs.google.com/spreadsheets/d/" + id + "/edit"
	if len(asList(d["sheets"])) == 0 {
		d["sheets"] = []any{doc{"properties": doc{"title": "Sheet1"}}}
	}
	s.cells[id] = map[string][][]any{}
	for i, sheet := range asList(d["sheets"]) {
		props, _ := sheet.(doc)["properties"].(doc)
		props["sheetId"], props["index"], props["sheetType"] = i, i, "GRID"
		props["gridProperties"] = doc{"rowCount": 1000, "columnCount": 26}
		s.cells[id][fmt.Sprint(props["title"])] = nil
	}
}

// cellRange is a range of cells. Rows and columns count from 0. The ends are exclusive; 0 means an open
// end.
type cellRange struct {
	sheet                    string
	row, col, endRow, endCol int
}

var cellPattern = regexp.MustCompile(`^([A-Za-z]*)([0-9]*)$`)

// parseRange parses a range in A1 notation. Without the name of a sheet, the range is in the first one.
func (s *sheets) parseRange(spreadsheet, text string) (cellRange, *rejection) {
	d, ok := s.spreadsheets.find("", spreadsheet)
	if !ok {
		return cellRange{}, notFound(spreadsheet)
	}
	first, _ := asList(d["sheets"])[0].(doc)["properties"].(doc)
	a := cellRange{sheet: fmt.Sprint(first["title"])}
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
		return cellRange{}, invalidArgument("Unable to parse range: %s", text)
	}
	if cells == "" {
		return a, nil
	}
	from, to, two := strings.Cut(cells, ":")
	start, end := cellPattern.FindStringSubmatch(from), cellPattern.FindStringSubmatch(to)
	if start == nil || end == nil || from == "" || two && to == "" {
		return cellRange{}, invalidArgument("Unable to parse range: %s", text)
	}
	a.col, a.row = max(columnNumber(start[1])-1, 0), max(rowNumber(start[2])-1, 0)
	if !two {
		end = start
	}
	a.endCol, a.endRow = columnNumber(end[1]), rowNumber(end[2])
	return a, nil
}

func columnNumber(letters string) int {
	n := 0
	for _, r := range strings.ToUpper(letters) {
		n = n*26 + int(r-'A') + 1
	}
	return n
}

func rowNumber(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// columnName returns the letters of a column, counted from 1.
func columnName(n int) string {
	name := ""
	for ; n > 0; n = (n - 1) / 26 {
		name = string(rune('A'+(n-1)%26)) + name
	}
	return name
}

// notation returns the A1 notation of a block of cells that begins where the range does.
func (a cellRange) notation(rows, cols int) string {
	from := columnName(a.col+1) + strconv.Itoa(a.row+1)
	to := columnName(a.col+max(cols, 1)) + strconv.Itoa(a.row+max(rows, 1))
	if from == to {
		return a.sheet + "!" + from
	}
	return a.sheet + "!" + from + ":" + to
}

// closedNotation returns the A1 notation of the range, with open ends closed.
func (a cellRange) closedNotation() string {
	rows, cols := a.endRow-a.row, a.endCol-a.col
	if a.endRow == 0 {
		rows = 1000
	}
	if a.endCol == 0 {
		cols = 26
	}
	return a.notation(rows, cols)
}

// selectRows returns the rows in the range, without empty cells and rows at the end.
func (a cellRange) selectRows(rows [][]any) []any {
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
	a, rej := s.parseRange(id, c.vars["range"])
	if rej != nil {
		return nil, rej
	}
	answer := doc{"range": a.closedNotation(), "majorDimension": "ROWS"}
	if values := a.selectRows(s.cells[id][a.sheet]); len(values) > 0 {
		answer["values"] = values
	}
	return answer, nil
}

// writeRows writes rows into a sheet and returns a description of the update.
func (s *sheets) writeRows(id string, a cellRange, rows []any) doc {
	sheet := s.cells[id][a.sheet]
	cols, count := 0, 0
	for i, r := range rows {
		for len(sheet) <= a.row+i {
			sheet = append(sheet, nil)
		}
		line := sheet[a.row+i]
		for j, v := range asList(r) {
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
		"spreadsheetId": id, "updatedRange": a.notation(len(rows), cols), "updatedRows": len(rows),
		"updatedColumns": cols, "updatedCells": count,
	}
}

// checkInputOption checks valueInputOption, and that the range in the body is that in the path.
func (c *call) checkInputOption() *rejection {
	if option := c.query.Get("valueInputOption"); option != "RAW" && option != "USER_ENTERED" {
		return invalidArgument("'valueInputOption' is required but not specified")
	}
	if given, ok := c.body["range"].(string); ok && given != "" && given != c.vars["range"] {
		return invalidArgument("Requested writing within range [%s], but tried writing to [%s]", c.vars["range"], given)
	}
	return nil
}

func (s *sheets) writeCells(c *call) (any, *rejection) {
	if rej := c.checkInputOption(); rej != nil {
		return nil, rej
	}
	id := c.vars["spreadsheetId"]
	a, rej := s.parseRange(id, c.vars["range"])
	if rej != nil {
		return nil, rej
	}
	rows := asList(c.body["values"])
	if a.endRow > 0 && len(rows) > a.endRow-a.row && a.endRow > a.row+1 {
		return nil, invalidArgument("Requested writing within range [%s], but tried writing to row [%d]", c.vars["range"], a.row+len(rows))
	}
	return s.writeRows(id, a, rows), nil
}

func (s *sheets) appendCells(c *call) (any, *rejection) {
	if rej := c.checkInputOption(); rej != nil {
		return nil, rej
	}
	id := c.vars["spreadsheetId"]
	a, rej := s.parseRange(id, c.vars["range"])
	if rej != nil {
		return nil, rej
	}
	old := len(s.cells[id][a.sheet])
	answer := doc{"spreadsheetId": id}
	if old > 0 {
		answer["tableRange"] = cellRange{sheet: a.sheet}.notation(old, len(s.cells[id][a.sheet][0]))
	}
	answer["updates"] = s.writeRows(id, cellRange{sheet: a.sheet, row: old}, asList(c.body["values"]))
	return answer, nil
}

func (s *sheets) clearCells(c *call) (any, *rejection) {
	id := c.vars["spreadsheetId"]
	a, rej := s.parseRange(id, c.vars["range"])
	if rej != nil {
		return nil, rej
	}
	rows := s.cells[id][a.sheet]
	for i := a.row; i < len(rows) && (a.endRow == 0 || i < a.endRow); i++ {
		for j := a.col; j < len(rows[i]) && (a.endCol == 0 || j < a.endCol); j++ {
			rows[i][j] = ""
		}
	}
	return doc{"spreadsheetId": id, "clearedRange": a.closedNotation()}, nil
}

// updateSpreadsheet runs requests that add a sheet. Others get an empty reply, which Google gives to
// most of them.
func (s *sheets) updateSpreadsheet(c *call) (any, *rejection) {
	id := c.vars["spreadsheetId"]
	d, ok := s.spreadsheets.find("", id)
	requests := asList(c.body["requests"])
	if !ok {
		return nil, notFound(id)
	}
	if len(requests) == 0 {
		return nil, invalidArgument("Must specify at least one request.")
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
			return nil, invalidArgument("Invalid requests[0].addSheet: A sheet with the name %q already exists.", title)
		}
		sheets := asList(d["sheets"])
		s.lastID++
		sheet := doc{
			"title": title, "sheetId": s.lastID, "index": len(sheets), "sheetType": "GRID",
			"gridProperties": doc{"rowCount": 1000, "columnCount": 26},
		}
		d["sheets"] = append(sheets, doc{"properties": sheet})
		s.cells[id][title] = nil
		replies = append(replies, doc{"addSheet": doc{"properties": sheet}})
	}
	return doc{"spreadsheetId": id, "replies": replies}, nil
}

package drive

import (
	"cmp"
	"context"
	"encoding/json"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/sheets/v4"

	"oneclaw/toolgroups/google/service"
)

// sheetsFields are the fields of a spreadsheet except its cells.
const sheetsFields = "spreadsheetId,properties,sheets.properties"

// Sheets returns the group of tools for spreadsheets.
func Sheets() service.Group {
	return service.Group{
		Name:      "google_sheets",
		Scopes:    []string{sheets.SpreadsheetsScope},
		Manifests: manifests,
		Operations: service.Operations{
			"sheetsGet":          service.NewOperation(sheets.NewService, sheetsGet),
			"sheetsReadValues":   service.NewOperation(sheets.NewService, sheetsReadValues),
			"sheetsWriteValues":  service.NewOperation(sheets.NewService, sheetsWriteValues),
			"sheetsAppendValues": service.NewOperation(sheets.NewService, sheetsAppendValues),
			"sheetsClearValues":  service.NewOperation(sheets.NewService, sheetsClearValues),
			"sheetsAddSheet":     service.NewOperation(sheets.NewService, sheetsAddSheet),
			"sheetsBatchUpdate":  service.NewOperation(sheets.NewService, sheetsBatchUpdate),
			"sheetsMetadata":     service.NewOperation(sheets.NewService, sheetsMetadata),
			"sheetsCreate":       service.AsksAmongOthers(service.NewOperation(sheets.NewService, sheetsCreate), sheetArgs.hides),
		},
		Resources: service.Resources{
			"spreadsheet_id": describesFile().Or(service.NewOperation(sheets.NewService, sheetsTitle)),
		},
	}
}

type sheetArgs struct {
	SpreadsheetID    string            `json:"spreadsheet_id"`
	Range            string            `json:"range"`
	Values           [][]any           `json:"values"`
	ValueInputOption string            `json:"value_input_option"`
	Title            string            `json:"title"`
	SheetTitles      []string          `json:"sheet_titles"`
	Fields           string            `json:"fields"`
	Requests         []json.RawMessage `json:"requests"`
}

// sheetTab is a tab in the result of sheets_get.
type sheetTab struct {
	ID      int64  `json:"sheetId"`
	Title   string `json:"title"`
	Index   int64  `json:"index"`
	Rows    int64  `json:"rowCount"`
	Columns int64  `json:"columnCount"`
}

type sheetInfo struct {
	SpreadsheetID string     `json:"spreadsheetId"`
	Title         string     `json:"title"`
	Sheets        []sheetTab `json:"sheets"`
}

func sheetsGet(ctx context.Context, api *sheets.Service, _ *service.Conn, in sheetArgs) (any, error) {
	s, err := api.Spreadsheets.Get(in.SpreadsheetID).Context(ctx).Fields(sheetsFields).Do()
	if err != nil {
		return nil, err
	}
	out := sheetInfo{SpreadsheetID: s.SpreadsheetId, Sheets: []sheetTab{}}
	if s.Properties != nil {
		out.Title = s.Properties.Title
	}
	for _, sheet := range s.Sheets {
		p := sheet.Properties
		if p == nil {
			continue
		}
		tab := sheetTab{ID: p.SheetId, Title: p.Title, Index: p.Index}
		if p.GridProperties != nil {
			tab.Rows, tab.Columns = p.GridProperties.RowCount, p.GridProperties.ColumnCount
		}
		out.Sheets = append(out.Sheets, tab)
	}
	return out, nil
}

func sheetsReadValues(ctx context.Context, api *sheets.Service, _ *service.Conn, in sheetArgs) (any, error) {
	v, err := api.Spreadsheets.Values.Get(in.SpreadsheetID, in.Range).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	return map[string]any{"range": v.Range, "values": service.OrEmpty(v.Values)}, nil
}

func sheetsWriteValues(ctx context.Context, api *sheets.Service, _ *service.Conn, in sheetArgs) (any, error) {
	if len(in.Values) == 0 {
		return nil, service.Invalidf("'values' is empty; sheets_clear_values empties cells")
	}
	return api.Spreadsheets.Values.Update(in.SpreadsheetID, in.Range, &sheets.ValueRange{Values: in.Values}).Context(ctx).
		ValueInputOption(cmp.Or(in.ValueInputOption, "USER_ENTERED")).
		Fields("updatedRange,updatedRows,updatedColumns,updatedCells").Do()
}

func sheetsAppendValues(ctx context.Context, api *sheets.Service, _ *service.Conn, in sheetArgs) (any, error) {
	if len(in.Values) == 0 {
		return nil, service.Invalidf("'values' is empty")
	}
	return api.Spreadsheets.Values.Append(in.SpreadsheetID, in.Range, &sheets.ValueRange{Values: in.Values}).Context(ctx).
		ValueInputOption("USER_ENTERED").InsertDataOption("INSERT_ROWS").Fields("tableRange,updates").Do()
}

func sheetsClearValues(ctx context.Context, api *sheets.Service, _ *service.Conn, in sheetArgs) (any, error) {
	return api.Spreadsheets.Values.Clear(in.SpreadsheetID, in.Range, &sheets.ClearValuesRequest{}).Context(ctx).Fields("clearedRange").Do()
}

func sheetsAddSheet(ctx context.Context, api *sheets.Service, _ *service.Conn, in sheetArgs) (any, error) {
	add := &sheets.Request{AddSheet: &sheets.AddSheetRequest{Properties: &sheets.SheetProperties{Title: in.Title}}}
	return api.Spreadsheets.BatchUpdate(in.SpreadsheetID, &sheets.BatchUpdateSpreadsheetRequest{Requests: []*sheets.Request{add}}).
		Context(ctx).Fields("replies").Do()
}

func sheetsBatchUpdate(ctx context.Context, api *sheets.Service, c *service.Conn, in sheetArgs) (any, error) {
	return service.BatchUpdate(ctx, c, api.BasePath+"v4/spreadsheets/", "spreadsheetId", in.SpreadsheetID, in.Requests...)
}

func sheetsMetadata(ctx context.Context, api *sheets.Service, _ *service.Conn, in sheetArgs) (any, error) {
	return api.Spreadsheets.Get(in.SpreadsheetID).Context(ctx).Fields(googleapi.Field(cmp.Or(in.Fields, sheetsFields+",namedRanges"))).Do()
}

// hides reports whether a new file holds more of the arguments than the card shows that later shares it.
func (in sheetArgs) hides() bool { return len(in.SheetTitles) > 0 || !service.QuotesWhole(in.Title) }

func sheetsCreate(ctx context.Context, api *sheets.Service, _ *service.Conn, in sheetArgs) (any, error) {
	s := &sheets.Spreadsheet{Properties: &sheets.SpreadsheetProperties{Title: in.Title}}
	for _, title := range in.SheetTitles {
		s.Sheets = append(s.Sheets, &sheets.Sheet{Properties: &sheets.SheetProperties{Title: title}})
	}
	return api.Spreadsheets.Create(s).Context(ctx).Do()
}

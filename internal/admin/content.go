package admin

import (
	"errors"
	"maps"
	"net/url"
	"strings"
	"time"

	"oneclaw/internal/admin/signin"
)

// errNotFound is returned by a view for something that does not exist, or no longer exists.
var errNotFound = errors.New("admin: not found")

// request is a request to a view.
type request struct {
	visitor signin.Session
	// query is the query of the address. form is a submitted form of the view; nil if the view is only shown.
	query, form url.Values
	path        string
}

// link returns the address of this page with another value in its query; an empty value removes the name.
func (r request) link(name, value string) string {
	query := url.Values{}
	maps.Copy(query, r.query)
	query.Del(name)
	if value == "" {
		return viewURL(r.path, query)
	}
	query.Set(name, value)
	return viewURL(r.path, query)
}

// viewURL returns the address of a view.
func viewURL(view string, query url.Values) string {
	if len(query) == 0 {
		return Root + view
	}
	return Root + view + "?" + query.Encode()
}

// page is the content of a page.
type page struct {
	// Title is the heading; empty for the view's. Lead is the text below it.
	Title, Lead string
	Sections    []section
}

// section is a part of a page. Empty parts are left out.
type section struct {
	// ID is what links to the section end with, after a #; empty for none.
	ID, Title string
	Mood      mood
	// Text is one paragraph per element.
	Text  []string
	Facts []fact
	// Items are the items of a list.
	Items []cell
	// Quotes are texts of users, models and tools: shown with their line breaks.
	Quotes []quote
	Forms  []form
	Table  *table
}

// fact is a name with its value.
type fact struct {
	Name  string
	Value cell
}

// quote is a text and, if it is known, who wrote it.
type quote struct {
	By, Text string
	// Markdown renders the text.
	Markdown bool
}

// mood is the colour of a cell or a section. The text has to express the same.
type mood string

const (
	good  mood = "good"
	bad   mood = "bad"
	muted mood = "soft"
)

// cell is a text, a time or a number, optionally with a link.
type cell struct {
	Text string
	Time time.Time
	// Number aligns the cell to the right.
	Number bool
	Mood   mood
	// Link is the target of the text: an address of this site.
	Link string
	// Bar is the length of a bar in place of the text, at most 1; 0 for none.
	Bar   float64
	Forms []form
}

func text(text string) cell { return cell{Text: text} }

// at returns a cell with a time; empty for the zero time.
func at(t time.Time) cell { return cell{Time: t} }

// number returns a cell with a formatted number.
func number(text string) cell { return cell{Text: text, Number: true} }

// table is a table. The first cell of each row is its heading.
type table struct {
	Caption string
	Columns []cell
	Rows    [][]cell
	// Next and First are the addresses of the next page and of the first, or empty.
	Next, First string
	// Note says how far a search looked. Empty is shown instead of a table without rows.
	Note, Empty string
}

// columns returns the heads of columns; # before a name marks a column of numbers.
func columns(names ...string) []cell {
	heads := make([]cell, len(names))
	for i, name := range names {
		shown, isNumber := strings.CutPrefix(name, "#")
		heads[i] = cell{Text: shown, Number: isNumber}
	}
	return heads
}

// form is an action or, with IsSearch, a search. View is the path of the view that handles it.
type form struct {
	View     string
	IsSearch bool
	Fields   []field
	Submit   string
	// About describes the button's row for screen readers.
	About  string
	Danger bool
}

// field is a field of a form. Without a label it is hidden; with options it is a choice of one of them.
type field struct {
	Name, Label, Value, Hint string
	Options                  []option
}

// option is an option of a choice.
type option struct{ Value, Label string }

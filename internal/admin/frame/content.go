package frame

import (
	"errors"
	"net/url"
	"slices"
	"time"
)

// ErrNotFound is returned by a view for something that does not exist, or no longer exists.
var ErrNotFound = errors.New("frame: not found")

// Visitor is the user of a page.
type Visitor struct {
	// Person is platform:id, Name the name on the platform.
	Person, Name string
	// CSRF is the token for the field csrf of each form.
	CSRF string
}

// Request is a request to a view.
type Request struct {
	Visitor Visitor
	// Query is the query of the address, Form a submitted form.
	Query, Form url.Values
	// Limit is how many rows a table may have: in a file more than on a page.
	Limit int

	path string
}

// Link returns the address of this page with changed query values: name, value, name, value. An
// empty value removes the name.
func (r Request) Link(pairs ...string) string {
	query := url.Values{}
	for name, values := range r.Query {
		if name != csvParameter {
			query[name] = values
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Del(pairs[i])
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	return buildURL(r.path, query)
}

// ViewURL returns the address of a view, with a query of name, value, name, value.
func ViewURL(view string, pairs ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return buildURL(Root+view, query)
}

func buildURL(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// Page is the content of a page.
type Page struct {
	// Title is the heading; empty for the view's.
	Title string
	// Lead is the text below the heading.
	Lead     string
	Sections []Section
}

// Section is a part of a page. Empty parts are left out.
type Section struct {
	Title string
	// Text is one paragraph per element.
	Text  []string
	Facts []Fact
	// Items are the items of a list.
	Items []string
	// Quotes are texts of users and models: shown with their line breaks and without any markup.
	Quotes []Quote
	Forms  []Form
	Bars   *Bars
	Steps  *Steps
	Table  *Table
}

// Fact is a name with its value.
type Fact struct {
	Name  string
	Value Cell
}

// Quote is a text of a user, a model or a tool, with its author.
type Quote struct{ By, Text string }

// Mood is the colour of a cell. The text of the cell has to express the same.
type Mood string

// The moods.
const (
	Plain Mood = ""
	Good  Mood = "good"
	Bad   Mood = "bad"
	Muted Mood = "soft"
)

// Cell is a text, a time or a number, optionally with a link.
type Cell struct {
	Text string
	Time time.Time
	// Number aligns the cell to the right.
	Number bool
	Mood   Mood
	// Link is the target of the text: an address of this site.
	Link  string
	Forms []Form
}

// Text returns a cell with a text.
func Text(text string) Cell { return Cell{Text: text} }

// Time returns a cell with a time; empty for the zero time.
func Time(t time.Time) Cell { return Cell{Time: t} }

// Number returns a cell with a formatted number.
func Number(text string) Cell { return Cell{Text: text, Number: true} }

// Column is the head of a column.
type Column struct {
	Name   string
	Number bool
}

// Table is a table. The first cell of each row is its heading.
type Table struct {
	// Name identifies the table on its page and names its file, in lower-case letters. Caption says
	// what the table lists.
	Name, Caption string
	Columns       []Column
	Rows          [][]Cell
	// Next and First are the addresses of the next page and of the first, or empty.
	Next, First string
	// SearchNote describes how far a search looked.
	SearchNote string
	// Empty is shown instead of a table without rows.
	Empty string
	// Collapsed hides the table at first, because it repeats a plot.
	Collapsed bool
}

// Columns makes columns from their names; # before a name marks a column of numbers.
func Columns(names ...string) []Column {
	columns := make([]Column, len(names))
	for i, name := range names {
		columns[i] = Column{Name: name}
		if name[0] == '#' {
			columns[i] = Column{Name: name[1:], Number: true}
		}
	}
	return columns
}

// Form is an action or, with IsSearch, a search.
type Form struct {
	// View is the path of the view that handles it.
	View     string
	IsSearch bool
	Fields   []Field
	Submit   string
	// About describes the button's row for screen readers.
	About  string
	Danger bool
}

// Field is a field of a form. Without a label it is hidden.
type Field struct {
	Name, Label, Value string
	// Options make the field a choice of one option, where Value is selected, or, with Multiple, of
	// several, where Values are.
	Options  []Option
	Multiple bool
	Values   []string
	Hint     string
}

// IsSelected reports whether a value is among Values.
func (f Field) IsSelected(value string) bool { return slices.Contains(f.Values, value) }

// Option is an option of a choice.
type Option struct{ Value, Label string }

package frame

import (
	"errors"
	"net/url"
	"slices"
	"time"
)

// ErrNotFound is returned by a view for something that there is not, or is not any more.
var ErrNotFound = errors.New("frame: not found")

// Visitor is who looks at a page.
type Visitor struct {
	// Person is platform:id, Name what the platform calls them.
	Person, Name string
	// CSRF is what each form carries in its field csrf.
	CSRF string
}

// Request is what a view is asked for.
type Request struct {
	Visitor Visitor
	// Query is that of the address, Form what a form was filled in with.
	Query, Form url.Values
	// Limit is how many rows a table should have: a file may have more than a page.
	Limit int

	path string
}

// Link is the address of this page with other values in its query: name, value, name, value.
// An empty value takes the name out.
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
	return address(r.path, query)
}

// To is the address of a view, with a query of name, value, name, value.
func To(view string, pairs ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return address(Root+view, query)
}

func address(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// Page is what a view shows.
type Page struct {
	// Title is the heading; empty for that of the view.
	Title string
	// Lead stands under the heading.
	Lead     string
	Sections []Section
}

// Section is a part of a page. What is empty is left out.
type Section struct {
	Title string
	// Text is one paragraph for each element.
	Text  []string
	Facts []Fact
	// Items are a list.
	Items []string
	// Quotes are what people and models wrote: shown with their line breaks, and as nothing
	// but text.
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

// Quote is what a user wrote.
type Quote struct{ By, Text string }

// Mood colours a cell. Its text has to say the same.
type Mood string

// The moods.
const (
	Plain Mood = ""
	Good  Mood = "good"
	Bad   Mood = "bad"
	Soft  Mood = "soft"
)

// Cell is a value: a text, a time or a number, perhaps with a link.
type Cell struct {
	Text string
	Time time.Time
	// Number is aligned to the right.
	Number bool
	Mood   Mood
	// Link is where the text leads: an address of this site.
	Link  string
	Forms []Form
}

// Text is a cell with a text.
func Text(text string) Cell { return Cell{Text: text} }

// At is a cell with a time; empty for the zero time.
func At(t time.Time) Cell { return Cell{Time: t} }

// Number is a cell with a number in words.
func Number(text string) Cell { return Cell{Text: text, Number: true} }

// Column is the head of a column.
type Column struct {
	Name   string
	Number bool
}

// Table is a list. The first cell of each row is its heading.
type Table struct {
	// Name is that of its file, in lower-case letters; Caption says what it lists.
	Name, Caption string
	Columns       []Column
	Rows          [][]Cell
	// Next and First are the addresses of the next page and of the first; empty where there
	// is none.
	Next, First string
	// Looked says how far a search looked.
	Looked string
	// Empty stands in the place of a table without rows.
	Empty string
	// Folded hides it until the reader asks: it is another form of a plot.
	Folded bool
}

// Columns makes columns of their names; one that begins with # has numbers.
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

// Form is something that can be done, or with Get a search.
type Form struct {
	// View is the path of the view that does it.
	View   string
	Get    bool
	Fields []Field
	Submit string
	// About says for those who hear the page what the button is about: the row it is in.
	About  string
	Danger bool
}

// Field is a part of a form. Without a label it is hidden.
type Field struct {
	Name, Label, Value string
	// Options make it a choice of values: of one, or with Many of any of them, which Values
	// are chosen.
	Options []Option
	Many    bool
	Values  []string
	Hint    string
}

// Chosen reports whether a value is one of several that are chosen.
func (f Field) Chosen(value string) bool { return slices.Contains(f.Values, value) }

// Option is one value to choose.
type Option struct{ Value, Label string }

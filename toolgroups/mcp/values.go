package mcp

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
)

// maxValues bounds how many values of JSON a message has. Decoded, each takes some hundred bytes
// however short it is: 16 MiB of "[]," take a gigabyte.
const maxValues = 200_000

// errTooMany is a message above that limit.
var errTooMany = errors.New("a message of the server has too many values")

// density counts the values of messages as they pass.
type density struct {
	lines   bool // messages come in lines that begin with "data:", and end with an empty one
	values  int
	column  int
	skipped bool // the line is none of a message
	text    bool
	escaped bool
}

// add takes what comes next, and reports whether that is within the limit. A text that goes on
// in the next line is none of JSON.
func (d *density) add(data []byte) bool {
	for _, c := range data {
		if d.lines && c == '\n' {
			if d.text {
				return false
			}
			if d.column == 0 {
				d.values = 0
			}
			d.column, d.skipped, d.escaped = 0, false, false
			continue
		}
		if d.column == 0 && c == '\r' {
			continue
		}
		d.skipped = d.skipped || d.lines && d.column == 0 && c != 'd'
		d.column++
		switch {
		case d.skipped:
		case d.escaped:
			d.escaped = false
		case d.text && c == '\\':
			d.escaped = true
		case c == '"':
			d.text = !d.text
		case !d.text && strings.IndexByte(",[{", c) >= 0:
			d.values++
		}
		if d.values > maxValues {
			return false
		}
	}
	return true
}

// fault remembers what was wrong with a message, which the library does not say.
type fault struct{ last atomic.Pointer[error] }

func (f *fault) note(err error) error {
	f.last.Store(&err)
	return err
}

func (f *fault) why() error {
	if err := f.last.Load(); err != nil {
		return *err
	}
	return nil
}

// counted is the body of an answer that ends where it has too many values.
type counted struct {
	io.ReadCloser
	density density
	fault   *fault
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if !c.density.add(p[:n]) {
		return 0, c.fault.note(errTooMany)
	}
	return n, err
}

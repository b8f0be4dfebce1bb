package mcp

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
)

// maxValues bounds the JSON values in a message. Decoded, each takes some hundred bytes however
// short it is: 16 MiB of "[]," take a gigabyte.
const maxValues = 200_000

// errTooMany is returned for a message above that limit.
var errTooMany = errors.New("a message of the server has too many values")

// valueCounter counts the values of messages as they pass.
type valueCounter struct {
	lines   bool // messages are lines that begin with "data:", and end with an empty one
	values  int
	column  int
	skipped bool // the line is not part of a message
	text    bool
	escaped bool
}

// add takes the next bytes, and reports whether the count is within the limit. A string that
// spans lines is not JSON.
func (d *valueCounter) add(data []byte) bool {
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

// messageFault records what was wrong with a message, which the library does not report.
type messageFault struct{ last atomic.Pointer[error] }

func (f *messageFault) note(err error) error {
	f.last.Store(&err)
	return err
}

func (f *messageFault) why() error {
	if err := f.last.Load(); err != nil {
		return *err
	}
	return nil
}

// countedBody is a response body that ends if it has too many values.
type countedBody struct {
	io.ReadCloser
	density valueCounter
	fault   *messageFault
}

func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if !c.density.add(p[:n]) {
		return 0, c.fault.note(errTooMany)
	}
	return n, err
}

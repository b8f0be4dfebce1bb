package mcp

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
)

// maxValues bounds the JSON values in a message. Each takes some hundred bytes when decoded, however
// short it is: 16 MiB of "[]," take a gigabyte.
const maxValues = 200_000

// errTooMany is returned for a message above that limit.
var errTooMany = errors.New("a message from the server has too many values")

// valueCounter counts the JSON values in a stream of messages.
type valueCounter struct {
	sse      bool // messages are lines that begin with "data:" and end with an empty line
	values   int
	column   int
	skipLine bool // the line is not part of a message
	inString bool
	escaped  bool
}

// add counts the values in the next bytes, and reports whether their number is within the limit. It
// returns false for a string that spans lines, which is not JSON.
func (d *valueCounter) add(data []byte) bool {
	for _, c := range data {
		if d.sse && c == '\n' {
			if d.inString {
				return false
			}
			if d.column == 0 {
				d.values = 0
			}
			d.column, d.skipLine, d.escaped = 0, false, false
			continue
		}
		if d.column == 0 && c == '\r' {
			continue
		}
		d.skipLine = d.skipLine || d.sse && d.column == 0 && c != 'd'
		d.column++
		switch {
		case d.skipLine:
		case d.escaped:
			d.escaped = false
		case d.inString && c == '\\':
			d.escaped = true
		case c == '"':
			d.inString = !d.inString
		case !d.inString && strings.IndexByte(",[{", c) >= 0:
			d.values++
		}
		if d.values > maxValues {
			return false
		}
	}
	return true
}

// messageFault records why a message was refused, which the library does not report.
type messageFault struct{ last atomic.Pointer[error] }

func (f *messageFault) record(err error) error {
	f.last.Store(&err)
	return err
}

func (f *messageFault) cause() error {
	if err := f.last.Load(); err != nil {
		return *err
	}
	return nil
}

// countedBody is a response body that fails if it has too many values.
type countedBody struct {
	io.ReadCloser
	counter valueCounter
	fault   *messageFault
}

func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if !c.counter.add(p[:n]) {
		return 0, c.fault.record(errTooMany)
	}
	return n, err
}

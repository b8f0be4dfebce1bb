package mcp

import (
	"errors"
	"strings"
	"sync/atomic"
)

// maxValues bounds the JSON values in a message. Each takes some hundred bytes when decoded, however
// short it is: 16 MiB of "[]," take a gigabyte.
const maxValues = 200_000

// errTooMany is returned for a message above that limit.
var errTooMany = errors.New("a message from the server has too many values")

// valueCounter counts the JSON values in a message.
type valueCounter struct {
	values   int
	inString bool
	escaped  bool
}

// add counts the values in data, and reports whether their number is within the limit.
func (d *valueCounter) add(data []byte) bool {
	for _, c := range data {
		switch {
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

package mcp

import (
	"math"
	"sync/atomic"
)

const (
	// maxValues bounds the JSON values that are decoded at once. Each takes some hundred bytes, however
	// short it is: 16 MiB of "[]," take a gigabyte.
	maxValues = 200_000
	// maxMembers bounds the members of an object whose values are not decoded with it.
	maxMembers = 1000
)

// hasTooManyValues reports whether JSON has more values than may be decoded.
func hasTooManyValues(data []byte) bool { return countValues(data, math.MaxInt) > maxValues }

// hasTooManyMembers reports whether an object has more members than may be decoded.
func hasTooManyMembers(data []byte) bool { return countValues(data, 1) > maxMembers }

// countValues counts the values in JSON down to a depth, roughly and at most to a bound.
func countValues(data []byte, within int) (values int) {
	depth, inString, escaped := 0, false, false
	for _, c := range data {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth <= within {
				values++
			}
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth <= within:
			values++
		}
		if values > maxValues {
			break
		}
	}
	return values
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

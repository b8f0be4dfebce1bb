package sandbox

import (
	"errors"
	"io"
)

// maxPart bounds the text in one message of an answer, in bytes.
const maxPart = 256 << 10

// ErrNoAnswer is returned if a child ends without an answer, because of its limits or a crash.
var ErrNoAnswer = errors.New("reading it took more time or memory than allowed")

// answerPart is a message of an answer: a part of its text, nothing at its end, or why there is none.
type answerPart struct {
	Data  []byte `json:"data,omitempty"`
	Fault string `json:"fault,omitempty"`
}

// SendAnswer sends a text of any length to the parent, which reads it from [Conn.Answer].
func (c *Conn) SendAnswer(text []byte) error {
	for from := 0; from < len(text); from += maxPart {
		if err := c.Send(answerPart{Data: text[from:min(from+maxPart, len(text))]}); err != nil {
			return err
		}
	}
	return c.Send(answerPart{})
}

// SendFault sends the reason why there is no answer.
func (c *Conn) SendFault(reason string) error { return c.Send(answerPart{Fault: reason}) }

// Answer returns a reader of the answer of a child. Its error is the child's, or [ErrNoAnswer].
func (c *Conn) Answer() io.Reader { return &answer{conn: c} }

type answer struct {
	conn *Conn
	part []byte
	err  error
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	for len(a.part) == 0 && a.err == nil {
		var r answerPart
		switch err := a.conn.Receive(&r); {
		case err != nil:
			a.err = ErrNoAnswer
		case r.Fault != "":
			a.err = errors.New(r.Fault)
		case len(r.Data) == 0:
			a.err = io.EOF
		}
		a.part = r.Data
	}
	if len(a.part) == 0 {
		return 0, a.err
	}
	n := copy(p, a.part)
	a.part = a.part[n:]
	return n, nil
}

package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxMessage bounds one message in bytes.
const maxMessage = 8 << 20

// errTooLong is returned by [Conn.Send] for a message longer than [maxMessage].
var errTooLong = errors.New("sandbox: a message is too long")

// Conn exchanges messages between parent and child, one JSON line each. Send may be used
// concurrently, Receive by one goroutine at a time.
type Conn struct {
	mu    sync.Mutex
	w     io.Writer
	lines *bufio.Scanner
}

// NewConn makes a connection that reads from in and writes to out.
func NewConn(in io.Reader, out io.Writer) *Conn {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxMessage)
	return &Conn{w: out, lines: lines}
}

// Send writes a message.
func (c *Conn) Send(message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("sandbox: encode a message: %w", err)
	}
	if len(line) >= maxMessage {
		return errTooLong
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.w.Write(append(line, '\n'))
	return err
}

// Receive reads a message. It returns io.EOF after the last one.
func (c *Conn) Receive(message any) error {
	if !c.lines.Scan() {
		if err := c.lines.Err(); err != nil {
			return fmt.Errorf("sandbox: read a message: %w", err)
		}
		return io.EOF
	}
	if err := json.Unmarshal(c.lines.Bytes(), message); err != nil {
		return fmt.Errorf("sandbox: read a message: %w", err)
	}
	return nil
}

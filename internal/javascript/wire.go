package javascript

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxFrame bounds one message in bytes. A text of [MaxResult] fits also where JSON
// needs six bytes for each of its own.
const maxFrame = 8 << 20

// maxValue bounds one argument or value within a message, in bytes.
const maxValue = maxFrame - 4<<10

// errFrame is returned for a message that is too long.
var errFrame = errors.New("javascript: a message is too long")

// task is the first message to the child.
type task struct {
	Source    string          `json:"source"`
	Entry     string          `json:"entry,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Prelude   string          `json:"prelude,omitempty"`
	Functions []string        `json:"functions,omitempty"`
	Check     bool            `json:"check,omitempty"`
}

// reply answers a call of the child.
type reply struct {
	ID    int             `json:"id"`
	Value json.RawMessage `json:"value,omitempty"`
	Error *string         `json:"error,omitempty"`
}

// report is a message of the child: a call, a line of the console, or the end.
type report struct {
	ID       int             `json:"id,omitempty"`
	Call     string          `json:"call,omitempty"`
	Argument json.RawMessage `json:"argument,omitempty"`

	Level string `json:"level,omitempty"`
	Text  string `json:"text,omitempty"`

	Done   bool `json:"done,omitempty"`
	Failed bool `json:"failed,omitempty"`
}

// sender writes messages, one a line. It may be used concurrently.
type sender struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *sender) send(message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("javascript: encode a message: %w", err)
	}
	if len(line) >= maxFrame {
		return errFrame
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = s.w.Write(append(line, '\n'))
	return err
}

// receiver reads messages.
type receiver struct{ lines *bufio.Scanner }

func newReceiver(r io.Reader) *receiver {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxFrame)
	return &receiver{lines}
}

// receive returns io.EOF behind the last message.
func (r *receiver) receive(message any) error {
	if !r.lines.Scan() {
		if err := r.lines.Err(); err != nil {
			return fmt.Errorf("javascript: read a message: %w", err)
		}
		return io.EOF
	}
	if err := json.Unmarshal(r.lines.Bytes(), message); err != nil {
		return fmt.Errorf("javascript: read a message: %w", err)
	}
	return nil
}

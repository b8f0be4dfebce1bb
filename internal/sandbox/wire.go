package sandbox

import (
	"encoding/json"
)

// maxValue bounds an argument or value in a message, in bytes. A text of [MaxResult] fits into a
// message even if JSON needs six bytes for each of its bytes.
const maxValue = maxMessage - 4<<10

// task is the first message to the child.
type task struct {
	Source    string          `json:"source"`
	Entry     string          `json:"entry,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Prelude   string          `json:"prelude,omitempty"`
	Functions []string        `json:"functions,omitempty"`
	Check     bool            `json:"check,omitempty"`
}

type reply struct {
	ID    int             `json:"id"`
	Value json.RawMessage `json:"value,omitempty"`
	Error *string         `json:"error,omitempty"`
}

// childMessage is a message from the child: a call, a console line, or the end.
type childMessage struct {
	ID       int             `json:"id,omitempty"`
	Call     string          `json:"call,omitempty"`
	Argument json.RawMessage `json:"argument,omitempty"`

	Level string `json:"level,omitempty"`
	Text  string `json:"text,omitempty"`

	Done   bool `json:"done,omitempty"`
	Failed bool `json:"failed,omitempty"`
}

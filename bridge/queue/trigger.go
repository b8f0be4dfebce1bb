package queue

import "strings"

// Silence is the whole answer of a task that has nothing to tell. Nothing is sent then.
const Silence = "NO_REPLY"

// Trigger is what began a task, and what that means for its answer.
type Trigger struct {
	// Hook is the name of the webhook that has taken the task in. What it brought is data
	// from outside. It is empty where a schedule or a person began the task.
	Hook string `json:"hook,omitempty"`
	// Note says more about that to people: when the task runs, which delivery it was.
	Note string `json:"note,omitempty"`
	// Quiet lets the task end without an answer, by [Silence]; Silent says that it did.
	Quiet  bool `json:"quiet,omitempty"`
	Silent bool `json:"silent,omitempty"`
}

// Ends reports whether an answer says that there is nothing to tell.
func (t Trigger) Ends(answer string) bool {
	return t.Quiet && strings.TrimSpace(answer) == Silence
}

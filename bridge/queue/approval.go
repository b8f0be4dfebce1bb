package queue

import "time"

// Approval is what became of a call that needed a person: to allow it, or to answer what its
// tool asked. It stands in the job of its turn.
type Approval struct {
	// Call names the call inside its conversation: the place of the reply that made it,
	// and its id there.
	Call string `json:"call"`
	Tool string `json:"tool"`
	// Hash is that of the call as the model made it, Shown that of the arguments that
	// stand on the card: those the tool is given. A call with others asks again.
	Hash  string `json:"hash"`
	Shown string `json:"shown,omitempty"`
	// Question says that the tool of a call that runs has asked. Then Hash is that of what it asked.
	Question bool `json:"question,omitempty"`
	// Card is the token of the card that asks.
	Card string `json:"card"`
	// Decision is there once it has counted.
	Decision *Decision `json:"decision,omitempty"`
}

// Decision is the answer to a request for approval.
type Decision struct {
	// Choice is "allow", "deny" or "expired"; of a question "accept", "decline", "cancel" or "over".
	Choice string `json:"choice"`
	// By is who decided, as platform:id, and Name what the platform calls them.
	By   string    `json:"by,omitempty"`
	Name string    `json:"name,omitempty"`
	At   time.Time `json:"at"`
	// Where is where, as [AuditEntry] has it; empty for the chat of the question.
	Where string `json:"where,omitempty"`
}

// The choices of a [Decision].
const (
	ChoiceAllow   = "allow"
	ChoiceDeny    = "deny"
	ChoiceExpired = "expired"
	// ChoiceOver: the call ended before its question was answered.
	ChoiceOver = "over"
)

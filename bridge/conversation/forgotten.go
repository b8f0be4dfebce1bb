package conversation

import (
	"encoding/json"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// ForgottenPrefix begins the keys of the people who asked to be forgotten.
const ForgottenPrefix = "forgotten/"

// Forgotten is the record of a person who asked to be forgotten. It is kept for a day.
type Forgotten struct {
	// Seq is the number of the job that forgets the person: jobs with lower numbers end.
	Seq int64     `json:"seq"`
	At  time.Time `json:"at"`
	// Done says that the job has ended. Until then the person's tasks end, too, whatever their numbers:
	// schedules and webhooks begin them until they are deleted.
	Done bool `json:"done,omitempty"`
}

// Ends reports whether a job of the person ends, given its message and its number.
func (f Forgotten) Ends(m chats.Message, seq int64) bool {
	return seq < f.Seq || f.Seq != 0 && !f.Done && receipts.IsTask(m)
}

// DecodeForgotten returns the person whom a record names, and the record; a damaged one ends nothing.
func DecodeForgotten(entry storage.Entry) (person string, f Forgotten) {
	_ = json.Unmarshal(entry.Value, &f)
	return strings.TrimPrefix(entry.Key, ForgottenPrefix), f
}

package toolgroups

import (
	"encoding/json"
	"errors"
	"time"
)

// Announcement says what a call has left behind for later: a schedule, an agent, a fact that was replaced.
// The program shows it below the answer of the turn, whatever the model says and however the turn ends.
type Announcement struct {
	// Text is plain text on one line. What is longer than [MaxAnnouncement] is cut.
	Text string `json:"text"`
	// Undo, if not nil, is passed to the tool's [Tool.Undo] when a user presses the button.
	Undo json.RawMessage `json:"undo,omitempty"`
	// Label is the text of the button; empty means [LabelUndo].
	Label string `json:"label,omitempty"`
	// For is how long the button works; 0 means [UndoTime].
	For time.Duration `json:"for,omitempty"`
	// Quotes are the users, platform:id, whose words Text or Undo hold, besides the requester.
	Quotes []string `json:"quotes,omitempty"`
}

// ExceedsLine reports whether an announcement would not show all of the texts in the arguments, as shows says, where words of
// others may have asked for the call: then a card shows it first, see [Tool.NeedsApproval]. So it does for a call that seems
// to fail: it may not, and a card for one that does is harmless.
func ExceedsLine[In any](call Call, shows func(In) bool) bool {
	var in In
	return call.HoldsOthers && (json.Unmarshal(call.Arguments, &in) != nil || !shows(in))
}

// Labels of the button of an [Announcement].
const (
	LabelUndo   = "Undo"
	LabelCancel = "Cancel"
	LabelStop   = "Stop"
)

// MaxAnnouncement is how much of [Announcement.Text] is shown, in characters.
const MaxAnnouncement = 1500

// UndoTime is how long the button of an [Announcement] works by default.
const UndoTime = 24 * time.Hour

// ErrChanged is returned by [Tool.Undo] if the thing is no longer as the announced change has left it: the
// undo would discard newer changes, and that of a newer one could bring back what is said to be undone.
var ErrChanged = errors.New("it has changed since the announcement")

// UndoData encodes the data of [Announcement.Undo]. Data that cannot be encoded leaves the announcement
// without a button.
func UndoData(data any) json.RawMessage {
	encoded, err := json.Marshal(data)
	if err != nil {
		return nil
	}
	return encoded
}

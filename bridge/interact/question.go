package interact

import (
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/receipts"
	"oneclaw/toolgroups"
)

// ApprovalRequest is a call that waits for a decision, as shown to a user.
type ApprovalRequest struct {
	Chat      chats.Chat
	Direct    bool
	Tool      string
	Requester string
	Expires   time.Time
	// Text is the question with all of the exact arguments, in Markdown, for the user who may decide.
	Text string
	// AllowData and DenyData are the data of the buttons; empty if the user may not press them. They are
	// valid only for this question and these arguments.
	AllowData, DenyData string
}

// ApprovalRequestOf returns the approval request of an open card, if it is one.
func ApprovalRequestOf(kept *StoredCard, user string, role toolgroups.Role) (ApprovalRequest, bool) {
	if kept.Kind != ApprovalKind || !kept.IsOpen() {
		return ApprovalRequest{}, false
	}
	r, err := decodeRequest(kept.Card)
	if err != nil {
		return ApprovalRequest{}, false
	}
	q := ApprovalRequest{Chat: kept.Chat, Direct: r.Direct, Tool: r.Tool, Requester: r.Requester, Expires: kept.Expires}
	here := chats.Message{Chat: kept.Chat}.SenderID() // the platform, without a user
	if len(user) <= len(here) || user[:len(here)] != here {
		return q, true // a user of another platform
	}
	if r.mayAllow(user, role) {
		q.AllowData = kept.buttonData(receipts.ChoiceAllow)
	}
	if r.mayAllow(user, role) || user == r.Requester {
		q.DenyData, q.Text = kept.buttonData(receipts.ChoiceDeny), kept.Text
		if kept.Lead != "" { // long arguments
			q.Text = kept.Lead + "\n\n" + kept.Text
		}
	}
	return q, true
}

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
	// Text is the question with the exact arguments, in Markdown, for the user who may decide.
	Text string
	// Allow and Deny are the data of the buttons that the user may press; empty if they may not. They
	// belong to this question and these arguments only.
	Allow, Deny string
}

// ApprovalRequestOf returns the approval request of an open card, if it is one.
func ApprovalRequestOf(kept *StoredCard, user string, role toolgroups.Role) (ApprovalRequest, bool) {
	if kept.Kind != ApprovalKind || !kept.Open() {
		return ApprovalRequest{}, false
	}
	r, err := requestOf(kept.Card)
	if err != nil {
		return ApprovalRequest{}, false
	}
	q := ApprovalRequest{Chat: kept.Chat, Direct: r.Direct, Tool: r.Tool, Requester: r.Requester, Expires: kept.Expires}
	here := chats.Message{Chat: kept.Chat}.By() // the platform, without a user
	if len(user) <= len(here) || user[:len(here)] != here {
		return q, true // a user of another platform
	}
	if r.mayAllow(user, role) {
		q.Allow = kept.ButtonOf(receipts.ChoiceAllow)
	}
	if r.mayAllow(user, role) || user == r.Requester {
		q.Deny, q.Text = kept.ButtonOf(receipts.ChoiceDeny), kept.Text
	}
	return q, true
}

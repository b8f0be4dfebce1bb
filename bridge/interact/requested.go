package interact

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// ApprovalKind is the [Card.Kind] of a request for approval.
const ApprovalKind = "approval"

// request is the data of an approval's card.
type request struct {
	// Job is the turn that waits in Chat.
	Job  string     `json:"job"`
	Chat chats.Chat `json:"lane"`
	Tool string     `json:"tool"`
	// Requester is the user of the turn, as platform:id.
	Requester string             `json:"requester"`
	Direct    bool               `json:"direct,omitempty"`
	Approvers Approvers          `json:"approvers,omitempty"`
	Decision  *receipts.Decision `json:"decision,omitempty"`
}

func (r *request) mayAllow(user string, role toolgroups.Role) bool {
	own, admin := user == r.Requester, role >= toolgroups.RoleAdmin
	switch {
	case role == toolgroups.RoleStranger || r.Direct && !own:
		return false
	case r.Approvers == ApproversAdmins:
		return admin
	case r.Approvers == ApproversRequester:
		return own
	}
	return own || admin
}

func decodeRequest(card Card) (request, error) {
	var r request
	if err := json.Unmarshal(card.Data, &r); err != nil {
		return r, fmt.Errorf("decode request: %w", err)
	}
	return r, nil
}

// WaitingJob returns the key of the job that waits for a card, and the chat queue in which it waits.
func WaitingJob(kept *StoredCard) (job string, chat chats.Chat, ok bool) {
	if kept.Kind != ApprovalKind {
		return "", chats.Chat{}, false
	}
	r, err := decodeRequest(kept.Card)
	return r.Job, r.Chat, err == nil
}

// WaitingLine returns a line about a call that waits for approval, if the user has requested it.
func WaitingLine(kept *StoredCard, user string) (line string, ok bool) {
	if kept.Kind != ApprovalKind {
		return "", false
	}
	r, err := decodeRequest(kept.Card)
	if err != nil || r.Requester != user {
		return "", false
	}
	who := "you, under the question in our chat"
	switch {
	case r.Approvers == ApproversAdmins:
		who = "an administrator"
	case !r.Direct:
		who = "you, under the question in the chat where you asked"
	}
	return fmt.Sprintf("- %s, since you asked for it; it is decided by %s", wording.InlineCode(r.Tool), who), true
}

// ApprovalHandler handles the buttons of approval requests.
func ApprovalHandler(now func() time.Time) Handler {
	return func(_ context.Context, press Press) (Result, error) {
		r, err := decodeRequest(press.Card)
		if err != nil {
			return Result{}, err
		}
		d := receipts.Decision{Choice: press.Choice, By: press.User, Name: press.UserName, At: now(), Where: press.Author.Chat}
		by := " by " + wording.EscapeRevealed(deciderName(&d)) + "."
		if r.Direct {
			by = ""
		}
		toast, outcome := "", ""
		switch {
		case press.Expired:
			d = receipts.Decision{Choice: receipts.ChoiceExpired, At: d.At}
			outcome = "⌛ **Expired.** There was no decision in time, so I did not run it."
		case press.Choice == receipts.ChoiceDeny && (press.User == r.Requester || r.mayAllow(press.User, press.Role)):
			toast, outcome = "Denied.", "❌ **Denied**"+by
		case press.Choice == receipts.ChoiceAllow && r.mayAllow(press.User, press.Role):
			toast, outcome = "Allowed once.", "✅ **Allowed once**"+by
		default:
			return Result{Toast: r.refusal()}, nil
		}
		r.Decision = &d
		data, err := json.Marshal(r)
		return Result{Toast: toast, Text: press.Card.Text + "\n\n" + outcome, Close: true, Data: data}, err
	}
}

// refusal returns the text for a user who may not decide.
func (r *request) refusal() string {
	switch {
	case r.Approvers == ApproversAdmins:
		return "Only an administrator can approve this."
	case r.Direct || r.Approvers == ApproversRequester:
		return "Only the person who asked for this can decide."
	}
	return "Only the person who asked for this, or an administrator, can decide."
}

// deciderName returns the name of the user who decided, for the model.
func deciderName(d *receipts.Decision) string {
	if d.Name == "" {
		return d.By
	}
	return wording.Clip(d.Name, maxName)
}

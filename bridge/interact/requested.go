package interact

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"oneclaw/bridge/audit"
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
	Requester string `json:"requester"`
	Direct    bool   `json:"direct,omitempty"`
	// Personal says that a call on the card uses an account of the requester.
	Personal bool `json:"personal,omitempty"`
	// ByChat says that the requester is a chat, for which its administrators decide. ForChat says that one of them
	// did.
	ByChat    bool      `json:"by_chat,omitempty"`
	ForChat   bool      `json:"for_chat,omitempty"`
	Approvers Approvers `json:"approvers,omitempty"`
	// Lasting is the lasting approval that the card offers, under the key LastingKey; nil if it offers none.
	Lasting    *LastingApproval   `json:"lasting,omitempty"`
	LastingKey string             `json:"lasting_key,omitempty"`
	Decision   *receipts.Decision `json:"decision,omitempty"`
	// Why says why the addresses of a call ask, in Markdown. Hashes are those of the calls that the card
	// shows then, as in [receipts.Approval.ShownHash].
	Why    string   `json:"why,omitempty"`
	Hashes []string `json:"hashes,omitempty"`
	// Effect is what [toolgroups.Tool.Describe] said when the card was posted.
	Effect string `json:"effect,omitempty"`
}

// choiceAllowLasting is the value of the button that allows a call, and such calls until the conversation
// is cleared.
const choiceAllowLasting = "allow_lasting"

func (r *request) mayAllow(user string, role toolgroups.Role) bool {
	own, admin := user == r.Requester || r.ForChat, role >= toolgroups.RoleAdmin
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
	case r.ByChat:
		who = "an administrator of the chat where you asked"
	case !r.Direct:
		who = "you, under the question in the chat where you asked"
	}
	return fmt.Sprintf("- %s, since you asked for it; it is decided by %s", wording.InlineCode(r.Tool), who), true
}

// HandlePress handles the buttons of approval requests.
func (g *Gate) HandlePress(ctx context.Context, press Press) (Result, error) {
	r, err := decodeRequest(press.Card)
	if err != nil {
		return Result{}, err
	}
	r.ForChat = press.ForChat
	d := receipts.Decision{Choice: press.Choice, By: press.User, Name: press.UserName, At: g.cfg.Now(), Where: press.Author.Chat}
	by := " by " + showName(cmp.Or(d.Name, d.By)) + "."
	if r.Direct {
		by = ""
	}
	var result Result
	outcome := ""
	switch {
	case press.Expired:
		d = receipts.Decision{Choice: receipts.ChoiceExpired, At: d.At}
		outcome = "⌛ **Expired.** There was no decision in time, so I did not run it."
	case press.Choice == receipts.ChoiceDeny && (press.User == r.Requester || press.ForChat || r.mayAllow(press.User, press.Role)):
		result.Toast, outcome = "Denied.", "❌ **Denied**"+by
	case press.Choice == receipts.ChoiceAllow && r.mayAllow(press.User, press.Role):
		result.Toast, outcome = "Allowed once.", "✅ **Allowed once**"+by
	case press.Choice == choiceAllowLasting && r.mayAllowLasting(press):
		ops, refusal, err := g.keepOps(ctx, press, r)
		if refusal != "" || err != nil {
			return Result{Toast: refusal}, err
		}
		format := func(text string) string { return g.cfg.Cards.formatCommands(press.Place.Platform, text) }
		d.Choice, d.Lasting, result.Ops = receipts.ChoiceAllow, true, ops
		result.Toast, outcome = format("Allowed here until /clear."), format("✅ **Allowed here until /clear**")+by
	case press.Choice == choiceAllowLasting:
		return Result{Toast: "Only the person who asked for this can allow it for longer, here in the chat."}, nil
	default:
		return Result{Toast: r.refusal()}, nil
	}
	r.Decision = &d
	result.Text, result.Close = press.Card.Text+"\n\n"+outcome, true
	result.Data, err = json.Marshal(r)
	return result, err
}

// mayAllowLasting reports whether the user who pressed may allow such calls for longer: only the requester,
// who has read on the card in the chat what that means.
func (r *request) mayAllowLasting(press Press) bool {
	return r.Lasting != nil && (press.User == r.Requester || r.ForChat) && r.mayAllow(press.User, press.Role) && press.Author.Chat != audit.PageChat
}

// refusal returns the text for a user who may not decide.
func (r *request) refusal() string {
	switch {
	case r.Approvers == ApproversAdmins:
		return "Only an administrator can approve this."
	case r.ByChat:
		return "Only an administrator of this chat can decide."
	case r.Direct || r.Approvers == ApproversRequester:
		return "Only the person who asked for this can decide."
	}
	return "Only the person who asked for this, or an administrator, can decide."
}

// decider says who decided, for the model, which reads it as the program's own words: so it has no name.
func (r *request) decider() string {
	if r.Decision.By == r.Requester {
		return "the person who asked"
	}
	return "an administrator"
}

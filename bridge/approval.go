package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/sessions"
	"oneclaw/bridge/wording"
	"oneclaw/internal/runes"
	"oneclaw/toolgroups"
)

// DefaultApprovalTimeout is how long a call waits for a decision.
const DefaultApprovalTimeout = 15 * time.Minute

// Policy says whether a call needs the approval of a person.
type Policy struct {
	Rule PolicyRule
	// Approvers may approve. The zero value is [ApproversBoth].
	Approvers Approvers
}

// Approvers says who may approve a call.
type Approvers string

// Who may approve. Whoever asked for a call may refuse it in any case.
const (
	// ApproversBoth: whoever asked for it, and in a shared chat configured
	// administrators too.
	ApproversBoth Approvers = "both"
	// ApproversRequester: nobody but whoever asked for it.
	ApproversRequester Approvers = "requester"
	// ApproversAdmins: only configured administrators.
	ApproversAdmins Approvers = "admins"
)

// PolicyRule is what a [Policy] says.
type PolicyRule string

// The rules of policies. Every other value asks as PolicyAsk does, the zero value too: what
// nobody has thought of asks.
const (
	PolicyAsk   PolicyRule = "ask"
	PolicyAllow PolicyRule = "allow"
	PolicyDeny  PolicyRule = "deny"
)

// kindApproval is the [Card.Kind] of a request for approval.
const kindApproval = "approval"

// request is what the card of an approval has for its handler.
type request struct {
	// Job is the turn that waits in Lane.
	Job  string     `json:"job"`
	Lane chats.Chat `json:"lane"`
	Tool string     `json:"tool"`
	// Requester is whose turn it is, as platform:id.
	Requester string         `json:"requester"`
	Direct    bool           `json:"direct,omitempty"`
	Approvers Approvers      `json:"approvers,omitempty"`
	Decision  *jobs.Decision `json:"decision,omitempty"`
}

// mayAllow reports whether a user may approve it.
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

// errGate wraps what kept the gate from an answer: the turn is tried again.
var errGate = errors.New("bridge: it can not be found out whether a call may run")

// gate decides about the calls of a turn: first whether its user may make them still, then
// whether somebody has to approve them.
func (b *Bridge) gate(j *jobs.Job, h *sessions.History) agent.Gate {
	permit := b.permit(j.Message)
	return func(ctx context.Context, call toolgroups.Call, tool toolgroups.Tool) (agent.Decision, error) {
		d, err := permit(ctx, call, tool)
		if err == nil && d.Verdict == agent.Allow && b.cfg.Approve != nil {
			d, err = b.decide(ctx, j, h, call, tool)
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", errGate, err)
		}
		return d, err
	}
}

func deny(format string, args ...any) (agent.Decision, error) {
	return agent.Decision{Verdict: agent.Deny, Reason: fmt.Sprintf(format, args...)}, nil
}

func (b *Bridge) decide(ctx context.Context, j *jobs.Job, h *sessions.History, call toolgroups.Call, tool toolgroups.Tool) (agent.Decision, error) {
	shown := call.Arguments
	if !tool.OwnArguments {
		valid, fault := toolgroups.ValidateArguments(tool, call.Arguments)
		if fault != nil {
			return agent.Decision{}, nil // it is refused when it is run, and nobody need be asked
		}
		shown = valid
	}
	effective := call
	effective.Arguments = shown
	policy := b.cfg.Approve(effective, tool)
	switch policy.Rule {
	case PolicyAllow:
		return agent.Decision{}, nil
	case PolicyDeny:
		return deny("the settings of this bot do not let %s run here", tool.Name)
	}
	asked := jobs.Approval{
		Call: h.Place() + "/" + call.ID, Tool: tool.Name,
		Hash: agent.Hash(tool.Name, string(call.Arguments)), Shown: agent.Hash(tool.Name, string(shown)),
	}
	i := slices.IndexFunc(j.Approvals, func(a jobs.Approval) bool {
		return a.Call == asked.Call && a.Tool == asked.Tool && a.Hash == asked.Hash && a.Shown == asked.Shown
	})
	if i < 0 {
		return b.askApproval(ctx, j, h, &asked, effective, tool, policy)
	}
	return b.decided(ctx, j, &j.Approvals[i], policy)
}

// askApproval posts the card of a call.
func (b *Bridge) askApproval(ctx context.Context, j *jobs.Job, h *sessions.History, asked *jobs.Approval, call toolgroups.Call, tool toolgroups.Tool, policy Policy) (agent.Decision, error) {
	r := request{
		Job: j.Key(), Lane: b.place(j).Lane, Tool: tool.Name, Requester: call.User, Direct: call.Direct, Approvers: policy.Approvers,
	}
	if r.Direct && !r.mayAllow(call.User, call.Role) {
		return deny("only an administrator could approve it, and there is none in this chat")
	}
	arguments, whole := showArguments(call.Arguments)
	if !whole {
		return deny("its arguments are too long for a person to check; make it in smaller steps")
	}
	data, err := json.Marshal(r)
	if err != nil {
		return agent.Decision{}, fmt.Errorf("encode request: %w", err)
	}
	expires := b.cfg.Now().Add(b.cfg.ApprovalTimeout)
	card := approvalCard(j, &r, tool, arguments, b.cfg.ApprovalTimeout)
	card.Data, card.Expires = data, expires
	key := strings.Join([]string{kindApproval, h.Log, asked.Call, asked.Hash, asked.Shown}, "/")
	asked.Card, err = b.post(ctx, key, j.Address().Chat, card)
	if errors.Is(err, cards.ErrNoButtons) {
		return deny("it needs the approval of a person, and this chat has no buttons to ask with")
	}
	if err != nil {
		return agent.Decision{}, err
	}
	b.log.Info("approval asked for", "tool", tool.Name, "hash", asked.Hash, "job", j.Key(), "user", call.User)
	b.cfg.Measure.Count(j.Message.Chat.Platform, jobs.MeasuredAsked)
	j.Approvals = append(j.Approvals, *asked)
	// A card that was posted before a crash may be decided already.
	return b.decided(ctx, j, &j.Approvals[len(j.Approvals)-1], policy)
}

// decided is what has come of a request. Who decided is looked up again: they may have
// lost the right since.
func (b *Bridge) decided(ctx context.Context, j *jobs.Job, a *jobs.Approval, policy Policy) (agent.Decision, error) {
	kept, err := b.cards.Load(ctx, a.Card)
	if err != nil {
		return agent.Decision{}, err
	}
	if kept == nil {
		return deny("its request for approval is gone")
	}
	if kept.Open() {
		return agent.Decision{Verdict: agent.Pending}, nil
	}
	var r request
	if err := json.Unmarshal(kept.Data, &r); err != nil {
		return agent.Decision{}, fmt.Errorf("decode request: %w", err)
	}
	// What the settings say now counts as well.
	strict := r
	strict.Approvers = policy.Approvers
	if a.Decision == nil {
		a.Decision = r.Decision
		decision := cmp.Or(r.Decision, &jobs.Decision{Choice: string(kept.How)})
		b.log.Info("approval decided", "tool", a.Tool, "hash", a.Hash, "job", j.Key(), "decision", decision.Choice, "by", decision.By)
		b.measureDecision(j.Message.Chat.Platform, decision.Choice)
	}
	switch {
	case kept.How == cards.Unseen:
		return deny("it could not be shown to a person")
	case r.Decision == nil || r.Decision.Choice == jobs.ChoiceExpired:
		return deny("nobody approved it within %s", wording.Minutes(b.cfg.ApprovalTimeout))
	case r.Decision.Choice != jobs.ChoiceAllow:
		return deny("%s said no", who(r.Decision))
	case !r.mayAllow(r.Decision.By, b.roleNow(r.Decision.By)) || !strict.mayAllow(r.Decision.By, b.roleNow(r.Decision.By)):
		return deny("%s approved it, and may not any more", who(r.Decision))
	}
	return agent.Decision{}, nil
}

// who names who decided, for the model.
func who(d *jobs.Decision) string {
	if d.Name == "" {
		return d.By
	}
	return runes.Clip(d.Name, maxShownName)
}

// roleNow is what a user (platform:id) may do now.
func (b *Bridge) roleNow(user string) toolgroups.Role {
	platform, id, _ := strings.Cut(user, ":")
	return b.roleOf(platform, id)
}

// pressApproval handles the buttons of a request.
func (b *Bridge) pressApproval(_ context.Context, press cards.Press) (cards.Result, error) {
	var r request
	if err := json.Unmarshal(press.Card.Data, &r); err != nil {
		return cards.Result{}, fmt.Errorf("decode request: %w", err)
	}
	d := jobs.Decision{Choice: press.Choice, By: press.User, Name: press.UserName, At: b.cfg.Now()}
	by := "by " + wording.Shown(who(&d)) + "."
	if r.Direct {
		by = ""
	}
	result := cards.Result{Close: true}
	switch {
	case press.Expired:
		d = jobs.Decision{Choice: jobs.ChoiceExpired, At: d.At}
		result.Text = "⌛ **Expired.** Nobody decided in time, so I did not run it."
	case press.Choice == jobs.ChoiceDeny && (press.User == r.Requester || r.mayAllow(press.User, press.Role)):
		result.Toast, result.Text = "Denied.", "❌ **Denied** "+by
	case press.Choice == jobs.ChoiceAllow && r.mayAllow(press.User, press.Role):
		result.Toast, result.Text = "Allowed once.", "✅ **Allowed once** "+by
	default:
		return cards.Result{Toast: r.refusal()}, nil
	}
	r.Decision = &d
	result.Text = overText(press.Card.Text, result.Text)
	data, err := json.Marshal(r)
	result.Data = data
	return result, err
}

// refusal tells somebody that it is not theirs to decide.
func (r *request) refusal() string {
	switch {
	case r.Approvers == ApproversAdmins:
		return "Only an administrator can approve this."
	case r.Direct || r.Approvers == ApproversRequester:
		return "Only who asked for this can decide."
	}
	return "Only who asked for this, or an administrator, can decide."
}

// movedOn reports whether one of the decisions that a job waits for is there.
func (b *Bridge) movedOn(ctx context.Context, undecided []string) (bool, error) {
	for _, token := range undecided {
		kept, err := b.cards.Load(ctx, token)
		if err != nil {
			return false, err
		}
		if kept == nil || !kept.Open() {
			return true, nil
		}
	}
	return len(undecided) == 0, nil
}

// voidApprovals closes the cards of a turn that is over.
func (b *Bridge) voidApprovals(ctx context.Context, j *jobs.Job) error {
	for _, token := range j.Undecided() {
		if err := b.void(ctx, token, "⏹ **Over.** The request was ended, so I did not run it."); err != nil {
			return err
		}
	}
	return nil
}

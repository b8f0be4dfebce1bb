package interact

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// ApprovalTimeout is how long a call waits for a decision.
const ApprovalTimeout = 15 * time.Minute

// Policy says whether a call needs a user's approval.
type Policy struct {
	Rule Rule
	// Approvers may approve. The zero value is [ApproversBoth].
	Approvers Approvers
}

// Approvers says who may approve a call.
type Approvers string

// Values of [Approvers]. The requester of a call may refuse it in any case.
const (
	// ApproversBoth: the requester, and in a shared chat configured administrators too.
	ApproversBoth Approvers = "both"
	// ApproversRequester: only the requester.
	ApproversRequester Approvers = "requester"
	// ApproversAdmins: only configured administrators.
	ApproversAdmins Approvers = "admins"
)

// Rule is the verdict of a [Policy].
type Rule string

// Values of [Rule]. Every other value asks as Ask does, so that a call without a rule asks.
const (
	Ask   Rule = "ask"
	Allow Rule = "allow"
	Deny  Rule = "deny"
)

// GateConfig configures a [Gate].
type GateConfig struct {
	// Store keeps the audit.
	Store storage.KV
	// Redact masks secrets in what goes out.
	Redact  func(text string) string
	Measure queue.Counter
	Now     func() time.Time
	Log     *slog.Logger
	// Policy returns whether a call needs approval. It gets the arguments that the tool would get. Nil
	// means that no call does.
	Policy func(call toolgroups.Call, tool toolgroups.Tool) Policy
	// Timeout is how long a call waits for a decision.
	Timeout time.Duration
	Cards   *Cards
	Roles   Roles
	Queue   Queue
}

// Queue knows in which queues jobs wait.
type Queue interface {
	// ChatOf returns the chat, or its sub-queue, that a job waits in.
	ChatOf(j *queue.Run) chats.Chat
	// Change changes what decides whether messages may join a running job.
	Change(change func())
}

// Roles returns users' roles.
type Roles interface {
	// Role returns the current role of a user, platform:id.
	Role(user string) toolgroups.Role
}

// Gate decides on the calls of turns. It keeps no state: the decisions are in the jobs and the cards.
type Gate struct{ cfg GateConfig }

// NewGate returns a gate.
func NewGate(cfg GateConfig) *Gate { return &Gate{cfg} }

// Decide returns whether a call of a turn may run: first whether its user may make it now, whatever
// their role was when the turn began, then whether it needs approval.
func (g *Gate) Decide(ctx context.Context, j *queue.Run, at turn.Position, call toolgroups.Call, tool toolgroups.Tool) (agent.Decision, error) {
	role := g.cfg.Roles.Role(j.Message.By())
	switch {
	case role == toolgroups.RoleStranger || role < tool.Role:
		return deny("the user may not use this tool any more")
	case g.cfg.Policy == nil:
		return agent.Decision{}, nil
	}
	decision, err := g.decide(ctx, j, at, call, tool)
	if err == nil && decision.Verdict == agent.Allow && tool.Role >= toolgroups.RoleAdmin && tool.Effect != toolgroups.ReadOnly {
		author := j.Author(g.cfg.Store)
		author.Event += "/" + at.ReplyPosition() + "/" + call.ID
		err = author.Record(ctx, "call", strings.TrimSpace(tool.Name+" "+toolgroups.AuditArguments(tool, call.Arguments, g.cfg.Redact)))
	}
	return decision, err
}

func deny(format string, args ...any) (agent.Decision, error) {
	return agent.Decision{Verdict: agent.Deny, Reason: fmt.Sprintf(format, args...)}, nil
}

// decide asks the policy about a call, and an approver if the policy says so.
func (g *Gate) decide(ctx context.Context, j *queue.Run, at turn.Position, call toolgroups.Call, tool toolgroups.Tool) (agent.Decision, error) {
	shown := call.Arguments
	if !tool.OwnArguments {
		valid, fault := toolgroups.ValidateArguments(tool, call.Arguments)
		if fault != nil {
			return agent.Decision{}, nil // it is refused when it is run, and no approver need be asked
		}
		shown = valid
	}
	effective := call
	effective.Arguments = shown
	policy := g.cfg.Policy(effective, tool)
	switch policy.Rule {
	case Allow:
		return agent.Decision{}, nil
	case Deny:
		return deny("the settings of this bot do not let %s run here", tool.Name)
	}
	asked := receipts.Approval{
		Call: at.ReplyPosition() + "/" + call.ID, Tool: tool.Name,
		Hash: agent.Hash(tool.Name, string(call.Arguments)), Shown: agent.Hash(tool.Name, string(shown)),
	}
	i := slices.IndexFunc(turn.Of(j).Approvals, func(a receipts.Approval) bool {
		return a.Call == asked.Call && a.Tool == asked.Tool && a.Hash == asked.Hash && a.Shown == asked.Shown
	})
	if i < 0 {
		return g.ask(ctx, j, &asked, effective, tool, policy)
	}
	return g.decided(ctx, j, &turn.Of(j).Approvals[i], policy)
}

func (g *Gate) ask(ctx context.Context, j *queue.Run, asked *receipts.Approval, call toolgroups.Call, tool toolgroups.Tool, policy Policy) (agent.Decision, error) {
	r := request{
		Job: j.Key(), Chat: g.cfg.Queue.ChatOf(j), Tool: tool.Name, Requester: call.User, Direct: call.Direct, Approvers: policy.Approvers,
	}
	if r.Direct && !r.mayAllow(call.User, call.Role) {
		return deny("only an administrator could approve it, and there is none in this chat")
	}
	if tool.Ready != nil {
		if err := tool.Ready(ctx, call); err != nil {
			fault, known := errors.AsType[*toolgroups.Error](err)
			if !known {
				return agent.Decision{}, err
			}
			return agent.Decision{Verdict: agent.Deny, Fault: fault}, nil
		}
	}
	arguments, whole := showArguments(call.Arguments)
	if !whole {
		return deny("its arguments are too long for a person to check; make it in smaller steps")
	}
	data, err := json.Marshal(r)
	if err != nil {
		return agent.Decision{}, fmt.Errorf("encode request: %w", err)
	}
	expires := g.cfg.Now().Add(g.cfg.Timeout)
	card := question(j, &r, tool, arguments, g.cfg.Timeout)
	card.Data, card.Expires = data, expires
	key := strings.Join([]string{ApprovalKind, call.Session, asked.Call, asked.Hash, asked.Shown}, "/")
	asked.Card, err = g.cfg.Cards.Post(ctx, key, outbox.Address(j).Chat, card)
	if errors.Is(err, ErrNoButtons) {
		return deny("it needs the approval of a person, and this chat has no buttons to ask with")
	}
	if err != nil {
		return agent.Decision{}, err
	}
	g.cfg.Log.Info("approval asked for", "tool", tool.Name, "hash", asked.Hash, "job", j.Key(), "user", call.User)
	g.cfg.Measure(j.Message.Chat.Platform, queue.MeasuredAsked)
	w := turn.Of(j)
	g.cfg.Queue.Change(func() { w.Approvals = append(w.Approvals, *asked) })
	// A card that was posted before a crash may be decided already.
	return g.decided(ctx, j, &w.Approvals[len(w.Approvals)-1], policy)
}

// measured maps decisions to metrics.
var measured = map[string]queue.Metric{
	receipts.ChoiceAllow: queue.MeasuredAllowed, receipts.ChoiceDeny: queue.MeasuredDenied, receipts.ChoiceExpired: queue.MeasuredExpired,
}

// decided returns the decision on a request. It checks the approver's role again: they may have lost it
// since.
func (g *Gate) decided(ctx context.Context, j *queue.Run, a *receipts.Approval, policy Policy) (agent.Decision, error) {
	kept, err := g.cfg.Cards.Get(ctx, a.Card)
	if err != nil {
		return agent.Decision{}, err
	}
	if kept == nil {
		return deny("its request for approval is gone")
	}
	if kept.Open() {
		return agent.Decision{Verdict: agent.Pending}, nil
	}
	r, err := requestOf(kept.Card)
	if err != nil {
		return agent.Decision{}, err
	}
	// The present settings count as well.
	strict := r
	strict.Approvers = policy.Approvers
	if err := g.note(ctx, j, a, kept); err != nil {
		return agent.Decision{}, err
	}
	switch {
	case kept.How == Unseen:
		return deny("it could not be shown to a person")
	case r.Decision == nil || r.Decision.Choice == receipts.ChoiceExpired:
		return deny("nobody approved it within %s", wording.Minutes(g.cfg.Timeout))
	case r.Decision.Choice != receipts.ChoiceAllow:
		return deny("%s said no", decidedBy(r.Decision))
	case !g.mayAllow(r) || !g.mayAllow(strict):
		return deny("%s approved it, and may not any more", decidedBy(r.Decision))
	}
	return agent.Decision{}, nil
}

// note stores the end of a closed card in its approval, once, and a user's decision in the audit.
func (g *Gate) note(ctx context.Context, j *queue.Run, a *receipts.Approval, kept *StoredCard) error {
	if a.Decision != nil {
		return nil
	}
	if a.Question {
		a.Decision = &receipts.Decision{Choice: receipts.ChoiceOver, At: g.cfg.Now()}
		return nil
	}
	r, err := requestOf(kept.Card)
	if err != nil {
		return err
	}
	if d := r.Decision; d != nil && d.By != "" {
		author := audit.Author{Event: kept.Token, At: d.At, By: d.By, Name: d.Name, Chat: cmp.Or(d.Where, kept.Chat.String()), KV: g.cfg.Store}
		if err := author.Record(ctx, d.Choice+" a call", a.Tool); err != nil {
			return err
		}
	}
	a.Decision = cmp.Or(r.Decision, &receipts.Decision{Choice: string(kept.How), At: g.cfg.Now()})
	g.cfg.Log.Info("approval decided", "tool", a.Tool, "hash", a.Hash, "job", j.Key(), "decision", a.Decision.Choice, "by", a.Decision.By)
	if what, counted := measured[a.Decision.Choice]; counted {
		g.cfg.Measure(j.Message.Chat.Platform, what)
	}
	return nil
}

// mayAllow reports whether the user who decided on a request may still do so.
func (g *Gate) mayAllow(r request) bool {
	return r.mayAllow(r.Decision.By, g.cfg.Roles.Role(r.Decision.By))
}

// Decided reports whether one of the cards is closed, or there is none.
func (g *Gate) Decided(ctx context.Context, cards []string) (bool, error) {
	for _, token := range cards {
		kept, err := g.cfg.Cards.Get(ctx, token)
		if err != nil {
			return false, err
		}
		if kept == nil || !kept.Open() {
			return true, nil
		}
	}
	return len(cards) == 0, nil
}

// Note adds to a job the decisions that were made while it waited, so that its next write has them, and
// reports whether it can continue: there is a decision, or none is due.
func (g *Gate) Note(ctx context.Context, j *queue.Run) (bool, error) {
	due, noted := 0, 0
	for i := range turn.Of(j).Approvals {
		a := &turn.Of(j).Approvals[i]
		if a.Decision != nil {
			continue
		}
		due++
		kept, err := g.cfg.Cards.Get(ctx, a.Card)
		switch {
		case err != nil:
			return false, err
		case kept == nil:
			a.Decision = &receipts.Decision{Choice: receipts.ChoiceOver, At: g.cfg.Now()}
		case kept.Open():
			continue
		default:
			if err := g.note(ctx, j, a, kept); err != nil {
				return false, err
			}
		}
		noted++
	}
	return noted > 0 || due == 0, nil
}

// Invalidate closes the cards of a turn that is over.
func (g *Gate) Invalidate(ctx context.Context, j *queue.Run) error {
	for _, a := range turn.Of(j).Approvals {
		if a.Decision != nil {
			continue
		}
		note := "⏹ **Over.** The request was ended, so I did not run it."
		if a.Question {
			note = "⏹ **Over.** The request was ended, so no answer is needed any more."
		}
		if err := g.cfg.Cards.Invalidate(ctx, a.Card, note); err != nil {
			return err
		}
	}
	return nil
}

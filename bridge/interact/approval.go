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
	"unicode/utf8"

	"oneclaw/agent"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/provenance"
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
	// MayLast permits the requester to approve such calls until the conversation is cleared.
	MayLast bool
	// ByName says that a rule of the operator which names this tool decided. Its Allow also covers what
	// needs an administrator's role, and addresses that the model composed.
	ByName bool
}

// Approvers says who may approve a call.
type Approvers string

// Values of [Approvers]. The requester of a call may refuse it in any case.
const (
	// ApproversBoth: the requester, and in a shared chat the bot's administrators too.
	ApproversBoth Approvers = "both"
	// ApproversRequester: only the requester.
	ApproversRequester Approvers = "requester"
	// ApproversAdmins: only the bot's administrators, and in a direct chat only if the requester is one.
	ApproversAdmins Approvers = "admins"
)

// Rule is the verdict of a [Policy].
type Rule string

// Values of [Rule]. Any other value is treated as Ask, so that a call without a rule requires approval.
const (
	Ask   Rule = "ask"
	Allow Rule = "allow"
	Deny  Rule = "deny"
)

// GateConfig configures a [Gate].
type GateConfig struct {
	// Store holds the audit log, the sessions and the lasting approvals.
	Store storage.KV
	// Redact masks secrets in outgoing text.
	Redact  func(text string) string
	Measure queue.Counter
	Now     func() time.Time
	Log     *slog.Logger
	// Policy returns whether a call needs approval. It gets the arguments that the tool would get. Nil
	// means that no call needs approval.
	Policy func(call toolgroups.Call, tool toolgroups.Tool) Policy
	// Tool returns the tool with a name.
	Tool func(name string) (toolgroups.Tool, bool)
	// Hosts are those whose addresses no call asks about; *.example.com stands for the hosts below.
	Hosts []string
	// Timeout is how long a call waits for a decision.
	Timeout time.Duration
	Cards   *Cards
	Roles   Roles
	Queue   Queue
}

// Queue gives access to the queues of chats.
type Queue interface {
	// ChatOf returns the chat, or its sub-queue, in which a job waits.
	ChatOf(j *queue.Run) chats.Chat
	// WithLock runs change under the lock that guards whether messages may join a running job.
	WithLock(change func())
}

// Roles returns users' roles.
type Roles interface {
	// Role returns the current role of a user, platform:id.
	Role(user string) toolgroups.Role
	// IsPerson reports whether a user, platform:id, is one person, not a chat in whose name several write.
	IsPerson(user string) bool
}

// Gate decides on the calls of turns. It keeps no state: the decisions are in the jobs and the cards, and
// those that hold for later calls in [LastingApproval]s.
type Gate struct{ cfg GateConfig }

// NewGate returns a gate.
func NewGate(cfg GateConfig) *Gate { return &Gate{cfg} }

// Decide returns whether a call of a turn may run. It first checks the user's current role, to which it lowers that of
// the call if the turn began with a higher one, and then whether the call needs approval. It records in the audit log the
// allowed calls of administrators' tools that do not only read.
//
// In a turn that no message of a user has begun, the call has at most an ordinary user's role; if the tool
// needs more, an administrator is asked, and the call then runs with the tool's role.
func (g *Gate) Decide(ctx context.Context, j *queue.Run, at turn.Position, call toolgroups.Call, tool toolgroups.Tool, shown agent.Input) (agent.Decision, error) {
	role := g.cfg.Roles.Role(j.Message.SenderID())
	switch {
	case role == toolgroups.RoleStranger || role < tool.Role:
		return deny("the user may not use this tool any more")
	case call.Outsider && (tool.Private || tool.Personal):
		return deny("somebody outside began this run, and %s reaches what the owner of the webhook keeps", tool.Name)
	}
	call.Role = min(call.Role, role)
	if g.cfg.Policy == nil {
		return agent.Decision{Role: call.Role}, nil
	}
	in, work := g.input(call, shown), turn.WorkOf(j)
	work.NoteOthers(in) // also for a reply of an earlier run of the program
	call.HoldsOthers, call.ReadOthers = work.HeldOthers, work.ReadOthers
	decision, err := g.applyPolicy(ctx, j, at, call, tool, in)
	decision.ReadOthers, decision.HoldsOthers, decision.Limit = call.ReadOthers, call.HoldsOthers, g.limit(j, in, call.ID)
	decision.Role = max(call.Role, tool.Role)
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

// applyPolicy applies the policy to a call, and requests approval if the policy requires it.
func (g *Gate) applyPolicy(ctx context.Context, j *queue.Run, at turn.Position, call toolgroups.Call, tool toolgroups.Tool, in *provenance.Input) (agent.Decision, error) { //nolint:cyclop // One case after another of what decides.
	shown := call.Arguments
	if !tool.ChecksArguments {
		valid, fault := toolgroups.ValidateArguments(tool, call.Arguments)
		if fault != nil {
			return agent.Decision{}, nil // the call fails when it runs, so it needs no approval
		}
		shown = valid
	}
	effective := call
	effective.Arguments, effective.Received = shown, in.Received()
	effective.ReadAccount = tool.Personal && in.ReadAccount(tool.Group)
	policy := g.policyFor(effective, tool, in)
	asks, cost, refusal := g.judgeAddresses(j, in, effective, tool)
	composed := asks != nil
	asked := receipts.Approval{
		Call: at.ReplyPosition() + "/" + call.ID, Tool: tool.Name,
		Hash: agent.Hash(tool.Name, string(call.Arguments)), ShownHash: agent.Hash(tool.Name, string(shown)),
	}
	describe := func() (string, error) { return describeCall(ctx, effective, tool) }
	i := slices.IndexFunc(turn.WorkOf(j).Approvals, func(a receipts.Approval) bool { return isSameCall(a, asked) })
	switch {
	case policy.Rule == Deny:
		return deny("the settings of this bot do not let %s run here", tool.Name)
	case refusal != "":
		return deny("%s", refusal)
	case i >= 0: // what was asked is decided by the answer, also if it would not be asked any more
		effective.ReadAccount = tool.Personal // or there would be no card; in a long turn the result may be out of sight
		return g.cardDecision(ctx, j, &turn.WorkOf(j).Approvals[i], policy, describe)
	case policy.Rule != Allow:
		asks = nil // the card shows the addresses
	case asks == nil:
		return agent.Decision{}, in.Spending.Charge(call.ID, func(agent.Spent) (agent.Spent, error) { return cost, nil })
	case policy.ByName:
		return agent.Decision{}, nil
	}
	lasting, err := g.lastingFor(ctx, j, effective, tool, policy, asks, composed)
	if err != nil {
		return agent.Decision{}, err
	}
	if lasting != nil {
		allowed, err := g.isAllowed(ctx, j, lasting)
		_, spent := in.Spending.Of(call.ID)
		switch {
		case err != nil:
			return agent.Decision{}, err
		case allowed && spent.Plus(cost).Composed <= provenance.MaxComposed:
			g.cfg.Log.Info("call allowed by a lasting approval", "tool", tool.Name, "hash", asked.Hash, "job", j.Key(), "user", call.User)
			return agent.Decision{ApprovedBy: lasting.User}, in.Spending.Charge(call.ID, func(agent.Spent) (agent.Spent, error) { return cost, nil })
		case allowed:
			lasting = nil // it has opened all that it may in this turn
		}
	}
	var addresses []*addressCall
	if asks != nil {
		if shown, err := g.isShownWithOthers(ctx, j, at.ReplyPosition(), &asked); err != nil {
			return agent.Decision{}, err
		} else if shown {
			return g.awaitDecision(ctx, j, &asked, policy, describe)
		}
		if addresses = g.sameReply(j, in, asks); len(addresses) > 1 && !asks.mail {
			lasting = nil
		}
	}
	return g.requestApproval(ctx, j, &asked, effective, tool, policy, lasting, addresses, describe)
}

// lastingFor returns the lasting approval that would cover a call, or what it asks about its addresses; nil if none
// does. composed says that it has addresses that ask.
func (g *Gate) lastingFor(ctx context.Context, j *queue.Run, call toolgroups.Call, tool toolgroups.Tool, policy Policy, asks *addressCall, composed bool) (*LastingApproval, error) {
	if asks != nil {
		return g.lastingAddress(j, asks), nil
	}
	lasting, err := g.lastingApproval(ctx, j, call, tool, policy)
	if composed && !lasting.coversAddresses(tool) {
		return nil, err
	}
	return lasting, err
}

// coversAddresses reports whether a lasting approval that is offered for a call says which addresses it is for.
func (l *LastingApproval) coversAddresses(tool toolgroups.Tool) bool {
	return l != nil && (l.Alike == "" || tool.Like != nil && tool.Like.SameFolder && !tool.Personal)
}

func isSameCall(a, b receipts.Approval) bool {
	return a.Call == b.Call && a.Tool == b.Tool && a.Hash == b.Hash && a.ShownHash == b.ShownHash
}

// describeCall returns what a call would do, or an error for the model if that is not found out in time.
func describeCall(ctx context.Context, call toolgroups.Call, tool toolgroups.Tool) (string, error) {
	if tool.Describe == nil {
		return "", nil
	}
	limited, cancel := context.WithTimeout(ctx, toolgroups.DefaultTimeout)
	defer cancel()
	effect, err := tool.Describe(limited, call)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = toolgroups.Errorf(toolgroups.CodeTimeout, "The user was not asked: what the call would do was not found out within %s. Try again later.",
			wording.DurationInWords(toolgroups.DefaultTimeout))
	}
	return effect, err
}

// policyFor returns the policy for a call, which asks also if the call needs a higher role than it has, or if it
// would leave an address behind that would ask.
func (g *Gate) policyFor(call toolgroups.Call, tool toolgroups.Tool, in *provenance.Input) Policy {
	policy := g.cfg.Policy(call, tool)
	byName := policy.Rule == Allow && policy.ByName
	switch {
	case byName, policy.Rule == Deny:
	case call.Role < tool.Role:
		approvers := ApproversAdmins
		if policy.Approvers == ApproversRequester {
			approvers = ApproversRequester // who is an administrator, too, or the call would have been refused
		}
		policy = Policy{Rule: Ask, Approvers: approvers}
	case policy.Rule == Allow && g.keepsComposed(in, call, tool):
		policy.Rule = Ask
	}
	return policy
}

// requestApproval posts the card of a call, which offers the lasting approval unless it is nil. If the call
// asks because of its addresses, the card is that of all calls of its reply that do.
func (g *Gate) requestApproval(ctx context.Context, j *queue.Run, asked *receipts.Approval, call toolgroups.Call, tool toolgroups.Tool, policy Policy, lasting *LastingApproval, addresses []*addressCall, describe func() (string, error)) (agent.Decision, error) {
	r := request{
		Job: j.Key(), Chat: g.cfg.Queue.ChatOf(j), Tool: tool.Name, Requester: call.User, Direct: call.Direct, Approvers: policy.Approvers,
		ByChat: g.cfg.Cards.IsChat(call.User), Personal: tool.Personal || slices.ContainsFunc(addresses, func(one *addressCall) bool { return one.tool.Personal }),
	}
	if r.Direct && !r.mayAllow(call.User, g.cfg.Roles.Role(call.User)) {
		return deny("only an administrator could approve it, and there is none in this chat")
	}
	var err error
	if tool.CheckReady != nil {
		err = tool.CheckReady(ctx, call)
	}
	if err == nil {
		r.Effect, err = describe()
	}
	if err != nil {
		fault, known := errors.AsType[*toolgroups.Error](err)
		if !known {
			return agent.Decision{}, err
		}
		return agent.Decision{Verdict: agent.Deny, Fault: fault}, nil
	}
	arguments, whole := formatCall(tool, call.Arguments)
	// The job belongs to the keys, because positions begin anew when all of a log has gone by its age.
	parts := []string{ApprovalKind, j.Key(), asked.Call, asked.Hash, asked.ShownHash}
	if len(addresses) > 0 {
		position, _, _ := strings.Cut(asked.Call, "/")
		parts = []string{ApprovalKind, j.Key(), position, "addresses"}
		arguments, whole = addressArguments(addresses)
		r.Why = addresses[0].why
		for _, one := range addresses {
			r.Hashes = append(r.Hashes, one.hash)
			parts = append(parts, one.hash)
		}
	}
	if !whole || utf8.RuneCountInString(r.Effect) > maxArguments || utf8.RuneCountInString(wording.Fence(r.Effect)) > 2*maxArguments {
		return deny("what it would do is too long for a person to check; make it in smaller steps")
	}
	if lasting != nil {
		r.Lasting, r.LastingKey = lasting, lasting.key
	}
	data, err := json.Marshal(r)
	if err != nil {
		return agent.Decision{}, fmt.Errorf("encode request: %w", err)
	}
	expires := g.cfg.Now().Add(g.cfg.Timeout)
	card := approvalCard(j, &r, tool, tool.CountChanged(call.Arguments), arguments, addresses, g.cfg.Timeout, g.cfg.Cards.formatCommands)
	card.Data, card.Expires = data, expires
	asked.CardToken, err = g.cfg.Cards.Post(ctx, strings.Join(parts, "/"), outbox.Address(j).Chat, card)
	if errors.Is(err, ErrNoButtons) {
		return deny("it needs the approval of a person, and this chat has no buttons to ask with")
	}
	if err != nil {
		return agent.Decision{}, err
	}
	return g.awaitDecision(ctx, j, asked, policy, describe)
}

// awaitDecision adds a request to its turn, and returns its decision.
func (g *Gate) awaitDecision(ctx context.Context, j *queue.Run, asked *receipts.Approval, policy Policy, describe func() (string, error)) (agent.Decision, error) {
	g.cfg.Log.Info("approval requested", "tool", asked.Tool, "hash", asked.Hash, "job", j.Key(), "user", j.Message.SenderID())
	g.cfg.Measure(j.Message.Chat.Platform, queue.MeasuredAsked)
	w := turn.WorkOf(j)
	g.cfg.Queue.WithLock(func() { w.Approvals = append(w.Approvals, *asked) })
	// A card that was posted before a crash may be decided already.
	return g.cardDecision(ctx, j, &w.Approvals[len(w.Approvals)-1], policy, describe)
}

// decisionMetrics maps decisions to metrics.
var decisionMetrics = map[string]queue.Metric{
	receipts.ChoiceAllow: queue.MeasuredAllowed, receipts.ChoiceDeny: queue.MeasuredDenied, receipts.ChoiceExpired: queue.MeasuredExpired,
}

// cardDecision returns the decision on a request. It checks the approver's role and the effect that describe
// returns again, which may have changed since.
func (g *Gate) cardDecision(ctx context.Context, j *queue.Run, a *receipts.Approval, policy Policy, describe func() (string, error)) (agent.Decision, error) {
	kept, err := g.cfg.Cards.Get(ctx, a.CardToken)
	if err != nil {
		return agent.Decision{}, err
	}
	if kept == nil {
		return deny("its request for approval is gone")
	}
	if kept.IsOpen() {
		return agent.Decision{Verdict: agent.Pending}, nil
	}
	r, err := decodeRequest(kept.Card)
	if err != nil {
		return agent.Decision{}, err
	}
	// The current settings apply as well.
	strict := r
	strict.Approvers = policy.Approvers
	if err := g.recordDecision(ctx, j, a, kept); err != nil {
		return agent.Decision{}, err
	}
	switch {
	case r.Job != j.Key():
		return deny("its card asked for another turn")
	case len(r.Hashes) > 0 && !slices.Contains(r.Hashes, a.ShownHash):
		return deny("its card did not show it")
	case kept.Reason == notShown:
		return deny("it could not be shown to a person")
	case kept.Reason == obsolete:
		return deny("what its card asked about has changed meanwhile; if it is still wanted, ask once more with a new call")
	case r.Decision == nil || r.Decision.Choice == receipts.ChoiceExpired:
		return deny("nobody approved it within %s", wording.DurationInWords(g.cfg.Timeout))
	case r.Decision.Choice != receipts.ChoiceAllow:
		return deny("%s said no", r.decider())
	case !g.mayAllow(r) || !g.mayAllow(strict):
		return deny("%s approved it, and may not any more", r.decider())
	}
	switch effect, err := describe(); {
	case err != nil:
		return deny("what it would do cannot be found out again; ask once more with a new call")
	case effect != r.Effect:
		return deny("what it would do is not what its card showed; ask once more with a new call")
	}
	return agent.Decision{ApprovedBy: r.Decision.By}, nil
}

// recordDecision stores the outcome of a closed card in its approval, once, and a user's decision in the
// audit log.
func (g *Gate) recordDecision(ctx context.Context, j *queue.Run, a *receipts.Approval, kept *StoredCard) error {
	if a.Decision != nil {
		return nil
	}
	if a.Question {
		a.Decision = &receipts.Decision{Choice: receipts.ChoiceOver, At: g.cfg.Now()}
		return nil
	}
	r, err := decodeRequest(kept.Card)
	if err != nil {
		return err
	}
	if d := r.Decision; d != nil && d.By != "" {
		author := audit.Author{Event: kept.Token, At: d.At, By: d.By, Name: d.Name, Chat: cmp.Or(d.Where, kept.Chat.String()), KV: g.cfg.Store}
		if err := author.Record(ctx, d.Choice+" a call", a.Tool); err != nil {
			return err
		}
	}
	a.Decision = cmp.Or(r.Decision, &receipts.Decision{Choice: string(kept.Reason), At: g.cfg.Now()})
	g.cfg.Log.Info("approval decided", "tool", a.Tool, "hash", a.Hash, "job", j.Key(), "decision", a.Decision.Choice, "by", a.Decision.By)
	if what, counted := decisionMetrics[a.Decision.Choice]; counted {
		g.cfg.Measure(j.Message.Chat.Platform, what)
	}
	return nil
}

// mayAllow reports whether the user who decided on a request may still do so.
func (g *Gate) mayAllow(r request) bool {
	return r.mayAllow(r.Decision.By, g.cfg.Roles.Role(r.Decision.By))
}

// ForgetAccounts ends what a user, platform:id, has allowed for longer, and the open requests for calls that use an account
// of theirs: the user allows, and was asked, what the account of that time could do.
func (g *Gate) ForgetAccounts(ctx context.Context, user string) error {
	for kept, err := range g.cfg.Cards.AllOpen(ctx) {
		if err != nil {
			return err
		}
		if kept.Kind != ApprovalKind {
			continue
		}
		if r, err := decodeRequest(kept.Card); err != nil || !r.Personal || r.Requester != user {
			continue
		}
		if err := g.cfg.Cards.Invalidate(ctx, kept.Token, "⏹ **Over.** An account was connected meanwhile, so I did not run it."); err != nil {
			return err
		}
	}
	return ForgetLasting(ctx, g.cfg.Store, user) // last: until it is closed, a card may store another one
}

// AnyDecided reports whether one of the cards is closed or gone. It returns true if there are no cards.
func (g *Gate) AnyDecided(ctx context.Context, cards []string) (bool, error) {
	for _, token := range cards {
		kept, err := g.cfg.Cards.Get(ctx, token)
		if err != nil {
			return false, err
		}
		if kept == nil || !kept.IsOpen() {
			return true, nil
		}
	}
	return len(cards) == 0, nil
}

// ApplyDecisions adds to a job the decisions made while it waited, so that its next write includes
// them. It reports whether the job can continue: there is a new decision, or none is pending.
func (g *Gate) ApplyDecisions(ctx context.Context, j *queue.Run) (bool, error) {
	due, noted := 0, 0
	for i := range turn.WorkOf(j).Approvals {
		a := &turn.WorkOf(j).Approvals[i]
		if a.Decision != nil {
			continue
		}
		due++
		kept, err := g.cfg.Cards.Get(ctx, a.CardToken)
		switch {
		case err != nil:
			return false, err
		case kept == nil:
			a.Decision = &receipts.Decision{Choice: receipts.ChoiceOver, At: g.cfg.Now()}
		case kept.IsOpen():
			continue
		default:
			if err := g.recordDecision(ctx, j, a, kept); err != nil {
				return false, err
			}
		}
		noted++
	}
	return noted > 0 || due == 0, nil
}

// Invalidate closes the open cards of a turn that has ended.
func (g *Gate) Invalidate(ctx context.Context, j *queue.Run) error {
	for _, a := range turn.WorkOf(j).Approvals {
		if a.Decision != nil {
			continue
		}
		note := "⏹ **Over.** The request was ended, so I did not run it."
		if a.Question {
			note = "⏹ **Over.** The request was ended, so no answer is needed any more."
		}
		if err := g.cfg.Cards.Invalidate(ctx, a.CardToken, note); err != nil {
			return err
		}
	}
	return nil
}

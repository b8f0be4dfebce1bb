package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"oneclaw/bridge"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// ApprovalRule says whether calls need the approval of a person. It is for the calls that
// fit everything that it names; of several rules the most specific counts: one with the
// tool before one with the group, then the chat, then the role.
type ApprovalRule struct {
	// Tool is the name of a tool, or its beginning with a * behind it.
	Tool string `yaml:"tool,omitempty"`
	// Group is the name of a tool group; "core" are the tools that are always there.
	Group string `yaml:"group,omitempty"`
	// Role is the least role of who asks: user, admin or owner.
	Role string `yaml:"role,omitempty"`
	// Chat is a chat such as telegram:-100123 with all its threads, one thread of it, all
	// chats of a platform (telegram:*), or direct, shared or scheduled.
	Chat string `yaml:"chat,omitempty"`
	// Policy is allow, ask or deny.
	Policy bridge.PolicyRule `yaml:"policy"`
	// Approvers is who may approve: requester, admins, or both. Empty leaves it to the
	// tool: both, and the requester alone for tools that act in the name of their account.
	Approvers string `yaml:"approvers,omitempty"`
}

// groupCore is what a rule calls the tools that are in no group.
const groupCore = "core"

var roleNames = map[string]toolgroups.Role{"user": toolgroups.RoleUser, "admin": toolgroups.RoleAdmin, "owner": toolgroups.RoleOwner}

var approverNames = map[string]bridge.Approvers{
	"": "", "both": bridge.ApproversBoth, "requester": bridge.ApproversRequester, "admins": bridge.ApproversAdmins,
}

// String names the rule in messages about it.
func (r ApprovalRule) String() string {
	var parts []string
	for _, p := range [][2]string{{"tool", r.Tool}, {"group", r.Group}, {"role", r.Role}, {"chat", r.Chat}} {
		if p[1] != "" {
			parts = append(parts, p[0]+": "+p[1])
		}
	}
	if parts == nil {
		return "all calls"
	}
	return strings.Join(parts, ", ")
}

func (r ApprovalRule) check() error {
	switch {
	case r.Policy != bridge.PolicyAllow && r.Policy != bridge.PolicyAsk && r.Policy != bridge.PolicyDeny:
		return fmt.Errorf("policy %q is none of allow, ask, deny", r.Policy)
	case r.Tool != "" && r.Group != "":
		return errors.New("name a tool or a group, not both")
	case strings.Contains(strings.TrimSuffix(r.Tool, "*"), "*"):
		return fmt.Errorf("tool %q: a * may only stand at the end", r.Tool)
	case r.Approvers != "" && r.Policy != bridge.PolicyAsk:
		return fmt.Errorf("approvers say who is asked; with policy %s nobody is", r.Policy)
	}
	if _, ok := roleNames[r.Role]; !ok && r.Role != "" {
		return fmt.Errorf("role %q is none of user, admin, owner", r.Role)
	}
	if _, ok := approverNames[r.Approvers]; !ok {
		return fmt.Errorf("approvers %q are none of requester, admins, both", r.Approvers)
	}
	if slices.Contains([]string{"", "direct", "shared", "scheduled"}, r.Chat) {
		return nil
	}
	if _, err := bridge.ParseChat(r.Chat); err != nil {
		return fmt.Errorf("%w, telegram:*, direct, shared or scheduled", err)
	}
	return nil
}

// weight orders rules: the heavier one counts. Two of one weight never fit the same call,
// unless they name the same.
func (r ApprovalRule) weight() []int {
	tool, chat := len(r.Tool), 0
	if r.Tool != "" && !strings.HasSuffix(r.Tool, "*") {
		tool = 1000
	}
	switch r.Chat {
	case "":
	case "scheduled":
		chat = 2
	case "direct", "shared":
		chat = 1
	default:
		chat = 3 + strings.Count(r.Chat, ":")
		if strings.HasSuffix(r.Chat, ":*") {
			chat = 3
		}
	}
	return []int{tool, min(len(r.Group), 1), chat, int(roleNames[r.Role])}
}

func (r ApprovalRule) fits(call toolgroups.Call, group string) bool {
	start, all := strings.CutSuffix(r.Tool, "*")
	tool := r.Tool == "" || r.Tool == call.Name || all && strings.HasPrefix(call.Name, start)
	return tool && (r.Group == "" || r.Group == group) && call.Role >= roleNames[r.Role] && r.fitsChat(call)
}

func (r ApprovalRule) fitsChat(call toolgroups.Call) bool {
	switch r.Chat {
	case "":
		return true
	case "direct":
		return call.Direct
	case "shared":
		return !call.Direct
	case "scheduled":
		return call.Scheduled
	}
	platform, all := strings.CutSuffix(r.Chat, "*")
	return r.Chat == call.Chat || strings.HasPrefix(call.Chat, r.Chat+":") || all && strings.HasPrefix(call.Chat, platform)
}

// checkApprovals refuses rules that can not work.
func (c Config) checkApprovals() error {
	seen := make(map[string]int)
	for n, r := range c.Approvals {
		if err := r.check(); err != nil {
			return fmt.Errorf("setting approvals: rule %d (%s): %w", n+1, r, err)
		}
		if first, twice := seen[r.String()]; twice {
			return fmt.Errorf("setting approvals: rules %d and %d are for the same (%s)", first, n+1, r)
		}
		seen[r.String()] = n + 1
	}
	if c.ApprovalTimeout < 0 {
		return errors.New("setting approval_timeout (ONECLAW_APPROVAL_TIMEOUT): want a time above 0, such as 15m")
	}
	return nil
}

// approvals decide which calls need the approval of a person.
type approvals struct {
	rules    []ApprovalRule // the heaviest first
	registry func() *toolgroups.Registry
	servers  map[string]mcp.Server
}

func newApprovals(cfg Config, registry func() *toolgroups.Registry, log *slog.Logger) *approvals {
	a := &approvals{rules: slices.Clone(cfg.Approvals), registry: registry, servers: cfg.MCP.Servers}
	slices.SortStableFunc(a.rules, func(x, y ApprovalRule) int { return slices.Compare(y.weight(), x.weight()) })
	for _, r := range a.rules {
		_, tool := registry().Tool(r.Tool)
		_, group := registry().Group(r.Group)
		if r.Tool != "" && !tool && !strings.HasSuffix(r.Tool, "*") || r.Group != "" && r.Group != groupCore && !group {
			log.Warn("an approval rule is for what is not there now", "rule", r.String())
		}
	}
	return a
}

// policy is what the settings say about a call, else what its tool does.
func (a *approvals) policy(call toolgroups.Call, tool toolgroups.Tool) bridge.Policy {
	group, grouped := a.registry().GroupOf(tool.Name)
	if !grouped {
		group = groupCore
	}
	policy := a.otherwise(call, tool, group)
	for _, r := range a.rules {
		if !r.fits(call, group) {
			continue
		}
		policy.Rule = r.Policy
		if r.Approvers != "" {
			policy.Approvers = approverNames[r.Approvers]
		}
		break
	}
	return policy
}

// otherwise is the policy of a call that no rule is for. What reaches other people or can
// not be taken back asks; so does what a server from outside does not call read-only,
// unless the operator trusts it.
func (a *approvals) otherwise(call toolgroups.Call, tool toolgroups.Tool, group string) bridge.Policy {
	policy := bridge.Policy{Rule: bridge.PolicyAllow}
	g, _ := a.registry().Group(group)
	server, outside := strings.CutPrefix(g.Source, "mcp:")
	switch {
	case tool.Effect == toolgroups.ReadOnly:
	case outside && a.servers[server].Trust != mcp.TrustFull:
		policy.Rule = bridge.PolicyAsk
	case tool.Name == "http_request":
		policy.Rule = requestPolicy(call.Arguments)
	case tool.Effect == toolgroups.Consequential:
		policy.Rule = bridge.PolicyAsk
	}
	if strings.HasPrefix(group, "google_") {
		policy.Approvers = bridge.ApproversRequester // it is done in their name
	}
	return policy
}

// requestPolicy lets a request through that only reads, as webfetch does without being
// asked about; any other method is there to change something at the other end.
func requestPolicy(arguments json.RawMessage) bridge.PolicyRule {
	var in map[string]json.RawMessage
	if json.Unmarshal(arguments, &in) != nil {
		return bridge.PolicyAsk
	}
	for name, value := range in {
		var method string
		if !strings.EqualFold(name, "method") {
			continue
		}
		if json.Unmarshal(value, &method) != nil || method != "GET" {
			return bridge.PolicyAsk
		}
	}
	return bridge.PolicyAllow
}

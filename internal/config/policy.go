package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/toolgroups"
)

// Rule configures whether calls need approval. It applies to calls that match all of its fields. Of the
// rules that apply, the most specific wins: tool before group, then chat, then role.
type Rule struct {
	// Tool is the name of a tool, or a prefix followed by *.
	Tool string `yaml:"tool,omitempty"`
	// Group is the name of a tool group; "core" means the core tools.
	Group string `yaml:"group,omitempty"`
	// Role is the minimum role of the requester: user, admin or owner.
	Role string `yaml:"role,omitempty"`
	// Chat is a chat such as telegram:-100123 with all its threads and topics, also under the id to which it moves later, a
	// single thread or topic, all chats on a platform (telegram:*), or direct, shared or scheduled.
	Chat string `yaml:"chat,omitempty"`
	// Policy is allow, ask or deny.
	Policy interact.Rule `yaml:"policy"`
	// Lasting lets requesters allow such calls until they clear the conversation, if the tool permits
	// that. Without it, a rule that asks does so each time.
	Lasting bool `yaml:"lasting,omitempty"`
	// Approvers is who may approve: requester, admins, or both. Empty means only the requester for tools
	// that use a personal account, and both for other tools.
	Approvers string `yaml:"approvers,omitempty"`
}

// groupCore is the group of the core tools in rules.
const groupCore = "core"

var roleNames = map[string]toolgroups.Role{"user": toolgroups.RoleUser, "admin": toolgroups.RoleAdmin, "owner": toolgroups.RoleOwner}

var approverNames = map[string]interact.Approvers{
	"": "", "both": interact.ApproversBoth, "requester": interact.ApproversRequester, "admins": interact.ApproversAdmins,
}

// String returns the rule's conditions, for log messages and errors.
func (r Rule) String() string {
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

func (r Rule) check() error {
	switch {
	case r.Policy != interact.Allow && r.Policy != interact.Ask && r.Policy != interact.Deny:
		return fmt.Errorf("policy %q is none of allow, ask, deny", r.Policy)
	case r.Tool != "" && r.Group != "":
		return errors.New("name a tool or a group, not both")
	case strings.Contains(strings.TrimSuffix(r.Tool, "*"), "*"):
		return fmt.Errorf("tool %q: a * may only stand at the end", r.Tool)
	case r.Approvers != "" && r.Policy != interact.Ask:
		return fmt.Errorf("approvers say who is asked; with policy %s nobody is", r.Policy)
	case r.Lasting && r.Policy != interact.Ask:
		return fmt.Errorf("lasting says how long an answer may hold; with policy %s nobody is asked", r.Policy)
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
	if _, err := chats.ParseChat(r.Chat); err != nil {
		return fmt.Errorf("%w, telegram:*, direct, shared or scheduled", err)
	}
	return nil
}

// weight returns how specific the rule is; the rule with the greatest weight wins.
func (r Rule) weight() []int {
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
		chat = 3 + strings.Count(r.Chat, ":") + strings.Count(r.Chat, ".")
		if strings.HasSuffix(r.Chat, ":*") {
			chat = 3
		}
	}
	return []int{tool, min(len(r.Group), 1), chat, int(roleNames[r.Role])}
}

func (r Rule) matches(call toolgroups.Call, group string, current func(chats.Chat) chats.Chat) bool {
	start, all := strings.CutSuffix(r.Tool, "*")
	tool := r.Tool == "" || r.Tool == call.Name || all && strings.HasPrefix(call.Name, start)
	return tool && (r.Group == "" || r.Group == group) && call.Role >= roleNames[r.Role] && r.matchesChat(call, current)
}

func (r Rule) matchesChat(call toolgroups.Call, current func(chats.Chat) chats.Chat) bool {
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
	if platform, all := strings.CutSuffix(r.Chat, "*"); all {
		return strings.HasPrefix(call.Chat, platform)
	}
	rule, chat := currentID(r.Chat, current), currentID(call.Chat, current)
	// Behind a colon stands a thread, and behind a dot a person's topic in the direct messages of a channel.
	return rule == chat || strings.HasPrefix(chat, rule+":") || strings.HasPrefix(chat, rule+".")
}

// currentID returns the id of the chat to which a chat has moved, or of the chat itself.
func currentID(id string, current func(chats.Chat) chats.Chat) string {
	chat, err := chats.ParseChat(id)
	if err != nil {
		return id
	}
	return current(chat).String()
}

// checkRules returns an error for an invalid rule, or for two rules with the same conditions.
func checkRules(rules []Rule) error {
	seen := make(map[string]int)
	for n, r := range rules {
		if err := r.check(); err != nil {
			return fmt.Errorf("rule %d (%s): %w", n+1, r, err)
		}
		if first, twice := seen[r.String()]; twice {
			return fmt.Errorf("rules %d and %d are for the same (%s)", first, n+1, r)
		}
		seen[r.String()] = n + 1
	}
	return nil
}

// Policies decide which calls need approval.
type Policies struct {
	rules    []Rule // the heaviest first
	registry func() *toolgroups.Registry
	current  func(chats.Chat) chats.Chat
}

// NewPolicies returns the policies for rules that [checkRules] accepts. current returns the chat to which a chat has moved,
// or the chat itself.
func NewPolicies(rules []Rule, registry func() *toolgroups.Registry, current func(chats.Chat) chats.Chat, log *slog.Logger) *Policies {
	p := &Policies{rules: slices.Clone(rules), registry: registry, current: current}
	slices.SortStableFunc(p.rules, func(x, y Rule) int { return slices.Compare(y.weight(), x.weight()) })
	for _, r := range p.rules {
		_, tool := registry().Tool(r.Tool)
		_, group := registry().Group(r.Group)
		group = group || slices.ContainsFunc(registry().Core(), func(t toolgroups.Tool) bool { return t.RuleGroup == r.Group })
		if r.Tool != "" && !tool && !strings.HasSuffix(r.Tool, "*") || r.Group != "" && r.Group != groupCore && !group {
			log.Warn("approval rule for an unknown tool or group", "rule", r.String())
		}
	}
	return p
}

// PolicyFor returns the policy for a call according to the rules, or else the tool's default.
func (p *Policies) PolicyFor(call toolgroups.Call, tool toolgroups.Tool) interact.Policy {
	group, grouped := p.registry().GroupOf(tool.Name)
	if !grouped {
		group = cmp.Or(tool.RuleGroup, groupCore)
	}
	policy := defaultPolicy(call, tool)
	for _, r := range p.rules {
		byName := r.Tool == tool.Name
		if !r.matches(call, group, p.current) || r.Policy == interact.Allow && administers(tool) && !byName {
			continue
		}
		policy.Rule, policy.MayLast, policy.ByName = r.Policy, r.Lasting, byName
		if r.Approvers != "" {
			policy.Approvers = approverNames[r.Approvers]
		}
		break
	}
	return policy
}

// defaultPolicy returns the policy for a call to which no rule applies.
func defaultPolicy(call toolgroups.Call, tool toolgroups.Tool) interact.Policy {
	policy := interact.Policy{Rule: interact.Allow}
	asks := tool.Effect == toolgroups.Consequential
	if tool.NeedsApproval != nil {
		asks = tool.NeedsApproval(call)
	}
	switch {
	case administers(tool):
		policy.Rule, policy.Approvers = interact.Ask, interact.ApproversAdmins
	case asks && tool.Effect != toolgroups.ReadOnly:
		policy.Rule, policy.MayLast = interact.Ask, true
	case tool.CountChanged(call.Arguments) > toolgroups.MaxAtOnce:
		// One press undoes one change; nobody undoes sixty-one.
		policy.Rule = interact.Ask
	case tool.Outlives && call.ReadOthers, tool.Shares && call.HoldsOthers:
		policy.Rule = interact.Ask
	case (tool.Personal || tool.Role >= toolgroups.RoleAdmin) && !call.Direct:
		// All that it returns stays in the history or among the files of the chat, from which any member can have it read
		// aloud. What a task of the chat reads does too.
		policy.Rule, policy.MayLast = interact.Ask, true
		if tool.Role >= toolgroups.RoleAdmin {
			policy.MayLast, policy.Approvers = false, interact.ApproversAdmins
		}
	}
	if tool.Personal {
		policy.Approvers = interact.ApproversRequester
	}
	return policy
}

// administers reports whether a tool changes what only administrators may change. Whatever a model reads
// could make it call such a tool, so only a rule that names the tool lets it run unasked.
func administers(tool toolgroups.Tool) bool {
	return tool.Role >= toolgroups.RoleAdmin && tool.Effect != toolgroups.ReadOnly
}

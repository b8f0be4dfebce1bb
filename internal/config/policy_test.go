package config

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/toolgroups"
)

func policiesOf(t *testing.T, rules ...Rule) *Policies {
	t.Helper()
	run := func(context.Context, toolgroups.Call) (toolgroups.Result, error) { return toolgroups.TextResult("") }
	tool := func(name string, effect toolgroups.Effect) toolgroups.Tool {
		return toolgroups.Tool{Name: name, Effect: effect, Run: run}
	}
	personal := func(t toolgroups.Tool) toolgroups.Tool { t.Personal = true; return t }
	asking := func(t toolgroups.Tool, asks func(toolgroups.Call) bool) toolgroups.Tool {
		t.NeedsApproval = asks
		return t
	}
	made := tool("post_note", toolgroups.Changes)
	made.RuleGroup = "user_tools"
	always, never := func(toolgroups.Call) bool { return true }, func(toolgroups.Call) bool { return false }
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{
		Core: []toolgroups.Tool{tool("exec", toolgroups.Consequential), asking(tool("http_request", toolgroups.Consequential), func(call toolgroups.Call) bool { return strings.Contains(string(call.Arguments), "POST") }), tool("write_file", toolgroups.Changes), made},
		Groups: []toolgroups.Group{
			{Name: "google_gmail", Tools: []toolgroups.Tool{
				personal(tool("gmail_send", toolgroups.Consequential)), personal(tool("gmail_search", toolgroups.ReadOnly)), personal(tool("gmail_archive", toolgroups.Changes)),
			}},
			{Name: "shop", Source: "mcp:shop", Tools: []toolgroups.Tool{asking(tool("shop_list", toolgroups.ReadOnly), always), asking(tool("shop_mark", toolgroups.Changes), always)}},
			{Name: "trusted", Source: "mcp:trusted", Tools: []toolgroups.Tool{asking(tool("trusted_mark", toolgroups.Changes), never)}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := checkRules(rules); err != nil {
		t.Fatal(err)
	}
	return NewPolicies(rules, func() *toolgroups.Registry { return reg }, stays, slog.New(slog.DiscardHandler))
}

// stays is for chats that have not moved.
func stays(chat chats.Chat) chats.Chat { return chat }

func of(t *testing.T, a *Policies, tool, arguments string, scope toolgroups.Scope) interact.Policy {
	t.Helper()
	found, ok := a.registry().Tool(tool)
	if !ok {
		t.Fatalf("no tool %s", tool)
	}
	return a.PolicyFor(toolgroups.Call{Name: tool, Arguments: json.RawMessage(arguments), Scope: scope}, found)
}

func TestPoliciesWithoutRules(t *testing.T) {
	a := policiesOf(t)
	for call, want := range map[string]interact.Policy{
		`exec {}`:                        {Rule: "ask", MayLast: true},
		`write_file {}`:                  {Rule: "allow"},
		`gmail_send {}`:                  {Rule: "ask", Approvers: "requester", MayLast: true},
		`gmail_search {}`:                {Rule: "allow", Approvers: "requester"},
		`gmail_archive {}`:               {Rule: "allow", Approvers: "requester"},
		`shop_list {}`:                   {Rule: "allow"},
		`shop_mark {}`:                   {Rule: "ask", MayLast: true},
		`trusted_mark {}`:                {Rule: "allow"},
		`http_request {"url":"x"}`:       {Rule: "allow"},
		`http_request {"method":"POST"}`: {Rule: "ask", MayLast: true},
	} {
		tool, arguments, _ := strings.Cut(call, " ")
		if got := of(t, a, tool, arguments, toolgroups.Scope{Role: toolgroups.RoleUser, Direct: true}); got != want {
			t.Errorf("%s: %+v, want %+v", call, got, want)
		}
	}
}

// A tool that people made stands in the core or in its group, by how large it is; a rule does not.
func TestARuleForTheToolsOfPeopleHoldsInTheCoreToo(t *testing.T) {
	a := policiesOf(t, Rule{Group: "user_tools", Chat: "scheduled", Policy: "deny"}, Rule{Group: "core", Chat: "scheduled", Policy: "ask"})
	for tool, want := range map[string]interact.Rule{"post_note": "deny", "write_file": "ask"} {
		if got := of(t, a, tool, "{}", toolgroups.Scope{Role: toolgroups.RoleUser, Scheduled: true}); got.Rule != want {
			t.Errorf("%s: %s, want %s", tool, got.Rule, want)
		}
	}
}

// What a person's account holds, all who are in a shared chat can have read from its history, and what one of them wrote
// could have it read aloud.
func TestAPersonalAccountIsAskedForInASharedChat(t *testing.T) {
	a := policiesOf(t)
	scope := func(change func(*toolgroups.Scope)) toolgroups.Scope {
		s := toolgroups.Scope{Role: toolgroups.RoleUser}
		change(&s)
		return s
	}
	asks, allows := interact.Policy{Rule: "ask", Approvers: "requester", MayLast: true}, interact.Policy{Rule: "allow", Approvers: "requester"}
	for _, tc := range []struct {
		where string
		scope toolgroups.Scope
		want  interact.Policy
	}{
		{"a shared chat", scope(func(*toolgroups.Scope) {}), asks},
		{"a direct chat, among words of others", scope(func(s *toolgroups.Scope) { s.Direct, s.HoldsOthers = true, true }), allows},
		{"a schedule of a shared chat", scope(func(s *toolgroups.Scope) { s.Scheduled = true }), asks},
		{"a background task of a shared chat", scope(func(s *toolgroups.Scope) { s.Background = true }), asks},
	} {
		for _, tool := range []string{"gmail_search", "gmail_archive"} {
			if got := of(t, a, tool, "{}", tc.scope); got != tc.want {
				t.Errorf("%s in %s: %+v, want %+v", tool, tc.where, got, tc.want)
			}
		}
		if got := of(t, a, "shop_list", "{}", tc.scope); got.Rule != "allow" {
			t.Errorf("shop_list in %s: %+v", tc.where, got)
		}
	}
	if got := of(t, policiesOf(t, Rule{Group: "google_gmail", Policy: "allow"}), "gmail_search", "{}", toolgroups.Scope{Role: toolgroups.RoleUser}); got != allows {
		t.Errorf("with a rule that allows it: %+v", got)
	}
}

// A change that one press would undo asks when it is made to many things at once, whatever the tool is called.
func TestAChangeOfMoreThanTenThingsAtOnceAsks(t *testing.T) {
	a := policiesOf(t)
	for _, tc := range []struct {
		tool   toolgroups.Tool
		things int
		want   interact.Rule
	}{
		{toolgroups.Tool{Effect: toolgroups.Changes, Each: "ids"}, 10, "allow"},
		{toolgroups.Tool{Effect: toolgroups.Changes, Each: "ids"}, 11, "ask"},
		{toolgroups.Tool{Effect: toolgroups.ReadOnly, Each: "ids"}, 11, "allow"},
		{toolgroups.Tool{Effect: toolgroups.Changes}, 11, "allow"}, // rows of one sheet, say
		{toolgroups.Tool{Effect: toolgroups.Consequential, Each: "ids"}, 1, "ask"},
	} {
		arguments, err := json.Marshal(map[string][]string{"ids": slices.Repeat([]string{"m"}, tc.things)})
		if err != nil {
			t.Fatal(err)
		}
		call := toolgroups.Call{Name: "any", Arguments: arguments, Scope: toolgroups.Scope{Role: toolgroups.RoleUser, Direct: true}}
		if got := a.PolicyFor(call, tc.tool); got.Rule != tc.want {
			t.Errorf("%+v with %d things: %s, want %s", tc.tool, tc.things, got.Rule, tc.want)
		}
	}
}

func TestTheMostSpecificRuleCounts(t *testing.T) {
	a := policiesOf(t,
		Rule{Policy: "deny"},
		Rule{Role: "admin", Policy: "allow"},
		Rule{Chat: "direct", Policy: "ask"},
		Rule{Chat: "telegram:*", Policy: "deny"},
		Rule{Chat: "telegram:1", Policy: "allow"},
		Rule{Chat: "telegram:1:7", Policy: "ask", Approvers: "admins"},
		Rule{Group: "google_gmail", Policy: "ask"},
		Rule{Tool: "gmail_*", Chat: "scheduled", Policy: "deny"},
		Rule{Tool: "gmail_s*", Policy: "allow"},
		Rule{Tool: "gmail_send", Policy: "ask", Approvers: "both"},
		Rule{Tool: "gmail_send", Role: "owner", Policy: "allow"},
		Rule{Group: "core", Role: "user", Chat: "slack:C1", Policy: "ask", Lasting: true},
	)
	user, admin, owner := toolgroups.RoleUser, toolgroups.RoleAdmin, toolgroups.RoleOwner
	for n, tc := range []struct {
		tool  string
		scope toolgroups.Scope
		want  interact.Policy
	}{
		{"exec", toolgroups.Scope{Role: user, Chat: "slack:C2"}, interact.Policy{Rule: "deny"}},
		{"exec", toolgroups.Scope{Role: admin, Chat: "slack:C2"}, interact.Policy{Rule: "allow"}},
		{"exec", toolgroups.Scope{Role: admin, Chat: "slack:D2", Direct: true}, interact.Policy{Rule: "ask"}},
		{"exec", toolgroups.Scope{Role: user, Chat: "telegram:2", Direct: true}, interact.Policy{Rule: "deny"}},
		{"exec", toolgroups.Scope{Role: user, Chat: "telegram:1"}, interact.Policy{Rule: "allow"}},
		{"exec", toolgroups.Scope{Role: user, Chat: "telegram:1:6"}, interact.Policy{Rule: "allow"}},
		{"exec", toolgroups.Scope{Role: user, Chat: "telegram:12"}, interact.Policy{Rule: "deny"}},
		{"exec", toolgroups.Scope{Role: user, Chat: "telegram:1:7"}, interact.Policy{Rule: "ask", Approvers: "admins"}},
		{"exec", toolgroups.Scope{Role: user, Chat: "slack:C1:9"}, interact.Policy{Rule: "ask", MayLast: true}},
		{"shop_list", toolgroups.Scope{Role: user, Chat: "slack:C1"}, interact.Policy{Rule: "deny"}},
		{"gmail_archive", toolgroups.Scope{Role: user, Chat: "telegram:1"}, interact.Policy{Rule: "ask", Approvers: "requester"}},
		{"gmail_archive", toolgroups.Scope{Role: user, Chat: "telegram:1", Scheduled: true}, interact.Policy{Rule: "deny", Approvers: "requester"}},
		{"gmail_search", toolgroups.Scope{Role: user, Chat: "telegram:1", Scheduled: true}, interact.Policy{Rule: "allow", Approvers: "requester"}},
		{"gmail_send", toolgroups.Scope{Role: admin, Chat: "telegram:1"}, interact.Policy{Rule: "ask", Approvers: "both"}},
		{"gmail_send", toolgroups.Scope{Role: owner, Chat: "telegram:1"}, interact.Policy{Rule: "allow", Approvers: "requester"}},
	} {
		got := of(t, a, tc.tool, "{}", tc.scope)
		if got.ByName = false; got != tc.want {
			t.Errorf("%d: %s in %+v: %+v, want %+v", n, tc.tool, tc.scope, got, tc.want)
		}
	}
}

// A rule for a chat holds for all that is part of it, and after its move.
func TestARuleForAChatHoldsInItsThreadsAndTopicsAndAfterItsMove(t *testing.T) {
	a := policiesOf(t,
		Rule{Chat: "telegram:-1", Policy: "deny"},
		Rule{Chat: "telegram:-2", Policy: "deny"},
		Rule{Chat: "telegram:-2.7", Policy: "ask"},
	)
	moved := map[string]string{"-1": "-1001"}
	a.current = func(chat chats.Chat) chats.Chat {
		chat.ID = cmp.Or(moved[chat.ID], chat.ID)
		return chat
	}
	for chat, want := range map[string]interact.Rule{
		"telegram:-1": "deny", "telegram:-1001": "deny", "telegram:-1001:5": "deny", "telegram:-10012": "allow",
		"telegram:-2": "deny", "telegram:-2.5": "deny", "telegram:-2.7": "ask", "telegram:-25": "allow", "slack:-1": "allow",
	} {
		if got := of(t, a, "write_file", "{}", toolgroups.Scope{Role: toolgroups.RoleUser, Chat: chat}); got.Rule != want {
			t.Errorf("in %s: %s, want %s", chat, got.Rule, want)
		}
	}
}

// Text that an administrator's turn reads could ask for a change in their place, so no rule about more than
// the tool itself lets it run.
func TestAdministratorsToolsAskWhateverTheRules(t *testing.T) {
	run := func(context.Context, toolgroups.Call) (toolgroups.Result, error) { return toolgroups.TextResult("") }
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Groups: []toolgroups.Group{{Name: "config", Role: toolgroups.RoleAdmin, Tools: []toolgroups.Tool{
		{Name: "set_config", Description: "Set.", Role: toolgroups.RoleAdmin, Run: run}, {Name: "get_config", Description: "Get.", Role: toolgroups.RoleAdmin, Effect: toolgroups.ReadOnly, Run: run},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	asks := interact.Policy{Rule: interact.Ask, Approvers: interact.ApproversAdmins}
	for name, c := range map[string]struct {
		rules []Rule
		want  interact.Policy
	}{
		"no rule":                 {nil, asks},
		"a rule for all calls":    {[]Rule{{Policy: "allow"}}, asks},
		"a rule for owners":       {[]Rule{{Role: "owner", Policy: "allow"}}, asks},
		"a rule for the group":    {[]Rule{{Group: "config", Policy: "allow"}}, asks},
		"a rule for a prefix":     {[]Rule{{Tool: "set_*", Policy: "allow"}}, asks},
		"a rule that denies":      {[]Rule{{Group: "config", Policy: "deny"}}, interact.Policy{Rule: interact.Deny, Approvers: interact.ApproversAdmins}},
		"a rule that names it":    {[]Rule{{Tool: "set_config", Policy: "allow"}}, interact.Policy{Rule: interact.Allow, Approvers: interact.ApproversAdmins, ByName: true}},
		"a rule that asks longer": {[]Rule{{Tool: "set_config", Policy: "ask", Lasting: true}}, interact.Policy{Rule: interact.Ask, Approvers: interact.ApproversAdmins, MayLast: true, ByName: true}},
	} {
		a := NewPolicies(c.rules, func() *toolgroups.Registry { return reg }, stays, slog.New(slog.DiscardHandler))
		if got := of(t, a, "set_config", "{}", toolgroups.Scope{Role: toolgroups.RoleOwner}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if got := of(t, a, "get_config", "{}", toolgroups.Scope{Role: toolgroups.RoleOwner, Direct: true}); got.Rule == interact.Ask {
			t.Errorf("%s: a view asks: %+v", name, got)
		}
		// In a shared chat what it returns stays, so that all can ask for it.
		if got := of(t, a, "get_config", "{}", toolgroups.Scope{Role: toolgroups.RoleOwner}); c.rules == nil && (got.Rule != interact.Ask || got.Approvers != interact.ApproversAdmins) {
			t.Errorf("%s: a view in a shared chat: %+v", name, got)
		}
	}
}

func TestBadApprovalRules(t *testing.T) {
	for want, rules := range map[string][]Rule{
		`rule 1 \(tool: exec\): policy "" is none`:        {{Tool: "exec"}},
		`rule 2 \(all calls\): policy "never" is none`:    {{Policy: "ask"}, {Policy: "never"}},
		`a tool or a group`:                               {{Tool: "a", Group: "b", Policy: "ask"}},
		`a \* may only stand at the end`:                  {{Tool: "*_send", Policy: "ask"}},
		`role "boss" is none`:                             {{Role: "boss", Policy: "ask"}},
		`approvers "me" are none`:                         {{Approvers: "me", Policy: "ask"}},
		`with policy allow nobody is`:                     {{Approvers: "admins", Policy: "allow"}},
		`with policy deny nobody is asked`:                {{Lasting: true, Policy: "deny"}},
		`rule 1 \(chat: here\): chat "here": want`:        {{Chat: "here", Policy: "ask"}},
		`rules 1 and 2 are for the same \(group: shop\)$`: {{Group: "shop", Policy: "ask"}, {Group: "shop", Policy: "deny"}},
	} {
		err := checkRules(rules)
		if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%v: error %v, want %s", rules, err, want)
		}
	}
}

func TestWhatIsWrittenWhereOthersMayReadAsksAmongTheirWords(t *testing.T) {
	a := policiesOf(t)
	tool := toolgroups.Tool{Name: "docs_append_text", Effect: toolgroups.Changes, Shares: true, Personal: true}
	for _, holds := range []bool{false, true} {
		want := interact.Policy{Rule: interact.Allow, Approvers: interact.ApproversRequester}
		if holds {
			want.Rule = interact.Ask
		}
		call := toolgroups.Call{Name: tool.Name, Arguments: json.RawMessage(`{}`), Scope: toolgroups.Scope{Role: toolgroups.RoleUser, HoldsOthers: holds, Direct: true}}
		if got := a.PolicyFor(call, tool); got != want {
			t.Errorf("words of others %t: %+v, want %+v", holds, got, want)
		}
	}
}

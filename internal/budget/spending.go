package budget

import (
	"context"
	"fmt"
	"strings"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/toolgroups"
)

// Commands returns the chat commands that report usage. payerOf returns the payer of a user's calls.
func Commands(l *Ledger, payerOf func(toolgroups.Scope) Payer) []bridge.Command {
	info := chats.CommandInfo{Name: "usage", Description: "Today's usage, and the rest of the budget"}
	return []bridge.Command{{CommandInfo: info, Ephemeral: true, Run: func(ctx context.Context, call bridge.CommandCall) (string, error) {
		r, err := l.Report(ctx, payerOf(call.Scope))
		if err != nil {
			return "", err
		}
		return usageText(r, call.Scope), nil
	}}}
}

func usageText(r Report, scope toolgroups.Scope) string {
	var text strings.Builder
	fmt.Fprintf(&text, "**Today**, until %s:\n\n", r.Until.Format("15:04 (MST)"))
	line := func(who string, l AccountStatus) { fmt.Fprintf(&text, "- %s: %s\n", who, usageLine(l)) }
	line("you", r.User)
	if !scope.Direct || r.Chat.Limit != (Limit{}) {
		line("this chat", r.Chat)
	}
	if scope.Role >= toolgroups.RoleAdmin {
		line("everybody", r.Total)
		line("everybody this month", r.Month)
		if r.Month.Spent.Unpriced > 0 {
			text.WriteString("\nWhere a price is unknown, add `prices` to the settings.\n")
		}
	}
	ever := r.ChatTotal
	fmt.Fprintf(&text, "\n**This chat since it began**: %s tokens in %s", FormatCount(ever.Tokens()), formatCalls(ever.Calls))
	if cost := CostText(ever); cost != "" {
		text.WriteString(", " + cost)
	}
	text.WriteString(".")
	if s := savingsText(ever, "Tools took about %s tokens of that; sending all of them with every call would have taken about %s"); s != "" {
		text.WriteString(" " + s)
	}
	return text.String()
}

// usageLine describes the usage of an account, and the rest of its limit.
func usageLine(l AccountStatus) string {
	s := l.Spent
	text := FormatCount(s.Tokens())
	switch {
	case l.Limit.Tokens > 0:
		text += fmt.Sprintf(" of %s tokens (%s left)", FormatCount(l.Limit.Tokens), FormatCount(max(l.Limit.Tokens-s.Tokens(), 0)))
	case s.Calls == 0:
		text = "nothing"
	default:
		text += " tokens"
	}
	if s.Calls > 0 {
		text += " in " + formatCalls(s.Calls)
	}
	if s.Searches > 0 {
		text += fmt.Sprintf(", %s", formatSearches(s.Searches))
	}
	if s.Input > 0 && s.Cached > 0 {
		text += fmt.Sprintf(", %d %% of the input from the cache", 100*min(s.Cached, s.Input)/s.Input)
	}
	if cost := costText(s, l.Limit.Money); cost != "" {
		text += ", " + cost
	}
	return text
}

// CostText says what was spent, and of how many calls the price is unknown; empty if it was nothing.
func CostText(s Usage) string { return costText(s, 0) }

// costText is [CostText], with the limit if there is one.
func costText(s Usage, limit USD) string {
	var parts []string
	switch {
	case limit > 0:
		parts = append(parts, fmt.Sprintf("%s of %s (%s left)", s.Money, limit, max(limit-s.Money, 0)))
	case s.Money > 0:
		parts = append(parts, s.Money.String())
	}
	if s.Unpriced > 0 {
		parts = append(parts, fmt.Sprintf("price of %s unknown", formatCalls(s.Unpriced)))
	}
	return strings.Join(parts, ", ")
}

func formatCalls(n int64) string {
	if n == 1 {
		return "1 call"
	}
	return FormatCount(n) + " calls"
}

func formatSearches(n int64) string {
	if n == 1 {
		return "1 search of the web"
	}
	return FormatCount(n) + " searches of the web"
}

// SavingsOf returns a function for bridge.Hooks.Savings.
func SavingsOf(l *Ledger) func(context.Context, toolgroups.Scope) (string, error) {
	return func(ctx context.Context, scope toolgroups.Scope) (string, error) {
		r, err := l.Report(ctx, Payer{User: scope.User, Chat: scope.Chat})
		return savingsText(r.ChatTotal, "So far in this chat: about %s tokens of tools instead of %s"), err
	}
}

// savingsText describes the tokens that loading tools on demand has saved; empty before the first call.
func savingsText(s Usage, told string) string {
	if s.AllToolTokens == 0 {
		return ""
	}
	return fmt.Sprintf(told+", so %s were saved (%d %%).", FormatCount(s.ToolTokens), FormatCount(s.AllToolTokens), FormatCount(s.SavedTokens()), 100*s.SavedTokens()/s.AllToolTokens)
}

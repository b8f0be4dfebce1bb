package budget

import (
	"strings"
	"testing"
	"time"

	"oneclaw/toolgroups"
)

func TestUsageLine(t *testing.T) {
	for _, c := range []struct {
		line AccountStatus
		want string
	}{
		{AccountStatus{}, "nothing"},
		{AccountStatus{Limit: Limit{Tokens: 10_000}}, "0 of 10,000 tokens (10,000 left)"},
		{AccountStatus{Limit: Limit{Money: Dollar}}, "nothing, $0.00 of $1.00 ($1.00 left)"},
		{
			AccountStatus{Spent: Usage{Calls: 1, Input: 1000, Cached: 250, Output: 234, Money: Dollars(0.0042)}},
			"1,234 tokens in 1 call, 25 % of the input from the cache, $0.0042",
		},
		{
			AccountStatus{Spent: Usage{Calls: 1200, Input: 5000, Output: 7000, Unpriced: 2}, Limit: Limit{Tokens: 10_000, Money: Dollar}},
			"12,000 of 10,000 tokens (0 left) in 1,200 calls, $0.00 of $1.00 ($1.00 left), price of 2 calls unknown",
		},
		{AccountStatus{Spent: Usage{Calls: 2, Input: 5000, Unpriced: 2}}, "5,000 tokens in 2 calls, price of 2 calls unknown"},
		{AccountStatus{Spent: Usage{Calls: 2, Input: 5000, Money: Dollars(0.05), Unpriced: 2}}, "5,000 tokens in 2 calls, $0.05, price of 2 calls unknown"},
	} {
		if got := usageLine(c.line); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.line, got, c.want)
		}
	}
}

// What all chats use is for administrators.
func TestUsageNamesTokensAndCost(t *testing.T) {
	used := Usage{Calls: 2, Input: 3000, Output: 100, ToolTokens: 2000, AllToolTokens: 20_000, Money: Dollars(0.5)}
	r := Report{
		Until: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), User: AccountStatus{Spent: used}, Total: AccountStatus{Spent: used}, ChatTotal: used,
	}
	alone := usageText(r, toolgroups.Scope{Direct: true, Role: toolgroups.RoleUser})
	want := "**Today**, until 00:00 (UTC):\n\n- you: 3,100 tokens in 2 calls, $0.50\n\n" +
		"**This chat since it began**: 3,100 tokens in 2 calls, $0.50. Tools took about 2,000 tokens of that; sending all of them with every call would have taken about 20,000, so 18,000 were saved (90 %)."
	if alone != want {
		t.Errorf("got  %q\nwant %q", alone, want)
	}
	shared := usageText(r, toolgroups.Scope{Role: toolgroups.RoleAdmin})
	for _, part := range []string{"- this chat: nothing", "- everybody: 3,100", "- everybody this month: nothing"} {
		if !strings.Contains(shared, part) {
			t.Errorf("%q is not in %q", part, shared)
		}
	}
}

// An unknown price is said in the same words of the day and of the chat.
func TestAnUnknownPriceIsSaidInOneWay(t *testing.T) {
	used := Usage{Calls: 34, Input: 3000, Money: Dollars(0.05), Unpriced: 33}
	text := usageText(Report{User: AccountStatus{Spent: used}, Total: AccountStatus{Spent: used}, Month: AccountStatus{Spent: used}, ChatTotal: used}, toolgroups.Scope{Direct: true, Role: toolgroups.RoleAdmin})
	if n := strings.Count(text, "$0.05, price of 33 calls unknown"); n != 4 || strings.Count(text, "nknown") != 5 {
		t.Errorf("the chat shows %q", text)
	}
}

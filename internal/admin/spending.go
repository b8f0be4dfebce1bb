package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/receipts"
	"oneclaw/internal/admin/frame"
	"oneclaw/internal/budget"
)

// accountKinds are the kinds of accounts for which spending is shown.
var accountKinds = []struct {
	kind          budget.Kind
	title, column string
}{
	{budget.KindUser, "By person", "Person"},
	{budget.KindChat, "By chat", "Chat"},
	{budget.KindModel, "By model", "Model"},
	{budget.KindGroup, "By tool group", "Tool group"},
}

// spending shows the budgets, and a day's usage by account.
func (p *page) spending(ctx context.Context, r frame.Request) (frame.Page, error) {
	today := p.Now().In(p.Zone()).Format(time.DateOnly)
	shown := r.Query.Get("day")
	if _, err := time.Parse(time.DateOnly, shown); err != nil {
		shown = today
	}
	choose := frame.Form{View: "spending", IsSearch: true, Submit: "Show", Fields: []frame.Field{{Name: "day", Label: "Day", Value: shown, Hint: today}}}
	sections := []frame.Section{{Forms: []frame.Form{choose}}}
	if p.Ledger != nil {
		report, err := p.Ledger.Report(ctx, budget.Payer{})
		if err != nil {
			return frame.Page{}, err
		}
		limits, err := p.Ledger.Limits(ctx)
		if err != nil {
			return frame.Page{}, err
		}
		sections = append(sections, frame.Section{Title: "Budgets", Table: budgetsTable(report, limits)})
	}
	days, err := budget.Days(ctx, p.Store, p.Now().In(p.Zone()), overviewDays)
	if err != nil {
		return frame.Page{}, err
	}
	sections = append(sections, costByDay(days))
	for _, s := range accountKinds {
		t, err := p.spendingTable(ctx, r, shown, s.kind, s.column)
		if err != nil {
			return frame.Page{}, err
		}
		sections = append(sections, frame.Section{Title: s.title, Table: t})
	}
	return frame.Page{Title: "Spending of " + shown, Lead: "By person and chat for two months, by model and tool group for 400 days. Days begin at midnight in the zone of the bot.", Sections: sections}, nil
}

// costByDay plots the costs, as far as prices are known.
func costByDay(days []budget.Day) frame.Section {
	const title = "Cost by day"
	bars := &frame.Bars{Title: title, Format: func(v float64) string { return budget.USD(v).String() }}
	unpriced := int64(0)
	for _, d := range days {
		bars.Labels, bars.Values = append(bars.Labels, d.Day[5:]), append(bars.Values, float64(d.Money))
		unpriced += d.Unpriced
	}
	section := frame.Section{Title: title, Bars: bars}
	if unpriced > 0 {
		section.Text = []string{formatCount(int(unpriced), "call", "calls") + " without a known price: add prices to the settings."}
	}
	return section
}

func budgetsTable(r budget.Report, limits budget.Limits) *frame.Table {
	t := &frame.Table{Name: "budgets", Caption: "Budgets now", Columns: frame.Columns("Of", "Limit", "#Tokens used", "#Cost")}
	row := func(of string, limit budget.Limit, spent *budget.Usage) {
		text := "none"
		if limit != (budget.Limit{}) {
			text = limitText(limit)
		}
		cells := []frame.Cell{frame.Text(of), frame.Text(text), frame.Number(""), frame.Number("")}
		if spent != nil {
			cells[2], cells[3] = frame.Number(formatThousands(spent.Tokens())), frame.Number(costText(*spent))
		}
		t.Rows = append(t.Rows, cells)
	}
	row("each person, a day", limits.User, nil)
	row("each chat, a day", limits.Chat, nil)
	row("all together, today", r.Total.Limit, &r.Total.Spent)
	row("all together, this month", r.Month.Limit, &r.Month.Spent)
	return t
}

func limitText(l budget.Limit) string {
	var parts []string
	if l.Tokens > 0 {
		parts = append(parts, formatThousands(l.Tokens)+" tokens")
	}
	if l.Money > 0 {
		parts = append(parts, l.Money.String())
	}
	return strings.Join(parts, ", ")
}

// spendingTable lists the largest accounts of a kind among a bounded number.
func (p *page) spendingTable(ctx context.Context, r frame.Request, day string, kind budget.Kind, column string) (*frame.Table, error) {
	t := &frame.Table{
		Name: string(kind), Caption: "Spending of " + day + " by " + strings.ToLower(column), Empty: "Nothing was used on that day.",
		Columns: frame.Columns(column, "#Calls", "#Tokens in", "#From the cache", "#Tokens out", "#Cost", "#Tool tokens (est.)", "#Saved (est.)"),
	}
	parameter := "after-" + string(kind)
	after := r.Query.Get(parameter)
	if after != "" {
		t.First = r.Link(parameter, "")
	}
	var lines []budget.AccountStatus
	whole := true
	for line, err := range budget.ListAccounts(ctx, p.Store, day, kind, after) {
		if err != nil {
			return nil, err
		}
		if len(lines) == maxScanned {
			whole = false
			break
		}
		lines = append(lines, line)
	}
	if !whole {
		t.Next = r.Link(parameter, lines[len(lines)-1].Account.Name)
	}
	slices.SortStableFunc(lines, func(a, b budget.AccountStatus) int {
		return int(min(max(b.Spent.Tokens()+b.Spent.ToolTokens-a.Spent.Tokens()-a.Spent.ToolTokens, -1), 1))
	})
	if n := min(len(lines), r.Limit); n < len(lines) || !whole {
		t.SearchNote = fmt.Sprintf("Looked at %s: these %d used most of them.", formatCount(len(lines), "account", "accounts"), n)
		lines = lines[:n]
	}
	names, err := p.displayNames(ctx, kind, lines)
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		s := l.Spent
		number := func(n int64) frame.Cell { return frame.Number(formatThousands(n)) }
		t.Rows = append(t.Rows, []frame.Cell{
			frame.Text(names[l.Account.Name]), number(s.Calls), number(s.Input), number(s.Cached), number(s.Output), frame.Number(costText(s)), number(s.ToolTokens), number(s.SavedTokens()),
		})
	}
	return t, nil
}

// costText formats a cost; it returns "unknown" if no price is known.
func costText(s budget.Usage) string {
	if s.Money == 0 && s.Unpriced > 0 {
		return "unknown"
	}
	return s.Money.String()
}

// displayNames returns the display names of accounts: users and chats with their names on the platform,
// if they were let in or have written in the last week.
func (p *page) displayNames(ctx context.Context, kind budget.Kind, lines []budget.AccountStatus) (map[string]string, error) {
	shown, wanted := map[string]string{}, map[string]bool{}
	for _, l := range lines {
		shown[l.Account.Name] = l.Account.Name
		wanted[l.Account.Name] = kind == budget.KindUser || kind == budget.KindChat
	}
	if p.People != nil && kind == budget.KindUser {
		for _, one := range p.People() {
			if one.Name != "" && wanted[one.User] {
				delete(wanted, one.User)
				shown[one.User] = one.Name + " (" + one.User + ")"
			}
		}
	}
	maps.DeleteFunc(wanted, func(_ string, is bool) bool { return !is })
	var last []receipts.Entry
	n := 0
	for f, err := range receipts.ListEntries(ctx, p.Store, "") {
		if err != nil {
			return nil, err
		}
		if n++; n > maxScanned || len(wanted) == 0 {
			break
		}
		chat, _, _ := strings.Cut(f.Key, "/")
		platform, _, _ := strings.Cut(chat, ":")
		account := platform + ":" + f.User
		if kind == budget.KindChat {
			account = chat
		}
		if wanted[account] {
			delete(wanted, account) // the newest has the name
			last = append(last, f)
		}
	}
	known, err := receipts.LoadReceipts(ctx, p.Store, last)
	if err != nil {
		return nil, err
	}
	for _, j := range known {
		account, by := j.Message.SenderID(), j.Message.UserName
		if kind == budget.KindChat {
			if account = j.Message.Chat.String(); !j.Message.Direct {
				by = "group"
			}
		}
		if by != "" {
			shown[account] = by + " (" + account + ")"
		}
	}
	return shown, nil
}

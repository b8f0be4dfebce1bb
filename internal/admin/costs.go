package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/budget"
)

const (
	costsView = "costs"
	// costDays is how many days the table by day has.
	costDays = 30
)

// costs shows the budgets, the last days, and a day's usage by person, chat and model.
func (p *Pages) costs(ctx context.Context, r request) (page, error) {
	now := p.Now().In(p.Zone())
	today, day := now.Format(time.DateOnly), r.query.Get("day")
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		day = today
	}
	limits, err := p.limitsTable(ctx)
	if err != nil {
		return page{}, err
	}
	choose := form{View: costsView, IsSearch: true, Submit: "Show", Fields: []field{{Name: "day", Label: "Day", Value: day, Hint: today}}}
	sections := []section{{Title: "Budgets", Table: limits}}
	for i, by := range []struct {
		kind          budget.Kind
		title, column string
	}{{budget.KindUser, "By person", "Person"}, {budget.KindChat, "By chat", "Chat"}, {budget.KindModel, "By model", "Model"}} {
		t, err := p.accountsTable(ctx, day, by.kind, by.column)
		if err != nil {
			return page{}, err
		}
		s := section{Title: by.title, Table: t}
		if i == 0 {
			s.Forms = []form{choose}
		}
		sections = append(sections, s)
	}
	days, err := p.daysSection(ctx, now)
	if err != nil {
		return page{}, err
	}
	return page{Title: "Costs of " + day, Lead: "Days begin at midnight in the zone of the bot. People and chats are kept for two months, models for 400 days.", Sections: append(sections, days)}, nil
}

func (p *Pages) limitsTable(ctx context.Context) (*table, error) {
	report, err := p.Ledger.Report(ctx, budget.Payer{})
	if err != nil {
		return nil, err
	}
	limits, err := p.Ledger.Limits(ctx)
	if err != nil {
		return nil, err
	}
	t := &table{Caption: "Budgets now", Columns: columns("Of", "Limit", "#Tokens used", "#Cost")}
	row := func(of string, limit budget.Limit, used ...budget.Usage) {
		cells := []cell{text(of), text(cmp.Or(limitText(limit), "none")), number(""), number("")}
		for _, u := range used {
			cells[2], cells[3] = number(budget.FormatCount(u.Tokens())), number(costText(u))
		}
		t.Rows = append(t.Rows, cells)
	}
	row("each person, a day", limits.User)
	if p.Allowance != "" {
		t.Rows = append(t.Rows, []cell{text("each person who was let in from a chat, a day"), text(p.Allowance), number(""), number("")})
	}
	row("each chat, a day", limits.Chat)
	row("all together, today", report.Total.Limit, report.Total.Spent)
	row("all together, this month", report.Month.Limit, report.Month.Spent)
	return t, nil
}

// limitText returns a limit; empty for none.
func limitText(limit budget.Limit) string {
	var parts []string
	if limit.Money > 0 {
		parts = append(parts, limit.Money.String())
	}
	if limit.Tokens > 0 {
		parts = append(parts, budget.FormatCount(limit.Tokens)+" tokens")
	}
	return strings.Join(parts, ", ")
}

// accountsTable lists the largest accounts of a kind among a bounded number.
func (p *Pages) accountsTable(ctx context.Context, day string, kind budget.Kind, column string) (*table, error) {
	t := &table{Caption: "Costs of " + day + " by " + strings.ToLower(column), Columns: columns(append([]string{column}, usageColumns...)...), Empty: "Nothing was used on that day."}
	var lines []budget.AccountStatus
	for line, err := range budget.ListAccounts(ctx, p.Store, day, kind, "") {
		if err != nil {
			return nil, err
		}
		if len(lines) == maxScanned {
			break
		}
		lines = append(lines, line)
	}
	slices.SortStableFunc(lines, func(a, b budget.AccountStatus) int { return cmp.Compare(b.Spent.Tokens(), a.Spent.Tokens()) })
	if len(lines) > maxRows {
		t.Note = fmt.Sprintf("Looked at %s: these %d used most of them.", budget.FormatCount(int64(len(lines))), maxRows)
		lines = lines[:maxRows]
	}
	var ids []string
	for _, l := range lines {
		if kind != budget.KindModel {
			ids = append(ids, l.Account.Name)
		}
	}
	names, err := p.names(ctx, ids...)
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		t.Rows = append(t.Rows, usageRow(labelled(names[l.Account.Name], l.Account.Name), l.Spent))
	}
	return t, nil
}

// daysSection lists the usage of the last days, the newest first.
func (p *Pages) daysSection(ctx context.Context, now time.Time) (section, error) {
	days, err := budget.Days(ctx, p.Store, now, costDays)
	if err != nil {
		return section{}, err
	}
	s := section{Title: "By day", Table: &table{Caption: fmt.Sprintf("The last %d days, the newest first", costDays), Columns: columns(append([]string{"Day"}, usageColumns...)...), Empty: "Nothing was used."}}
	unpriced := false
	for _, d := range slices.Backward(days) {
		if unpriced = unpriced || d.Unpriced > 0; d.Calls > 0 {
			s.Table.Rows = append(s.Table.Rows, usageRow(d.Day, d.Usage))
		}
	}
	if unpriced {
		s.Text = []string{"Where a price is unknown, add prices to the settings."}
	}
	return s, nil
}

var usageColumns = []string{"#Calls", "#Tokens in", "#From the cache", "#Tokens out", "#Cost"}

// usageRow returns a row with the usageColumns.
func usageRow(of string, u budget.Usage) []cell {
	row := []cell{text(of)}
	for _, n := range []int64{u.Calls, u.Input, u.Cached, u.Output} {
		row = append(row, number(budget.FormatCount(n)))
	}
	return append(row, number(costText(u)))
}

func costText(u budget.Usage) string { return cmp.Or(budget.CostText(u), u.Money.String()) }

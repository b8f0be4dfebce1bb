package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/receipts"
	"oneclaw/internal/budget"
	"oneclaw/internal/doctor"
	"oneclaw/internal/telemetry"
	"oneclaw/internal/wording"
)

const (
	// Something needs an administrator if an error is younger than recentErrorAge and no message was answered
	// since, or if a message that does not wait for a person has been open for longer than longWait.
	recentErrorAge = time.Hour
	longWait       = 10 * time.Minute
	// maxErrors bounds the errors shown, and maxErrorText the text of one, in characters.
	maxErrors, maxErrorText = 10, 200
	// trendDays is how many days the chart of costs has.
	trendDays = 14
	// errorsID is the id of the section with the errors.
	errorsID = "errors"
)

// overview says first whether all is well or what needs an administrator, then what was done today, who waits
// for what, and what went wrong. With a form it makes all checks of doctor.
func (p *Pages) overview(ctx context.Context, r request) (page, error) {
	checks := section{Title: "Checks", Text: []string{"Version " + p.Bot.Version}, Forms: []form{{Submit: "Check everything now"}}}
	var made []doctor.Finding
	if r.form != nil {
		made = p.Bot.Examine(ctx)
		checks.Table = &table{Caption: "What oneclaw doctor finds", Columns: columns("What", "State", "Why")}
		for _, f := range made {
			state := map[doctor.Verdict]mood{doctor.VerdictOK: good, doctor.VerdictFail: bad}[f.Status]
			checks.Table.Rows = append(checks.Table.Rows, []cell{text(f.Check), {Text: string(f.Status), Mood: state}, text(f.Text)})
		}
	}
	store := doctor.Finding{Check: "store", Status: doctor.VerdictOK}
	today, done, err := p.today(ctx)
	var waits, trend table
	if err == nil {
		waits, err = p.waitsTable(ctx, r)
	}
	if err == nil {
		trend, err = p.trendTable(ctx)
	}
	if err != nil {
		p.Log.Error("the overview cannot be read", "err", err)
		store.Status, store.Text = doctor.VerdictFail, "the database cannot be read: oneclaw doctor checks it"
	}
	verdict, notes := p.verdict(append(p.Bot.Health(ctx), store), made, done)
	failed := cell{Text: fmt.Sprintf("Today %s without an answer: see which", wording.Plural(len(done.failed), "message ended", "messages ended")), Link: viewURL(messagesView, url.Values{"state": {"failed"}})}
	switch {
	case done.failing:
		verdict.Items = append(verdict.Items, failed)
	case len(done.failed) > 0:
		notes = append(notes, failed)
	}
	if len(verdict.Items) > 0 {
		verdict.Title, verdict.Mood = "Something needs you", bad
	}
	verdict.Items = append(verdict.Items, notes...)
	sections := []section{verdict}
	if err == nil {
		sections = append(sections, section{Title: "Today", Facts: today}, section{Title: "Who waits for what", Table: &waits})
	}
	sections = append(sections, section{ID: errorsID, Title: "What went wrong", Table: p.errorsTable()})
	if len(trend.Rows) > 1 { // today's cost is above
		sections = append(sections, section{Title: "Cost by day", Table: &trend})
	}
	return page{Sections: append(sections, checks)}, nil
}

// verdict says which parts work and, in its items, what is wrong and what to do about it. The notes are about what works
// nevertheless.
func (p *Pages) verdict(parts, made []doctor.Finding, done count) (s section, notes []cell) {
	s = section{Title: "All is well", Mood: good}
	for _, f := range parts {
		state := cell{Text: "✓", Mood: good}
		switch f.Status {
		case doctor.VerdictFail:
			state = cell{Text: "✗", Mood: bad}
			s.Items = append(s.Items, advice(f))
		case doctor.VerdictWarn:
			state = text("!")
			notes = append(notes, advice(f))
		}
		s.Facts = append(s.Facts, fact{partName(f.Check), state})
	}
	for _, f := range made {
		isPart := slices.ContainsFunc(parts, func(part doctor.Finding) bool { return part.Check == f.Check })
		if f.Status == doctor.VerdictFail && !isPart {
			s.Items = append(s.Items, advice(f))
		}
	}
	for _, server := range p.Tools.Servers() {
		if state, _ := serverState(server); state.Mood == bad {
			asked := "" // a server is asked when it is used, so this may be long ago
			if !server.LastAsked.IsZero() {
				asked = ", last asked " + p.clock(server.LastAsked)
			}
			s.Items = append(s.Items, cell{Text: "MCP server " + server.Name + " " + state.Text + asked + ": see why", Link: viewURL(toolsView, nil)})
		}
	}
	for _, last := range p.Errors.Last() {
		if p.Now().Sub(last.At) >= recentErrorAge {
			break
		}
		isOver := messageLink(last.Job) != "" && last.At.Before(done.well)
		if isOver || isSaidOtherwise(last, parts, done.failed) {
			continue
		}
		what := strings.Trim(last.Text+": "+last.Remedy, ": ")
		s.Items = append(s.Items, cell{Text: wording.Clip(last.At.In(p.Zone()).Format("15:04")+" "+what, maxErrorText), Link: cmp.Or(messageLink(last.Job), Root+"#"+errorsID)})
		break
	}
	if oldest := p.Bot.QueueStats().OldestDue; !oldest.IsZero() && p.Now().Sub(oldest) > longWait {
		s.Items = append(s.Items, cell{Text: "A message has been open since " + p.clock(oldest), Link: viewURL(messagesView, nil)})
	}
	return s, notes
}

// isSaidOtherwise reports whether an error adds nothing to the verdict: a platform's state now is among the parts, and
// the job of a message without an answer is among those that failed today.
func isSaidOtherwise(one telemetry.Error, parts []doctor.Finding, failed []string) bool {
	return slices.ContainsFunc(parts, func(part doctor.Finding) bool { return part.Check == one.Platform }) ||
		one.Remedy == "" && slices.Contains(failed, one.Job)
}

// advice returns an item that says what to do about a finding. The error itself is among the checks and in the log.
func advice(f doctor.Finding) cell {
	said := strings.TrimPrefix(f.Advice(), f.Check+": ")
	if rest, named := strings.CutPrefix(said, f.Check+" "); named {
		return text(partName(f.Check) + " " + rest)
	}
	return text(partName(f.Check) + ": " + said)
}

// partName returns the name of a part as a heading has it.
func partName(check string) string { return strings.ToUpper(check[:1]) + check[1:] }

// clock returns a time of today as its hour and minute, and one of another day with the day.
func (p *Pages) clock(at time.Time) string {
	at, layout := at.In(p.Zone()), "15:04"
	if at.Format(time.DateOnly) != p.Now().In(p.Zone()).Format(time.DateOnly) {
		layout = "2 January 15:04"
	}
	return at.Format(layout)
}

// count is how many messages were closed today, and the keys of those without an answer.
type count struct {
	all    int
	failed []string
	// well is when the last one was answered, and failing whether one failed since then, in the last hour.
	well    time.Time
	failing bool
}

// today returns the messages and the costs of today.
func (p *Pages) today(ctx context.Context) ([]fact, count, error) {
	now := p.Now().In(p.Zone())
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	var done count
	for f, err := range receipts.ListEntries(ctx, p.Store, "") {
		if err != nil {
			return nil, done, err
		}
		if f.At.Before(midnight) || done.all == maxScanned {
			break
		}
		done.all++
		switch {
		case f.State == receipts.Failed || f.Incident != "":
			done.failed = append(done.failed, f.Key)
			done.failing = done.failing || done.well.IsZero() && now.Sub(f.At) < recentErrorAge
		case f.State == receipts.Done && done.well.IsZero():
			done.well = f.At
		}
	}
	messages := budget.FormatCount(int64(done.all))
	if done.all == maxScanned {
		messages += " or more"
	}
	used, err := p.Ledger.Report(ctx, budget.Payer{})
	if err != nil {
		return nil, done, err
	}
	cost := costText(used.Total.Spent)
	if limit := limitText(used.Total.Limit); limit != "" {
		cost += " of " + limit
	}
	return []fact{
		{"Messages", cell{Text: messages, Link: viewURL(messagesView, nil)}},
		{"Cost", cell{Text: cost, Link: viewURL(costsView, nil)}},
		{"Tokens", text(budget.FormatCount(used.Total.Spent.Tokens()))},
	}, done, nil
}

// trendTable shows the cost of the last days as bars, the newest first.
func (p *Pages) trendTable(ctx context.Context) (table, error) {
	t := table{Caption: fmt.Sprintf("The last %d days", trendDays), Columns: columns("Day", "#Cost", "Against the dearest day")}
	days, err := budget.Days(ctx, p.Store, p.Now().In(p.Zone()), trendDays)
	if err != nil {
		return t, err
	}
	dearest := slices.MaxFunc(days, func(a, b budget.Day) int { return cmp.Compare(a.Money, b.Money) }).Money
	for _, d := range slices.Backward(days) {
		if d.Calls > 0 {
			day := cell{Text: d.Day, Link: viewURL(costsView, url.Values{"day": {d.Day}})}
			t.Rows = append(t.Rows, []cell{day, number(costText(d.Usage)), {Bar: float64(d.Money) / float64(max(dearest, 1))}})
		}
	}
	return t, nil
}

// waitsTable lists who waits for a decision.
func (p *Pages) waitsTable(ctx context.Context, r request) (table, error) {
	t := table{Caption: "What a person has to decide", Columns: columns("Who", "Waits for", "Where", "Until"), Empty: "No one."}
	calls, err := p.waitingCalls(ctx, r)
	if err != nil {
		return t, err
	}
	names, err := p.approvalNames(ctx, calls)
	if err != nil {
		return t, err
	}
	for _, q := range calls {
		what := "a decision about "
		if q.DenyData == "" { // the visitor may not press any of its buttons
			what = "another person's decision about "
		}
		t.Rows = append(t.Rows, []cell{text(names[q.Requester]), {Text: what + q.Tool, Link: viewURL(peopleView, nil) + "#" + approvalID(q)}, text(placeName(q, names)), at(q.Expires)})
	}
	for _, one := range p.People.ListPeople() {
		if one.Standing == "asked" && len(t.Rows) < maxRows {
			t.Rows = append(t.Rows, []cell{text(cmp.Or(one.Name, one.User)), {Text: "being let in", Link: viewURL(peopleView, nil) + "#" + peopleView}, text(""), at(one.Until)})
		}
	}
	return t, nil
}

// errorsTable lists the last errors that this process has logged.
func (p *Pages) errorsTable() *table {
	t := &table{Caption: "The last errors since this process began; the log has all, with details", Columns: columns("When", "What failed", "Why", "Id"), Empty: "No error since this process began."}
	last := p.Errors.Last()
	for _, one := range last[:min(len(last), maxErrors)] {
		t.Rows = append(t.Rows, []cell{{Time: one.At, Link: messageLink(one.Job)}, text(one.Text), text(one.Why()), text(one.Incident)})
	}
	return t
}

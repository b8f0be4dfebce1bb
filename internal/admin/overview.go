package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/admin/frame"
	"oneclaw/internal/budget"
	"oneclaw/internal/doctor"
	"oneclaw/internal/wording"
	"oneclaw/storage/replicas"
)

// overviewDays is how many days the plots show.
const overviewDays = 30

// Bot reports the bot's state.
type Bot struct {
	Version string
	// ReceiveErrors returns, per platform, why it receives no updates; nil for one that does.
	ReceiveErrors func() map[string]error
	// QueueStats returns the numbers of open jobs.
	QueueStats func() queue.Stats
	// Replicas returns the replicas that share the store; nil if the store cannot be shared.
	Replicas func(ctx context.Context) ([]replicas.Member, error)
	// Examine runs the checks of doctor; nil if the page does not offer them.
	Examine func(ctx context.Context) ([]doctor.Finding, error)
}

// checkResult is the last result of doctor's checks.
type checkResult struct {
	at       time.Time
	findings []doctor.Finding
}

// day is the activity of a day.
type day struct {
	name  string
	tally receipts.Tally
	usage budget.Day
}

// recentActivity is the activity of the last days, cached for all visitors.
type recentActivity struct {
	days []day
	note string
	due  time.Time
}

func (p *page) overview(ctx context.Context, r frame.Request) (frame.Page, error) {
	last := p.activity.Load()
	if begun := p.Now(); last == nil || !begun.Before(last.due) {
		days, note, err := p.days(ctx, overviewDays)
		if err != nil {
			return frame.Page{}, err
		}
		last = &recentActivity{days: days, note: note, due: frame.NextRefresh(p.Now(), p.Now().Sub(begun))}
		p.activity.Store(last)
	}
	health, err := p.healthSections(ctx)
	if err != nil {
		return frame.Page{}, err
	}
	plot := func(title string, value func(day) float64, say func(float64) string) frame.Section {
		bars := &frame.Bars{Title: title, Format: say}
		for _, d := range last.days {
			bars.Labels, bars.Values = append(bars.Labels, strings.TrimPrefix(d.name, d.name[:5])), append(bars.Values, value(d))
		}
		return frame.Section{Title: title, Bars: bars}
	}
	used := make([]budget.Day, len(last.days))
	for i, d := range last.days {
		used[i] = d.usage
	}
	whole := func(v float64) string { return formatThousands(int64(v)) }
	verdict, err := p.verdictSection(ctx, last.days[len(last.days)-1])
	if err != nil {
		return frame.Page{}, err
	}
	sections := append([]frame.Section{verdict}, health...)
	sections = append(sections,
		plot("Messages by day", func(d day) float64 { return float64(d.tally.Messages) }, whole),
		plot("Median response time by day", func(d day) float64 { return d.tally.Percentile(0.5).Seconds() }, func(v float64) string { return frame.DurationText(time.Duration(v * float64(time.Second))) }),
		costByDay(used),
		plot("Tool tokens saved by day (estimate)", func(d day) float64 { return float64(d.usage.SavedTokens()) }, whole),
		frame.Section{Title: "By day", Text: []string{last.note}, Table: daysTable(last.days)},
	)
	return frame.Page{Sections: sections}, nil
}

// days returns the last days in the page's time zone, the oldest first.
func (p *page) days(ctx context.Context, n int) (loadDays []day, note string, err error) {
	now := p.Now().In(p.Zone())
	used, err := budget.Days(ctx, p.Store, now, n)
	if err != nil {
		return nil, "", err
	}
	loadDays = make([]day, n)
	at := make(map[string]*day, n)
	for i, d := range used {
		loadDays[i] = day{name: d.Day, usage: d}
		at[d.Day] = &loadDays[i]
	}
	hours, until, err := receipts.Tallies(ctx, p.Store, now.AddDate(0, 0, -n))
	if err != nil {
		return nil, "", err
	}
	for hour, t := range hours {
		if d := at[hour.In(p.Zone()).Format(time.DateOnly)]; d != nil {
			d.tally.Merge(t)
		}
	}
	note = "Messages and times are counted until now."
	looked := 0
	for f, err := range receipts.ListEntries(ctx, p.Store, "") {
		if err != nil {
			return nil, "", err
		}
		if !f.At.After(until) {
			break
		}
		if looked++; looked > maxScanned {
			note = fmt.Sprintf("Messages and times are counted until %s, and the last %s since: sums are made each hour.", until.In(p.Zone()).Format(time.DateTime), formatThousands(maxScanned))
			break
		}
		if d := at[f.At.In(p.Zone()).Format(time.DateOnly)]; d != nil {
			d.tally.Add(f)
		}
	}
	return loadDays, note, nil
}

func daysTable(days []day) *frame.Table {
	t := &frame.Table{
		Name: "days", Caption: "The last days, the newest first",
		Columns: frame.Columns("Day", "#Messages", "#Answered", "#Failed", "#Median response", "#95th percentile", "#Model calls", "#Tokens", "#Cost", "#Tool tokens saved (est.)"),
	}
	for _, d := range slices.Backward(days) {

		if d.tally.Messages == 0 && d.usage.Calls == 0 {
			continue
		}
		number := func(n int64) frame.Cell { return frame.Number(formatThousands(n)) }
		failed := number(int64(d.tally.Failed))
		if d.tally.Failed > 0 {
			failed.Mood = frame.Bad
		}
		t.Rows = append(t.Rows, []frame.Cell{
			frame.Text(d.name), number(int64(d.tally.Messages)), number(int64(d.tally.Answered)), failed,
			frame.Number(frame.DurationText(d.tally.Percentile(0.5))), frame.Number(frame.DurationText(d.tally.Percentile(0.95))),
			number(d.usage.Calls), number(d.usage.Tokens()), frame.Number(costText(d.usage.Usage)), number(d.usage.SavedTokens()),
		})
	}
	return t
}

// A problem that needs an administrator is an error younger than recentErrorAge, or a due message
// that has been open for longer than longWait.
const (
	recentErrorAge = time.Hour
	longWait       = 10 * time.Minute
)

// verdictSection reports that the bot is well, or what is wrong and where to look.
func (p *page) verdictSection(ctx context.Context, today day) (frame.Section, error) {
	var facts []frame.Fact
	bad := func(name, what, link string) {
		facts = append(facts, frame.Fact{Name: name, Value: frame.Cell{Text: what, Mood: frame.Bad, Link: link}})
	}
	ready := p.Bot.ReceiveErrors()
	for _, name := range sortedKeys(ready) {
		if err := ready[name]; err != nil {
			bad(name, "receives nothing: "+err.Error(), "")
		}
	}
	if n := today.tally.Failed; n > 0 {
		bad("Today", fmt.Sprintf("%d of %d messages failed: see which", n, today.tally.Messages), frame.ViewURL("messages", "state", "failed"))
	}
	last, found, err := p.Program.Errors.newestSince(ctx, p.Now().Add(-recentErrorAge))
	if err != nil {
		return frame.Section{}, err
	}
	if found {
		bad("Last error", wording.Clip(last.At.In(p.Zone()).Format("15:04")+" "+strings.Trim(last.Text+": "+last.Why(), ": "), maxErrorText), frame.ViewURL(errorsView))
	}
	if oldest := p.Bot.QueueStats().OldestDue; !oldest.IsZero() && p.Now().Sub(oldest) > longWait {
		bad("Waiting", "a message has been open since "+oldest.In(p.Zone()).Format("2 January 15:04"), frame.ViewURL("messages"))
	}
	if last := p.lastCheck.Load(); last != nil {
		for _, f := range last.findings {
			if f.Status == doctor.VerdictFail {
				bad(f.Check, f.Text, "")
			}
		}
	}
	if len(facts) == 0 {
		return frame.Section{Title: "All is well", Text: []string{"Every platform receives, nothing failed today, and there was no error in the last hour."}}, nil
	}
	return frame.Section{Title: "Something needs you", Facts: facts}, nil
}

// maxErrorText bounds the quoted text of an error, in characters.
const maxErrorText = 200

// healthSections describes the bot's state, with reasons.
func (p *page) healthSections(ctx context.Context) ([]frame.Section, error) {
	load := p.Bot.QueueStats()
	facts := []frame.Fact{
		{Name: "Version", Value: frame.Text(p.Bot.Version)}, {Name: "Open", Value: frame.Text(formatThousands(int64(load.Open)))}, {Name: "Waiting for approval", Value: frame.Text(formatThousands(int64(load.Undecided)))},
	}
	if !load.Oldest.IsZero() {
		facts = append(facts, frame.Fact{Name: "Oldest since", Value: frame.Time(load.Oldest)})
	}
	t := &frame.Table{Name: "health", Caption: "Platforms and checks", Columns: frame.Columns("What", "State", "Why")}
	ready := p.Bot.ReceiveErrors()
	for _, name := range sortedKeys(ready) {
		row := []frame.Cell{frame.Text(name), {Text: "receives", Mood: frame.Good}, frame.Text("")}
		if err := ready[name]; err != nil {
			row = []frame.Cell{frame.Text(name), {Text: "does not receive", Mood: frame.Bad}, frame.Text(err.Error())}
		}
		t.Rows = append(t.Rows, row)
	}
	health := frame.Section{Title: "Health", Facts: facts, Table: t}
	if p.Bot.Examine != nil {
		health.Forms = []frame.Form{{View: "", Submit: "Check everything now"}}
		if last := p.lastCheck.Load(); last != nil {
			health.Facts = append(health.Facts, frame.Fact{Name: "Checked", Value: frame.Time(last.at)})
			for _, f := range last.findings {
				mood := map[doctor.Verdict]frame.Mood{doctor.VerdictOK: frame.Good, doctor.VerdictFail: frame.Bad}[f.Status]
				t.Rows = append(t.Rows, []frame.Cell{frame.Text(f.Check), {Text: string(f.Status), Mood: mood}, frame.Text(f.Text)})
			}
		}
	}
	sections := []frame.Section{health}
	if p.Bot.Replicas == nil {
		return sections, nil
	}
	members, err := p.Bot.Replicas(ctx)
	if err != nil {
		return nil, err
	}
	shared := &frame.Table{Name: "replicas", Caption: "Replicas that share the database", Columns: frame.Columns("Host", "Id", "Version", "Since", "#Holds", "State"), Empty: "Nobody."}
	for _, m := range members {
		state := "works"
		if m.Retiring {
			state = "gives away what it holds"
		}
		shared.Rows = append(shared.Rows, []frame.Cell{
			frame.Text(m.Host), frame.Text(m.ID[:min(8, len(m.ID))]), frame.Text(m.Version), frame.Time(m.Since), frame.Number(formatThousands(int64(len(m.Leases)))), frame.Text(state),
		})
	}
	return append(sections, frame.Section{Title: "Replicas", Table: shared}), nil
}

// runChecks runs the checks of doctor. The findings are shown until the next run.
func (p *page) runChecks(ctx context.Context, _ frame.Request) (string, error) {
	if p.Bot.Examine == nil {
		return "", frame.ErrNotFound
	}
	findings, err := p.Bot.Examine(ctx)
	if err != nil {
		return "", fmt.Errorf("check everything: %w", err)
	}
	p.lastCheck.Store(&checkResult{at: p.Now(), findings: findings})
	return frame.Root, nil
}

package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"oneclaw/internal/admin/frame"
	"oneclaw/internal/bill"
	"oneclaw/internal/budget"
	"oneclaw/internal/learning"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups/search"
)

// Costs estimates what conversations would have cost: [learning.Costs].
type Costs interface {
	// Compare compares models for the conversation of a log.
	Compare(ctx context.Context, log string, with learning.Selection) (learning.Comparison, error)
	// Providers returns the models that can be compared.
	Providers() []bill.Provider
}

const (
	// simulationTimeout bounds the simulation of a conversation:
	// it must end within the frame's time for a page.
	simulationTimeout = 8 * time.Second
	// costResultAge and maxCostResults bound the cached results,
	// so that a page that reloads itself repeats no simulation.
	costResultAge, maxCostResults = 30 * time.Minute, 50
	// maxProblem bounds the description of a request that cannot be met, in characters.
	maxProblem = 200
)

// The fields of the form. costsField is set if the administrator asks for the figures. Its value is
// the time of the figures that the page already shows, in Unix milliseconds; 0 for none.
const (
	costsField, modelsField, routingsField = "costs", "models", "routings"
)

var errSimulationTimeout = errors.New("admin: the simulation of a conversation took too long")

// costResult is the result of simulating a conversation.
type costResult struct {
	at time.Time
	learning.Comparison
	// problem says why there is nothing to compare; empty if there is.
	problem string
}

// costs returns the sections about what a conversation would have cost: the form and, if the
// administrator asked for it, the result.
func (p *page) costs(ctx context.Context, r frame.Request, log string) ([]frame.Section, error) {
	ask := frame.Section{Title: "What would it have cost with …", Text: []string{
		"The conversation is replayed against a scripted model, with the tools that the bot has now. Nothing is sent anywhere, no tool runs, and no text is shown.",
	}}
	if r.Query.Get(costsField) == "" {
		ask.Forms = []frame.Form{p.costsForm(r.Query, log, 0)}
		return []frame.Section{ask}, nil
	}
	one, err := p.simulate(ctx, r.Query, log)
	if err != nil {
		return nil, err
	}
	ask.Forms = []frame.Form{p.costsForm(r.Query, log, max(one.at.UnixMilli(), 0))}
	sections := []frame.Section{ask, one.section()}
	if len(one.Models) > 0 {
		sections = append(sections, modelsSection(one.Models))
	}
	return sections, nil
}

// asksForCosts reports whether a page needs a simulation. Other pages do not wait for such a page;
// Costs itself runs one simulation at a time.
func asksForCosts(r frame.Request) bool { return r.Query.Has(costsField) }

// costsForm returns the form for an administrator who has seen the figures of the given time, in Unix
// milliseconds.
func (p *page) costsForm(query url.Values, log string, seen int64) frame.Form {
	models := frame.Field{Name: modelsField, Label: "Models; all of them if you choose none", Multiple: true, Values: query[modelsField]}
	for _, t := range p.Costs.Providers() {
		models.Options = append(models.Options, frame.Option{Value: t.Name, Label: modelLabel(t.Name, t.Model)})
	}
	routings := frame.Field{Name: routingsField, Label: "Ways of routing tools; all of them if you choose none", Multiple: true, Values: query[routingsField]}
	for _, one := range search.Routings() {
		routings.Options = append(routings.Options, frame.Option{Value: string(one), Label: string(one)})
	}
	fields := []frame.Field{{Name: "log", Value: log}, {Name: costsField, Value: strconv.FormatInt(seen, 10)}}
	if owner := query.Get("owner"); owner != "" {
		fields = append(fields, frame.Field{Name: "owner", Value: owner})
	}
	return frame.Form{View: conversationView, IsSearch: true, Submit: "Work it out", Fields: append(fields, models, routings)}
}

// simulate returns what a conversation would have cost: the cached
// result, unless the administrator has seen it and asks again.
func (p *page) simulate(ctx context.Context, query url.Values, log string) (costResult, error) {
	with := learning.Selection{Models: query[modelsField]}
	for _, one := range query[routingsField] {
		with.Routings = append(with.Routings, search.Routing(one))
	}
	key := url.Values{"log": {log}, modelsField: query[modelsField], routingsField: query[routingsField]}.Encode()
	seen, _ := strconv.ParseInt(query.Get(costsField), 10, 64)
	if known, ok := p.costResults.Get(key); ok && known.at.UnixMilli() > seen {
		return known, nil
	}
	soon, cancel := context.WithTimeoutCause(ctx, simulationTimeout, errSimulationTimeout)
	defer cancel()
	one := costResult{}
	var err error
	one.Comparison, err = p.Costs.Compare(soon, log, with)
	one.at = p.Now()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return one, err // the request has ended
	case errors.Is(err, learning.ErrBusy):
		one.at, one.problem = time.Time{}, "Another conversation is being played, and only one is at a time. This page asks again by itself, or reload it."
		return one, nil
	case errors.Is(err, learning.ErrUnknown):
		one.problem = "Nothing was played: " + wording.Clip(err.Error(), maxProblem) + "."
	case errors.Is(err, learning.ErrTooLong):
		one.problem = "That cannot be said: " + learning.ErrTooLong.Error() + "."
	case errors.Is(err, bill.ErrEmpty):
		one.problem = "That cannot be said: the conversation has no answered message."
	case errors.Is(context.Cause(soon), errSimulationTimeout):
		one.problem = fmt.Sprintf("It ran for %s, and then it was stopped. Choose fewer models and ways of routing.", simulationTimeout)
	default:
		p.Log.Warn("the costs of a conversation cannot be simulated", "log", log, "err", err)
		one.problem = "That cannot be said: the conversation cannot be played with the tools of now. The log says why."
	}
	p.costResults.Put(key, one, costResultAge)
	return one, nil
}

// section shows the result.
func (one costResult) section() frame.Section {
	if one.problem != "" {
		return frame.Section{Text: []string{one.problem}}
	}
	s := frame.Section{Facts: []frame.Fact{{Name: "Worked out", Value: frame.Time(one.at)}}, Text: []string{
		"Compare these lines with each other: one tokenizer counts the tokens of all, their caches are simulated by what the providers document, and their prices are those that the bot knows. " +
			"The first line is what the replies have really used, with pictures, reasoning, and the tools and the routing of that time. Calls that sum a conversation up are in none.",
	}, Table: costsTable(one.Comparison)}
	if one.Omitted > 0 {
		s.Text = append(s.Text, formatCount(one.Omitted, "call is", "calls are")+" left out: the tools are not there any more, or switched off.")
	}
	return s
}

// modelsSection shows what a conversation costs by the models that answer it.
func modelsSection(costs []bill.ModelCost) frame.Section {
	t := &frame.Table{
		Name: "models", Caption: "With the models that answered, and with each of them alone",
		Columns: frame.Columns("Models", "#Cost", "#Difference", "#Requests", "#Tokens in", "#Cached", "#Read anew", "#Tokens out"),
	}
	for _, c := range costs {
		difference := ""
		if was := costs[0].USD; c.Name != bill.AsItWas && was > 0 {
			difference = differenceText(c.USD, was)
		}
		cells := []frame.Cell{frame.Text(c.Name), frame.Number(formatDollars(c.USD)), frame.Number(difference)}
		for _, n := range []int{c.Requests, c.Input, c.Read, c.Reread, c.Output} {
			cells = append(cells, frame.Number(formatThousands(int64(n))))
		}
		t.Rows = append(t.Rows, cells)
	}
	return frame.Section{Title: "What other models save or cost", Text: []string{
		"/deep and models.by_kind let several models answer. They share no cache, so each reads the conversation anew; Read anew counts what one model would have had in its cache. Summaries are included.",
	}, Table: t}
}

func costsTable(c learning.Comparison) *frame.Table {
	was := c.Actual
	known := was.Unpriced == 0 && was.USD > 0
	t := &frame.Table{Name: "costs", Caption: "What it has cost, and would have cost", Columns: frame.Columns("Model", "Routing", "#Cost")}
	if known {
		t.Columns = append(t.Columns, frame.Columns("#Difference")...)
	}
	t.Columns = append(t.Columns, frame.Columns("#Requests", "#Tokens in", "#Cached", "#Written", "#Tokens out")...)
	row := func(model, routing string, cost frame.Cell, usd float64, counts ...int) {
		cells := []frame.Cell{frame.Text(model), frame.Text(routing), cost}
		if known {
			cells = append(cells, frame.Number(differenceText(usd, was.USD)))
		}
		for _, n := range counts {
			cells = append(cells, frame.Number(formatThousands(int64(n))))
		}
		t.Rows = append(t.Rows, cells)
	}
	row("As it was", "", frame.Number(actualCostText(was)), 0, was.Rounds, was.Input, was.Cached, was.Written, was.Output)
	least := math.Inf(1)
	for _, l := range c.Lines {
		if l.USD > 0 {
			least = min(least, l.USD)
		}
	}
	for _, l := range c.Lines {
		routing := string(l.Routing)
		if l.UsedRouting != l.Routing {
			routing += ": " + string(l.UsedRouting)
		}
		cost := frame.Number(formatDollars(l.USD))
		if l.USD == least {
			cost.Text, cost.Mood = cost.Text+", the least", frame.Good
		}
		row(modelLabel(l.Provider, l.Model), routing, cost, l.USD, l.Requests, l.Input, l.Read, l.Written, l.Output)
	}
	return t
}

// modelLabel returns the name of a price table, with its model if that has another name.
func modelLabel(table, model string) string {
	if table == model {
		return table
	}
	return table + " (" + model + ")"
}

// formatDollars formats an amount with more digits than elsewhere: amounts to compare may differ only
// below a cent. 0 means that the amount is not known.
func formatDollars(usd float64) string {
	switch amount := budget.Dollars(usd); {
	case amount == 0:
		return "not known"
	case amount >= budget.Dollar/100 && amount < 10*budget.Dollar:
		return fmt.Sprintf("$%.4f", usd)
	default:
		return amount.String()
	}
}

func actualCostText(was learning.Usage) string {
	if was.Unpriced > 0 && was.Unpriced < was.Rounds {
		return formatDollars(was.USD) + ", without " + formatCount(was.Unpriced, "reply", "replies") + " of no known price"
	}
	return formatDollars(was.USD)
}

// differenceText describes how much more or less an amount is, without a sign, which a spreadsheet
// would take for a formula. It returns "" for 0, an amount that is not known.
func differenceText(usd, was float64) string {
	if usd == 0 {
		return ""
	}
	switch percent := int64(math.Round((usd/was - 1) * 100)); {
	case percent > 0:
		return formatThousands(percent) + " % more"
	case percent < 0:
		return formatThousands(-percent) + " % less"
	}
	return "the same"
}

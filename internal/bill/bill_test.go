package bill_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oneclaw/agent"
	"oneclaw/internal/bill"
	"oneclaw/internal/budget"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// town has a core tool and two groups.
func town(t testing.TB) *toolgroups.Registry {
	t.Helper()
	tool := func(name, about string) toolgroups.Tool {
		return toolgroups.Tool{
			Name: name, Description: about, Effect: toolgroups.ReadOnly,
			Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
			Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
				t.Error("a tool of the program was run")
				return toolgroups.Result{}, nil
			},
		}
	}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{
		Core: []toolgroups.Tool{tool("get_current_time", "Tell the time in a city.")},
		Groups: []toolgroups.Group{
			{Name: "weather", Tools: []toolgroups.Tool{tool("weather_today", "The weather of today."), tool("weather_week", "The weather of the week.")}},
			{Name: "trains", Tools: []toolgroups.Tool{tool("trains_next", "The next trains from a city.")}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

const short = `
name: trip
title: a trip
turns:
  - user: What time is it in Oslo, and how is the weather?
    steps:
      - say: One moment.
        calls:
          - tool: get_current_time
            with: {city: Oslo}
            result: "12:00"
          - tool: weather_today
            find: weather today
            with: {city: Oslo}
            result: '[{{rows}}]'
            row: '{"hour":$1,"sky":"$2"}'
            rows: [["12", "sun"], ["13", "rain"]]
    answer: Noon, and rain from one.
  - user: And the next train?
    steps:
      - calls:
          - {tool: trains_next, find: next trains, with: {city: Oslo}, code: execution_error, result: No timetable.}
      - calls:
          - {tool: weather_today, with: {city: Bergen}, result: fog}
    answer: I can not see the timetable. Bergen has fog.
`

func trip(t testing.TB) bill.Conversation {
	t.Helper()
	c, err := bill.Read(strings.NewReader(short))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// cached is what the caches of models cost.
func cached(model string) search.Prices {
	p, ok := budget.KnownPrices().Lookup("", model)
	if !ok {
		return search.Prices{Write: 1, Read: 1}
	}
	return search.Prices{Write: max(p.CacheWrite, p.Input) / p.Input, Read: p.CachedInput / p.Input}
}

func calculator(t testing.TB, reg *toolgroups.Registry) *bill.Bill {
	t.Helper()
	b, err := bill.New(bill.Config{
		Registry: reg, Prompt: "You help.", Prices: cached, Providers: bill.Providers(cached, noContext),
		DollarPrice: func(model string) (budget.Price, bool) {
			return budget.Price{Input: 10, CachedInput: 1, Output: 50}, model == "gpt-5-mini"
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What each routing has the model do: load, search, or call at once.
func TestConversationUnderEachRouting(t *testing.T) {
	want := map[search.Routing][]string{
		search.RoutingGroups: {"load_tool_group weather", "get_current_time+weather_today", "", "load_tool_group trains", "trains_next", "weather_today", ""},
		search.RoutingBridge: {"load_tool_group weather", "get_current_time+tool_call", "", "load_tool_group trains", "tool_call", "tool_call", ""},
		search.RoutingSearch: {"tool_search", "get_current_time+tool_call", "", "tool_search", "tool_call", "tool_call", ""},
		search.RoutingAll:    {"get_current_time+weather_today", "", "trains_next", "weather_today", ""},
	}
	for routing, want := range want {
		log, err := calculator(t, town(t)).Log(t.Context(), trip(t), routing)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range log {
			if m.Role != agent.RoleAssistant {
				continue
			}
			var names []string
			for _, c := range m.Calls {
				name := c.Name
				if group, ok := toolgroups.ParseLoadArgument(json.RawMessage(c.Arguments)); ok {
					name += " " + group
				}
				names = append(names, name)
			}
			got = append(got, strings.Join(names, "+"))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", routing, diff)
		}
	}
}

// A log gives back the conversation that it is of, by whatever routing it was made.
func TestRecordedIsWhatWasPlayed(t *testing.T) {
	t.Parallel()
	c := trip(t)
	for _, routing := range search.Routings() {
		log, err := calculator(t, town(t)).Log(t.Context(), c, routing)
		if err != nil {
			t.Fatal(err)
		}
		got, err := bill.FromLog("trip", func(yield func(agent.Message, error) bool) {
			for _, m := range log {
				if !yield(m, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.Turns, got.Turns, cmpopts.IgnoreFields(bill.Call{}, "Query")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", routing, diff)
		}
		b := calculator(t, town(t))
		lines, err := b.Compare(t.Context(), got)
		if err != nil || len(lines) == 0 {
			t.Errorf("%s: what was recorded can not be played: %v", routing, err)
		}
	}
}

// Chats as they really are: files, senders, stopped turns, tools that are gone.
func TestRecordedTakesWhatFits(t *testing.T) {
	log := []agent.Message{
		{Role: agent.RoleTool, CallID: "x", Text: "of a turn before"},
		{Role: agent.RoleUser, Text: "first"},
		{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "1", Name: "gone", Arguments: `{}`}, {ID: "2", Name: "weather_today", Arguments: `not json`}, {ID: "3", Name: "trains_next", Arguments: `{"city":"Rome"}`}}},
		{Role: agent.RoleStarted, CallID: "1"},
		{Role: agent.RoleTool, CallID: "2", Tool: "weather_today", Text: "what?", Status: agent.StatusError, Code: "invalid_arguments"},
		{Role: agent.RoleTool, CallID: "1", Tool: "gone", Text: "done"},
		{Role: agent.RoleUser, Text: "second", Sender: "Ann", Files: []toolgroups.File{{Path: "a.txt"}}, Recalled: "She likes trains."},
		{Role: agent.RoleSummary, Text: "we talked"},
		{Role: agent.RoleAssistant, Text: "ok", Final: true},
		{Role: agent.RoleUser, Text: "never answered"},
	}
	c, err := bill.FromLog("telegram:1", func(yield func(agent.Message, error) bool) {
		for _, m := range log {
			if !yield(m, nil) {
				return
			}
		}
	})
	if err != nil || len(c.Turns) != 2 || c.Turns[0].User != "first" || c.Turns[0].Answer != "" || c.Turns[1].User != "[Ann] second\n[file: a.txt]\n[From memory]\nShe likes trains." {
		t.Fatalf("%+v, %v", c, err)
	}
	left := 0
	b, err := bill.New(bill.Config{Registry: town(t), Providers: bill.Providers(cached, noContext)[:1], DollarPrice: noPrice, OnOmitted: func(n int) { left = n }})
	if err != nil {
		t.Fatal(err)
	}
	if lines, err := b.Compare(t.Context(), c); err != nil || len(lines) != 6 || left != 1 {
		t.Errorf("%d lines, %d calls left out, %v", len(lines), left, err)
	}
	if _, err := bill.FromLog("telegram:2", func(func(agent.Message, error) bool) {}); err == nil {
		t.Error("an empty chat is played")
	}
}

// Turns that ended at a bound of the agent, or had more rounds than a turn usually may have, are played.
func TestTurnsThatFailedArePlayed(t *testing.T) {
	n := 0
	calls := func(result agent.Message) []agent.Message {
		n++
		result.Role, result.CallID, result.Tool = agent.RoleTool, "1", "weather_today"
		call := agent.Call{ID: "1", Name: "weather_today", Arguments: fmt.Sprintf(`{"city":"%d"}`, n)}
		return []agent.Message{{Role: agent.RoleAssistant, Model: "gpt-5-mini", Calls: []agent.Call{call}}, result}
	}
	loops := []agent.Message{{Role: agent.RoleUser, Text: "the weather?"}}
	for range 8 {
		loops = append(loops, calls(agent.Message{Text: "no weather", Status: agent.StatusError, Code: "execution_error"})...)
	}
	for range 3 {
		loops = append(loops, calls(agent.Message{Text: "stopped", Status: agent.StatusError, Code: agent.CodeLoop})...)
	}
	long := []agent.Message{{Role: agent.RoleUser, Text: "the weather everywhere?"}}
	for range 60 {
		long = append(long, calls(agent.Message{Text: "sun", Status: agent.StatusOK})...)
	}
	answered := []agent.Message{{Role: agent.RoleUser, Text: "well?"}, {Role: agent.RoleAssistant, Text: "Sun.", Model: "gpt-5-mini", Final: true}}
	for name, c := range map[string]struct {
		log      []agent.Message
		requests int
	}{
		"a loop, twice":          {slices.Concat(loops, loops, answered), 2*11 + 1},
		"a long turn, no answer": {slices.Concat(long, answered), 60 + 1},
		"a long turn":            {slices.Concat(long, answered[1:]), 60 + 1},
	} {
		played, err := bill.FromLog("telegram:1", func(yield func(agent.Message, error) bool) {
			for _, m := range c.log {
				if !yield(m, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		lines, err := calculator(t, town(t)).Compare(t.Context(), played)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, l := range lines {
			if l.Routing == search.RoutingAll && l.Requests != c.requests {
				t.Errorf("%s at %s: %d requests, want %d", name, l.Provider, l.Requests, c.requests)
			}
		}
	}
}

// Only what the recording explains ends a turn without an answer.
func TestTurnsThatFailedHideNoError(t *testing.T) {
	failed := bill.Conversation{Name: "telegram:1", Recorded: true, Turns: []bill.Turn{{User: "the tides?", Steps: []bill.Step{{Calls: []bill.Call{{Tool: "tides"}}}}}}}
	if _, err := calculator(t, town(t)).Log(t.Context(), failed, search.RoutingGroups); err == nil || !strings.Contains(err.Error(), "cannot reach tides") {
		t.Errorf("a tool that cannot be reached: %v", err)
	}
	failed.Turns[0].Steps[0].Calls[0].Tool = "weather_today"
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := calculator(t, town(t)).Log(ended, failed, search.RoutingGroups); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := calculator(t, town(t)).Log(t.Context(), failed, search.RoutingGroups); err != nil {
		t.Errorf("as recorded: %v", err)
	}
}

// words are so many tokens.
func words(n int) string { return strings.Repeat(" word", n) }

func TestCaches(t *testing.T) {
	half := search.Prices{Write: 1.25, Read: 0.5}
	long := search.Prices{Write: 1.25, Read: 0.5, MinTokens: 1024}
	a, b, c := words(600), words(600)+"!", words(100)
	for name, tc := range map[string]struct {
		cache    bill.Cache
		requests [][]string
		read     int
		written  int
	}{
		"none":                      {cache: bill.Cache{Prices: search.Prices{Write: 1, Read: 1}}, requests: [][]string{{a, b}, {a, b}}},
		"too short":                 {cache: bill.Cache{Prices: long}, requests: [][]string{{a}, {a, c}}},
		"a common beginning":        {cache: bill.Cache{Prices: half}, requests: [][]string{{a, c}, {a, a}}, read: 700, written: 1200 - 700 + 700},
		"in steps":                  {cache: bill.Cache{Prices: long, Step: 128}, requests: [][]string{{a, a}, {a, a, c}}, read: 1152, written: 1200 + 148},
		"shorter than the minimum":  {cache: bill.Cache{Prices: long}, requests: [][]string{{a, b}, {a, c, c, c, c, c}}, written: 1201 + 1100},
		"whole, and it is":          {cache: bill.Cache{Prices: half, WholeRequests: true}, requests: [][]string{{a, c}, {a, c, c}}, read: 700, written: 700 + 100},
		"whole, and it is not":      {cache: bill.Cache{Prices: half, WholeRequests: true}, requests: [][]string{{a, c}, {a, b, c}}, written: 700 + 1301},
		"whole, but too far behind": {cache: bill.Cache{Prices: half, WholeRequests: true, Lookback: 2}, requests: [][]string{{a}, {a, c, c, c}}, written: 600 + 900},
		"the best of several":       {cache: bill.Cache{Prices: half, WholeRequests: true}, requests: [][]string{{a}, {a, c}, {a, c, c}}, read: 600 + 700, written: 600 + 100 + 100},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := bill.Simulate(tc.cache, tc.requests...)
			if err != nil {
				t.Fatal(err)
			}
			if got.Read != tc.read || got.Written != tc.written {
				t.Errorf("read %d, written %d of %d; want %d, %d", got.Read, got.Written, got.Input, tc.read, tc.written)
			}
			billed := float64(got.Read)*tc.cache.Read + float64(got.Written)*tc.cache.Write + float64(got.Input-got.Read-got.Written)
			if got.Billed != billed || got.Requests != len(tc.requests) {
				t.Errorf("billed %v, want %v", got.Billed, billed)
			}
		})
	}
}

func TestWhatIsPrinted(t *testing.T) {
	c := trip(t)
	lines, err := calculator(t, town(t)).Compare(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var text, markdown, rows bytes.Buffer
	for w, write := range map[*bytes.Buffer]func() error{
		&text:     func() error { return bill.WriteTables(&text, []bill.Conversation{c}, lines, false) },
		&markdown: func() error { return bill.WriteTables(&markdown, []bill.Conversation{c}, lines, true) },
		&rows:     func() error { return search.WriteJSON(&rows, lines) },
	} {
		if err := write(); err != nil || w.Len() == 0 {
			t.Fatalf("%d bytes, %v", w.Len(), err)
		}
	}
	if n := strings.Count(rows.String(), "\n"); n != len(lines) || n != len(bill.Providers(cached, noContext))*(len(search.Routings())-1) { // all but threshold
		t.Errorf("%d rows of %d", n, len(lines))
	}
	for _, want := range []string{"**trip**: a trip\n", "| cache | groups | bridge | search | all | native | auto | auto, all in money |\n", "|---|"} {
		if !strings.Contains(markdown.String(), want) {
			t.Errorf("%q is not in\n%s", want, markdown.String())
		}
	}
	i := slices.IndexFunc(lines, func(l bill.Line) bool { return l.Provider == "gpt-5" && l.Routing == search.RoutingAll })
	l := lines[i]
	want := (float64(l.Input-l.Read)*10 + float64(l.Read) + float64(l.Output)*50) / 1e6
	if diff := l.USD - want; diff > 1e-8 || diff < -1e-8 {
		t.Errorf("%v dollars for %+v, want %v", l.USD, l.Cost, want)
	}
	if !strings.Contains(text.String(), fmt.Sprintf("$%.4f", l.USD)) {
		t.Errorf("no money in\n%s", text.String())
	}
}

// What goes over the wire: each tools array begins with the one before, and those of
// bridge and all never change.
func TestArraysOnTheWireOnlyGrow(t *testing.T) {
	t.Parallel()
	c := trip(t)
	c.WithServers = true
	c.Turns = append(c.Turns, bill.Turn{User: "Open issues?", Answer: "None.", Steps: []bill.Step{{Calls: []bill.Call{
		{Tool: "tracker_list_issues", Result: "[]"}, {Tool: "wiki_list_pages", Result: "[]"},
	}}}})
	for _, routing := range search.Routings() {
		arrays, err := calculator(t, town(t)).Arrays(t.Context(), c, routing)
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(arrays); i++ {
			if !strings.HasPrefix(arrays[i], arrays[i-1]) {
				t.Errorf("%s: request %d does not begin with the tools of the one before", routing, i)
			}
			fixed := routing == search.RoutingBridge || routing == search.RoutingAll || routing == search.RoutingSearch
			if fixed && arrays[i] != arrays[i-1] {
				t.Errorf("%s: request %d has other tools than the one before", routing, i)
			}
		}
		if routing == search.RoutingGroups && arrays[0] == arrays[len(arrays)-1] {
			t.Errorf("%s: nothing was loaded", routing)
		}
	}
}

func TestServersAreTenWithFiftyTools(t *testing.T) {
	groups, err := bill.ServerGroups()
	if err != nil || len(groups) != 10 {
		t.Fatalf("%d servers, %v", len(groups), err)
	}
	for _, g := range groups {
		if len(g.Tools) != 50 {
			t.Errorf("%s has %d tools", g.Name, len(g.Tools))
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"unknown key": "name: x\nturn: []\n", "no turns": "name: x\n", "no name": "turns: [{user: a, answer: b}]\n", "no YAML": "\t",
	} {
		if _, err := bill.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := bill.New(bill.Config{}); err == nil {
		t.Error("a bill without tools is made")
	}
	// A script that does not fit to the tools is noticed.
	for _, bad := range []string{"with: {town: Oslo}", "with: {}"} {
		c, err := bill.Read(strings.NewReader(strings.Replace(short, "with: {city: Oslo}\n            result: \"12:00\"", bad+"\n            result: \"12:00\"", 1)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := calculator(t, town(t)).Compare(t.Context(), c); err == nil {
			t.Errorf("%s: a call that fails is taken for one that works", bad)
		}
	}
}

func noContext(string) int { return 0 }

func noPrice(string) (budget.Price, bool) { return budget.Price{}, false }

// A question to another model in between reads the conversation anew, and costs more than the usual model
// and less than the other one for all.
func TestModelsOfARecordedConversation(t *testing.T) {
	talk := func(strong ...int) bill.Conversation {
		c, err := bill.FromLog("telegram:1", func(yield func(agent.Message, error) bool) {
			at := time.Unix(1000, 0)
			for n := range 12 {
				model := "gpt-5-mini"
				if slices.Contains(strong, n) {
					model = "gpt-5"
				}
				at = at.Add(time.Minute)
				_ = yield(agent.Message{Role: agent.RoleUser, Text: strings.Repeat("question ", 300), Time: at}, nil) &&
					yield(agent.Message{Role: agent.RoleAssistant, Text: strings.Repeat("answer ", 300), Final: true, Model: model, Time: at}, nil) &&
					(n != 6 || yield(agent.Message{Role: agent.RoleSummary, Text: "sum", Model: "gpt-5-nano", Usage: &agent.Usage{Input: 1_000_000}}, nil))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	cfg := bill.Config{Registry: town(t), Prices: cached, Providers: bill.Providers(cached, noContext)[:1], Model: "gpt-5-mini", OnOmitted: func(int) {}}
	cfg.DollarPrice = func(model string) (budget.Price, bool) {
		in := map[string]float64{"gpt-5-mini": .25, "gpt-5": 1.25, "gpt-5-nano": .05}[model]
		return budget.Price{Input: in, CachedInput: in / 10, Output: 8 * in}, in > 0
	}
	b, err := bill.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.CompareModels(t.Context(), talk(5, 9))
	if err != nil || len(got) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	was, mini, strong, nano := got[0], got[1], got[2], got[3]
	if was.Name != bill.AsItWas || mini.Name != "gpt-5-mini" || strong.Name != "gpt-5" || nano.Name != "gpt-5-nano" {
		t.Errorf("compared are %+v", got)
	}
	if was.Requests != 12 || mini.Requests != 12 || was.Reread == 0 || mini.Reread != 0 || was.Read+was.Reread != mini.Read {
		t.Errorf("of %d tokens %d are cached and %d are read anew; with one model %d are cached", was.Input, was.Read, was.Reread, mini.Read)
	}
	if !(nano.USD < was.USD && was.USD < strong.USD) || mini.USD-was.USD > .2 {
		t.Errorf("costs %v, with one model %v, %v, %v", was.USD, mini.USD, strong.USD, nano.USD)
	}
	var text strings.Builder
	if err := bill.WriteModels(&text, got, false); err != nil || !strings.Contains(text.String(), "as it was") || !strings.Contains(text.String(), "read anew") {
		t.Errorf("%v: %s", err, text.String())
	}
	usual := talk()
	usual.Summaries = nil
	if alone, err := b.CompareModels(t.Context(), usual); err != nil || alone != nil {
		t.Errorf("with one model: %+v, %v", alone, err)
	}
}

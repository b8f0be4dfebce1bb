package lab

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/bill"
	"oneclaw/toolgroups"
)

// generate makes conversations of all kinds from a seed: one to thirty turns, with none to
// four groups of tools, those of servers among them, results short and long, and pauses of
// seconds to hours.
func generate(reg *toolgroups.Registry, n int, seed uint64) ([]bill.Conversation, error) {
	servers, err := bill.ServerGroups()
	if err != nil {
		return nil, err
	}
	g := generator{chances: rand.New(rand.NewPCG(seed, seed)), vocabulary: strings.Fields(vocabulary)}
	var all []bill.Conversation
	for i := range n {
		c := bill.Conversation{Name: fmt.Sprintf("generated %d", i+1), Title: "generated", Recorded: true}
		groups := reg.Groups()
		if c.WithServers = g.one(4); c.WithServers {
			groups = append(groups, servers...)
		}
		groups = slices.DeleteFunc(groups, func(g toolgroups.Group) bool { return len(g.Tools) == 0 || g.Role > toolgroups.RoleUser })
		g.chances.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
		g.groups = groups[:min(len(groups), []int{0, 0, 1, 1, 2, 3, 4}[g.chances.IntN(7)])]
		for range 1 + min(g.chances.IntN(30), g.chances.IntN(30)) {
			c.Turns = append(c.Turns, g.turn())
		}
		c.Turns[0].After = 0
		all = append(all, c)
	}
	return all, nil
}

type generator struct {
	chances *rand.Rand
	groups  []toolgroups.Group // that the conversation needs
	calls   int
	// vocabulary is what words are taken from.
	vocabulary []string
}

// one is true once in so many times.
func (g *generator) one(in int) bool { return g.chances.IntN(in) == 0 }

// words are some, up to so many.
func (g *generator) words(most int) string {
	var b strings.Builder
	for i := range 1 + g.chances.IntN(most) {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(g.vocabulary[g.chances.IntN(len(g.vocabulary))])
	}
	return b.String()
}

const vocabulary = `the of a to in report meeting tomorrow budget please Anna customer 2026 invoice open
draft notes before after Friday price team project change question number list page first second next good short
letter contract office week plan answer new old reason file table travel hotel train ticket city morning evening`

func (g *generator) turn() bill.Turn {
	t := bill.Turn{User: g.words(40), Answer: g.words(120), After: time.Duration(5+g.chances.IntN(120)) * time.Second}
	if g.one(4) {
		t.After = time.Duration(6+g.chances.IntN(180)) * time.Minute
	}
	if len(g.groups) == 0 || g.one(3) {
		return t
	}
	for range 1 + g.chances.IntN(3) {
		var s bill.Step
		for range 1 + g.chances.IntN(2) {
			group := g.groups[g.chances.IntN(len(g.groups))]
			tool := group.Tools[g.chances.IntN(min(len(group.Tools), 8))]
			g.calls++
			s.Calls = append(s.Calls, bill.Call{Tool: tool.Name, Arguments: g.arguments(tool.Schema()), Result: fmt.Sprint(g.calls, " ", g.words(400))})
		}
		t.Steps = append(t.Steps, s)
	}
	return t
}

// schema is what of a schema a call has to fit to.
type schema struct {
	Type       any                `json:"type"`
	Enum       []any              `json:"enum"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Items      *schema            `json:"items"`
	Minimum    float64            `json:"minimum"`
}

func (g *generator) arguments(raw json.RawMessage) map[string]any {
	var s schema
	_ = json.Unmarshal(raw, &s) // a registry's are schemas
	args, _ := g.value(&s).(map[string]any)
	return args
}

func (g *generator) value(s *schema) any {
	switch {
	case s == nil:
		return g.words(3)
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type == "object":
		object := map[string]any{}
		for _, name := range s.Required {
			object[name] = g.value(s.Properties[name])
		}
		return object
	case s.Type == "array":
		return []any{g.value(s.Items)}
	case s.Type == "integer", s.Type == "number":
		return max(1, s.Minimum)
	case s.Type == "boolean":
		return true
	}
	return g.words(6)
}

// cheapestOfEach returns for each conversation the cheapest line of a table.
func cheapestOfEach(lines []bill.Line, table string) []bill.Line {
	var best []bill.Line
	for _, l := range lines {
		if l.Provider != table {
			continue
		}
		i := slices.IndexFunc(best, func(b bill.Line) bool { return b.Conversation == l.Conversation })
		switch {
		case i < 0:
			best = append(best, l)
		case l.Billed < best[i].Billed:
			best[i] = l
		}
	}
	return best
}

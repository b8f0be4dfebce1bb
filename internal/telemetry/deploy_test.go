package telemetry

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"go.yaml.in/yaml/v3"
)

const (
	rulesFile     = "../../deploy/prometheus/oneclaw.yaml"
	dashboardFile = "../../deploy/grafana/oneclaw.json"
)

// shown are the names of metrics as /metrics has them, with the values of their labels.
type shown map[string]map[string][]string

// scraped are the labels that Prometheus itself adds.
var scraped = []string{"instance", "job"}

func shownNames(t *testing.T) shown {
	t.Helper()
	m := everything(t)
	m.RegisterProcess()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := shown{}
	for _, family := range families {
		values := make(map[string][]string)
		for _, metric := range family.GetMetric() {
			for _, l := range metric.GetLabel() {
				values[l.GetName()] = append(values[l.GetName()], l.GetValue())
			}
		}
		all[family.GetName()] = values
		if strings.Contains(family.GetType().String(), "HISTOGRAM") {
			bucket := maps.Clone(values)
			bucket["le"] = nil
			all[family.GetName()+"_bucket"], all[family.GetName()+"_sum"], all[family.GetName()+"_count"] = bucket, values, values
		}
	}
	return all
}

// check returns the labels of an expression, and fails where it names what the program has not.
func (s shown) check(t *testing.T, where, text string) (known, metrics []string) {
	t.Helper()
	expr, err := metricsql.Parse(text)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return nil, nil
	}
	known = slices.Clone(scraped)
	var grouped []string
	metricsql.VisitAll(expr, func(node metricsql.Expr) {
		switch n := node.(type) {
		case *metricsql.MetricExpr:
			for _, filters := range n.LabelFilterss {
				name := filters[0].Value // the first filter is that of the metric's name
				has, ok := s[name]
				if !ok {
					t.Errorf("%s: the program has no metric %q", where, name)
				}
				metrics = append(metrics, name)
				known = append(known, slices.Collect(maps.Keys(has))...)
				for _, f := range filters[1:] {
					values, ok := has[f.Label]
					if !ok && !slices.Contains(scraped, f.Label) {
						t.Errorf("%s: %s has no label %q", where, name, f.Label)
					}
					if ok && !f.IsRegexp && !f.IsNegative && !slices.Contains(values, f.Value) {
						t.Errorf("%s: %s of %s is never %q", where, f.Label, name, f.Value)
					}
				}
			}
		case *metricsql.AggrFuncExpr:
			grouped = append(grouped, n.Modifier.Args...)
		case *metricsql.BinaryOpExpr:
			grouped = append(grouped, n.GroupModifier.Args...)
		}
	})
	for _, label := range grouped {
		if !slices.Contains(known, label) {
			t.Errorf("%s: no metric in it has a label %q", where, label)
		}
	}
	return known, metrics
}

// inTemplates finds the labels that a text for people names.
var inTemplates = regexp.MustCompile(`\$labels\.(\w+)`)

// alertRules are the parts of a rules file that are looked at; .ci/nightly has Prometheus read it all.
type alertRules struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr         string
			Labels, Annotations map[string]string
		}
	}
}

func TestAlertRulesNameWhatTheProgramHas(t *testing.T) {
	data, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var rules alertRules
	if err := yaml.Unmarshal(data, &rules); err != nil {
		t.Fatal(err)
	}
	has, names := shownNames(t), make(map[string]bool)
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			known, _ := has.check(t, rule.Alert, rule.Expr)
			if names[rule.Alert] || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("%s is there twice, or says too little", rule.Alert)
			}
			names[rule.Alert] = true
			for _, found := range inTemplates.FindAllStringSubmatch(fmt.Sprint(rule.Annotations), -1) {
				if !slices.Contains(known, found[1]) {
					t.Errorf("%s tells people of a label %q that it has not", rule.Alert, found[1])
				}
			}
		}
	}
	if len(names) < 5 {
		t.Errorf("only %d alerts", len(names))
	}
}

// The parts of a dashboard that are looked at. Grafana ignores what it does not know.
type dashboard struct {
	Title, UID string
	ID         *int
	Templating struct {
		List []struct {
			Name, Type string
			Datasource source
			Query      json.RawMessage
		}
	}
	Annotations struct {
		List []struct {
			Datasource source
			Expr       string
		}
	}
	Panels []panel
}

type source struct{ Type, UID string }

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               source
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct {
		Datasource         source
		Expr, LegendFormat string
	}
}

var (
	// inLegends finds the labels of a legend, inVariables the metric and the label of a variable.
	inLegends   = regexp.MustCompile(`{{(\w+)}}`)
	inVariables = regexp.MustCompile(`^label_values\((\w+(?:{.*})?), (\w+)\)$`)
	// ranges stand for what Grafana puts in.
	ranges = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h")
)

// TestTheDashboardNamesWhatTheProgramHas reads the dashboard as Grafana would import it: it
// belongs to no server, and shows everything that is counted.
func TestTheDashboardNamesWhatTheProgramHas(t *testing.T) {
	data, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil || d.Title == "" || d.ID != nil || d.UID != "" {
		t.Fatalf("%v, title %q, id %v, uid %q", err, d.Title, d.ID, d.UID)
	}
	has, looked, sources := shownNames(t), make(map[string]bool), []source{}
	see := func(where, expr, legend string) {
		known, metrics := has.check(t, where, ranges.Replace(expr))
		for _, name := range metrics {
			looked[strings.TrimSuffix(name, "_bucket")] = true
		}
		for _, found := range inLegends.FindAllStringSubmatch(legend, -1) {
			if !slices.Contains(known, found[1]) {
				t.Errorf("%s has a legend with a label %q that it has not", where, found[1])
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		sources = append(sources, v.Datasource)
		var query struct{ Query string }
		found := []string(nil)
		if json.Unmarshal(v.Query, &query) == nil {
			found = inVariables.FindStringSubmatch(query.Query)
		}
		if found == nil || !slices.Contains(scraped, found[2]) {
			t.Fatalf("the variable %s asks %s", v.Name, v.Query)
		}
		see(v.Name, found[1], "")
	}
	for _, a := range d.Annotations.List {
		sources = append(sources, a.Datasource)
		see("annotation", a.Expr, "")
	}
	ids, cells := make(map[int]bool), make(map[[2]int]bool)
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("panel %d %q is there twice, or says too little", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			if x >= 24 || cells[[2]int{x, p.GridPos.Y}] {
				t.Errorf("panel %q lies on another one, or beyond the edge", p.Title)
			}
			cells[[2]int{x, p.GridPos.Y}] = true
		}
		if p.Type != "row" {
			sources = append(sources, p.Datasource)
		}
		for _, target := range p.Targets {
			sources = append(sources, target.Datasource)
			see(p.Title, target.Expr, target.LegendFormat)
		}
	}
	for _, s := range sources {
		if s != (source{"prometheus", "${datasource}"}) {
			t.Errorf("a panel asks %v", s)
		}
	}
	for name := range has {
		if strings.HasPrefix(name, "oneclaw_") && !looked[strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

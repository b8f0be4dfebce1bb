package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"oneclaw/internal/app"
	"oneclaw/internal/bill"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/toolgroups/search"
)

// comparison is what the command prints.
type comparison struct {
	conversations []bill.Conversation
	lines         []bill.Line
}

// billed plays the conversations once for all tests.
var billed = sync.OnceValues(func() (comparison, error) {
	conversations, err := bill.Conversations(nil)
	if err != nil {
		return comparison{}, err
	}
	lines, err := compared(config.Default(), conversations)
	return comparison{conversations, lines}, err
})

// compared plays conversations with the tools of a bot that has no others.
func compared(cfg config.Config, conversations []bill.Conversation) (lines []bill.Line, err error) {
	err = app.WithEmptyBot(context.Background(), cfg, func(b *app.Bot) error {
		comparison, err := bill.New(b.BillConfig(cfg))
		for _, c := range conversations {
			if err != nil {
				return err
			}
			var more []bill.Line
			more, err = comparison.Compare(context.Background(), c)
			lines = append(lines, more...)
		}
		return err
	})
	return lines, err
}

// comparedRoutings are those of which the bill tells: threshold is always one of the others.
func comparedRoutings() []search.Routing {
	return slices.DeleteFunc(search.Routings(), func(r search.Routing) bool { return r == search.RoutingThreshold })
}

// near is how much more than the best routing auto may cost.
const near = 1.05

// What auto decides costs at most 5 % more than what would have been best, in each of the
// conversations. Gemini 3 keeps nothing short: of two conversations that begin alike nobody
// can know which one it will be, and it has to be near the best for all together.
func TestAutoIsNearTheBest(t *testing.T) {
	t.Parallel()
	b, err := billed()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tableNames(b.lines) {
		all := []string{"chat", "office", "servers"}
		for _, c := range all {
			if table != "Gemini 3" && !within(b.lines, table, []string{c}, search.RoutingAuto) {
				t.Errorf("%s: auto is not near the best:%s", table, rows(b.lines, table, []string{c}))
			}
		}
		if auto, best := sum(b.lines, table, all, search.RoutingAuto), cheapest(b.lines, table, all); auto > best*near {
			t.Errorf("%s, all together: auto costs %.0f, the best %.0f", table, auto, best)
		}
	}
}

// nearOnAverage is how much more than the best of each auto may cost over conversations of
// all kinds.
const nearOnAverage = 1.08

// Over conversations that nobody chose – short and long, with none to many groups, with
// pauses longer than a cache lives – auto is near what would have been best for each.
// It takes minutes: TEST_ONECLAW_GENERATED says how many conversations are made.
func TestAutoIsNearTheBestOnAverage(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("TEST_ONECLAW_GENERATED"))
	if err != nil || n < 1 {
		t.Skip("TEST_ONECLAW_GENERATED=200 plays 200 conversations")
	}
	var made []bill.Conversation
	err = app.WithEmptyBot(t.Context(), config.Default(), func(b *app.Bot) (err error) {
		made, err = generate(b.Registry(), n, 7)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := compared(config.Default(), made)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tableNames(lines) {
		var auto, best, shares float64
		for _, cheapest := range cheapestOfEach(lines, table) {
			cost := sum(lines, table, []string{cheapest.Conversation}, search.RoutingAuto)
			auto, best, shares = auto+cost, best+cheapest.Billed, shares+cost/cheapest.Billed
		}
		share, each := auto/best, shares/float64(n)
		t.Logf("%-18s auto costs %.3f of the best of each together, %.3f on average", table, share, each)
		if share > nearOnAverage || each > nearOnAverage {
			t.Errorf("%s: auto is not near the best", table)
		}
	}
}

// cheapest is what the cheapest one routing costs for conversations together.
func cheapest(lines []bill.Line, table string, conversations []string) float64 {
	best := math.Inf(1)
	for _, r := range comparedRoutings() {
		best = min(best, sum(lines, table, conversations, r))
	}
	return best
}

func tableNames(lines []bill.Line) []string {
	var names []string
	for _, l := range lines {
		if !slices.Contains(names, l.Provider) {
			names = append(names, l.Provider)
		}
	}
	return names
}

// within reports whether a routing is near the best in each of the conversations.
func within(lines []bill.Line, table string, conversations []string, r search.Routing) bool {
	for _, c := range conversations {
		best := sum(lines, table, []string{c}, search.RoutingGroups)
		for _, other := range comparedRoutings() {
			best = min(best, sum(lines, table, []string{c}, other))
		}
		if sum(lines, table, []string{c}, r) > best*near+rounding(lines, table, c) {
			return false
		}
	}
	return true
}

// rounding is what a cache that keeps prompts in steps of 128 tokens makes of two arrays that differ by
// a few: half a step a request.
func rounding(lines []bill.Line, table, conversation string) float64 {
	for _, l := range lines {
		if l.Provider == table && l.Conversation == conversation && slices.Contains([]string{"gpt-4o", "gpt-4.1", "gpt-5"}, table) {
			return 64 * float64(l.Requests)
		}
	}
	return 0
}

// sum is what conversations cost together under one routing.
func sum(lines []bill.Line, table string, conversations []string, r search.Routing) float64 {
	all := 0.0
	for _, l := range lines {
		if l.Provider == table && l.Routing == r && slices.Contains(conversations, l.Conversation) {
			all += l.Billed
		}
	}
	return all
}

func rows(lines []bill.Line, table string, conversations []string) string {
	var b strings.Builder
	for _, l := range lines {
		if l.Provider == table && slices.Contains(conversations, l.Conversation) {
			b.WriteString("\n" + l.Conversation + " " + string(l.Routing) + " (" + string(l.UsedRouting) + ") " + strconv.Itoa(int(l.Billed)))
		}
	}
	return b.String()
}

// billDocs is where the tables stand, between two marks.
const (
	billDocs  = "../../docs/bill.md"
	billBegin = "<!-- oneclaw-lab bill --markdown -->\n"
	billEnd   = "<!-- end -->"
)

// billDrift is how far a figure of the docs may be from what is measured, as a share: a
// word changed in a description is no reason to measure anew.
const billDrift = 0.03

// The tables in the docs are those that the program prints. ONECLAW_UPDATE=1 writes them.
func TestBillDocs(t *testing.T) {
	t.Parallel()
	b, err := billed()
	if err != nil {
		t.Fatal(err)
	}
	var now bytes.Buffer
	if err := bill.WriteTables(&now, b.conversations, b.lines, true); err != nil {
		t.Fatal(err)
	}
	compareDocs(t, billBegin, "", now.String())
}

// updatesDocs reports whether the docs are to be written.
func updatesDocs() bool { return os.Getenv("ONECLAW_UPDATE") != "" }

// compareDocs compares what stands behind a mark of the docs, of it the lines that begin with a
// text, with what is measured.
func compareDocs(t *testing.T, mark, begins, now string) {
	t.Helper()
	page, err := os.ReadFile(billDocs)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), mark)
	tables, tail, ended := strings.Cut(rest, billEnd)
	if !ok || !ended {
		t.Fatalf("%s has no marks for the tables", billDocs)
	}
	if updatesDocs() {
		if err := os.WriteFile(billDocs, []byte(head+mark+"\n"+now+"\n"+billEnd+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, measured := takeApart(t, now)
	lines := slices.DeleteFunc(slices.Collect(strings.Lines(tables)), func(line string) bool { return !strings.HasPrefix(line, begins) })
	got, stand := takeApart(t, strings.Join(lines, ""))
	same := want == got && len(measured) == len(stand)
	for i := range measured {
		if same && (stand[i] < measured[i]*(1-billDrift) || stand[i] > measured[i]*(1+billDrift)) {
			t.Errorf("%s has %.0f where %.0f is measured", billDocs, stand[i], measured[i])
		}
	}
	if !same || t.Failed() {
		t.Errorf("the tables of %s are out of date; write them with ONECLAW_UPDATE=1 go test ./internal/lab -run BillDocs", billDocs)
	}
}

// figure is a number of billed tokens; what is added to it follows from it.
var (
	figure = regexp.MustCompile(`\b[0-9]{1,3}(,[0-9]{3})+\b`)
	added  = regexp.MustCompile(` \(\+[0-9]+ %\)|\$[0-9.]+, \$[0-9.]+`)
)

// takeApart separates the numbers of tokens from the rest of the tables.
func takeApart(t *testing.T, tables string) (string, []float64) {
	t.Helper()
	tables = added.ReplaceAllString(strings.TrimSpace(tables), "")
	var numbers []float64
	for _, text := range figure.FindAllString(tables, -1) {
		n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	return figure.ReplaceAllString(tables, "N"), numbers
}

func TestBillCommand(t *testing.T) {
	t.Setenv("ONECLAW_DATA_DIR", t.TempDir())
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no such conversation": {[]string{"bill", "opera"}, `there is no conversation "opera"; there are chat, office, servers`},
		"two forms":            {[]string{"bill", "--json", "--markdown"}, "json"},
	} {
		var stdout, stderr bytes.Buffer
		if code := cli.Execute(Root, config.DefaultRuntime(), tc.args, nil, &stdout, &stderr); code == 0 || !strings.Contains(stderr.String(), tc.want) {
			t.Errorf("%s: exit %d, %s", name, code, stderr.String())
		}
	}
	var stdout, stderr bytes.Buffer
	if code := cli.Execute(Root, config.DefaultRuntime(), []string{"bill", "chat", "--json"}, nil, &stdout, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	var line bill.Line
	if err := json.Unmarshal(bytes.SplitN(stdout.Bytes(), []byte("\n"), 2)[0], &line); err != nil || line.Conversation != "chat" || line.Requests != 20 {
		t.Errorf("%+v, %v", line, err)
	}
}

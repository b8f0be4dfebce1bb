package eval

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"oneclaw/internal/budget"
	"oneclaw/internal/learning"
	"oneclaw/internal/wording"
)

// Summary is the summary of all cases.
type Summary struct {
	Cases int            `json:"cases"`
	Was   learning.Usage `json:"was"`
	Now   learning.Usage `json:"now"`
	// SameAnswers counts identical answers.
	SameAnswers int `json:"same_answers"`
	Same        int `json:"same"`
	Missing     int `json:"missing"`
	New         int `json:"new"`
	Unrecorded  int `json:"unrecorded"`
	Failed      int `json:"failed,omitempty"`
	// NotRun counts the cases that were not run because the budget was used up.
	NotRun int `json:"left,omitempty"`
}

// Add adds a result.
func (s *Summary) Add(r Result) {
	s.Cases++
	s.Was.Add(r.Was.Used)
	s.Now.Add(r.Now.Used)
	s.Same, s.Missing, s.New, s.Unrecorded = s.Same+len(r.Same), s.Missing+len(r.Missing), s.New+len(r.New), s.Unrecorded+r.Unrecorded
	switch {
	case r.Error != "":
		s.Failed++
	case r.Was.Answer == r.Now.Answer:
		s.SameAnswers++
	}
}

const (
	// maxShown bounds a shown text, maxCalls the number of shown calls of a kind.
	maxShown = 160
	maxCalls = 8
	// contextWords is the number of words around a difference.
	contextWords = 6
)

// WriteText writes a result side by side.
func (r Result) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  👍 %d 👎 %d  “%s”\n", r.ID, r.Good, r.Bad, wording.Clip(oneLine(r.Question), maxShown))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(what, was, now string) { _, _ = fmt.Fprintf(table, "  %s\t%s\t%s\n", what, was, now) }
	row("", "was", "now")
	row("model", orNotRecorded(r.Was.Model), orNotRecorded(r.Now.Model))
	row("routing", orNotRecorded(r.Was.Routing), orNotRecorded(r.Now.Routing))
	row("groups", joinGroups(r.Was.Groups), joinGroups(r.Now.Groups))
	writeUsage(row, r.Was.Used, r.Now.Used)
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&b, "  tools    %d the same\n", len(r.Same))
	for _, part := range []struct {
		what  string
		calls []string
	}{{"missing", r.Missing}, {"new", r.New}, {"no tools of this program", r.Gone}} {
		for _, call := range part.calls[:min(maxCalls, len(part.calls))] {
			fmt.Fprintf(&b, "           %s: %s\n", part.what, wording.Clip(oneLine(call), maxShown))
		}
		if more := len(part.calls) - maxCalls; more > 0 {
			fmt.Fprintf(&b, "           %s: %d more\n", part.what, more)
		}
	}
	if r.Unrecorded > 0 {
		fmt.Fprintf(&b, "           not on record: %d calls, which the model was told\n", r.Unrecorded)
	}
	if r.Unshown > 0 {
		fmt.Fprintf(&b, "           written meanwhile and not shown: %d\n", r.Unshown)
	}
	switch was, now := difference(r.Was.Answer, r.Now.Answer); {
	case r.Error != "":
		fmt.Fprintf(&b, "  answer   was: %s\n           now: none, %s\n", was, wording.Clip(oneLine(r.Error), maxShown))
	case was == now:
		fmt.Fprintf(&b, "  answer   the same: %s\n", wording.Clip(was, maxShown))
	default:
		fmt.Fprintf(&b, "  answer   was: %s\n           now: %s\n", was, now)
	}
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

// WriteText writes the summary.
func (s Summary) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(what, was, now string) { _, _ = fmt.Fprintf(table, "  %s\t%s\t%s\n", what, was, now) }
	_, _ = fmt.Fprintf(table, "All %d cases\n", s.Cases)
	row("", "was", "now")
	writeUsage(row, s.Was, s.Now)
	if err := table.Flush(); err != nil {
		return err
	}
	text := fmt.Sprintf("  tools    %d the same, %d missing, %d new; %d calls not on record\n  answers  %d the same word for word\n",
		s.Same, s.Missing, s.New, s.Unrecorded, s.SameAnswers)
	if s.Failed > 0 {
		text += fmt.Sprintf("  failed   %d\n", s.Failed)
	}
	if s.NotRun > 0 {
		text += fmt.Sprintf("  not run  %d\n", s.NotRun)
	}
	_, err := io.WriteString(w, text)
	return err
}

func writeUsage(row func(what, was, now string), was, now learning.Usage) {
	number := func(n int) string { return budget.FormatCount(int64(n)) }
	row("replies", number(was.Rounds), number(now.Rounds))
	row("tokens in", number(was.Input), number(now.Input))
	row("  cached", number(was.Cached), number(now.Cached))
	row("tokens out", number(was.Output), number(now.Output))
	row("cost", formatCost(was), formatCost(now))
}

func formatCost(u learning.Usage) string {
	switch sum := budget.Dollars(u.USD).String(); u.Unpriced {
	case 0:
		return sum
	case u.Rounds:
		return "unknown"
	default:
		return fmt.Sprintf("%s, without %d replies of unknown price", sum, u.Unpriced)
	}
}

func orNotRecorded(text string) string {
	if text == "" {
		return "not on record"
	}
	return oneLine(text)
}

func joinGroups(groups []string) string {
	if len(groups) == 0 {
		return "none"
	}
	return strings.Join(groups, ", ")
}

// oneLine returns a text on one line, without terminal control characters.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text)), " ")
}

// difference shortens two texts to the part that differs, with some words around it. Equal texts are
// returned unchanged.
func difference(was, now string) (string, string) {
	a, b := strings.Fields(oneLine(was)), strings.Fields(oneLine(now))
	if slices.Equal(a, b) {
		return oneLine(was), oneLine(was)
	}
	head, tail := 0, 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	show := func(words []string) string {
		begin := max(0, head-contextWords)
		end := min(len(words), len(words)-tail+contextWords)
		text := strings.Join(words[begin:head], " ") + " [" + wording.Clip(strings.Join(words[head:len(words)-tail], " "), maxShown) + "] " + strings.Join(words[len(words)-tail:end], " ")
		if begin > 0 {
			text = "… " + text
		}
		if end < len(words) {
			text += " …"
		}
		return strings.TrimSpace(text)
	}
	return show(a), show(b)
}

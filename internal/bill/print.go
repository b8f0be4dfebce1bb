package bill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"oneclaw/internal/budget"
	"oneclaw/toolgroups/search"
)

// Format is the output format: tables, Markdown, or JSON.
type Format struct {
	json, markdown bool
	pause          time.Duration
}

// AddFlags adds flags for the format to a command.
func (f *Format) AddFlags(command *cobra.Command) {
	command.Flags().BoolVar(&f.json, "json", false, "print one JSON object for each line")
	command.Flags().BoolVar(&f.markdown, "markdown", false, "print tables in Markdown")
	command.Flags().DurationVar(&f.pause, "pause", 0, "how much later than written each turn comes, for example 20m")
	command.MarkFlagsMutuallyExclusive("json", "markdown")
}

// Name returns the name of the format for [NewFormat], which is empty for text.
func (f *Format) Name() string {
	switch {
	case f.json:
		return "json"
	case f.markdown:
		return "markdown"
	}
	return ""
}

// Pause returns how much later than written each turn comes, for [NewFormat].
func (f *Format) Pause() string { return f.pause.String() }

// NewFormat returns the format with the given name and pause.
func NewFormat(name, pause string) Format {
	more, _ := time.ParseDuration(pause) // 0 if there is none
	return Format{json: name == "json", markdown: name == "markdown", pause: more}
}

// Print plays conversations and prints their costs.
func (f *Format) Print(ctx context.Context, w io.Writer, as Config, conversations ...Conversation) error {
	b, err := New(as)
	if err != nil {
		return err
	}
	var lines []Line
	for _, c := range conversations {
		more, err := b.Compare(ctx, c.WithPauses(f.pause))
		if err != nil {
			return err
		}
		lines = append(lines, more...)
	}
	if f.json {
		return search.WriteJSON(w, lines)
	}
	return WriteTables(w, conversations, lines, f.markdown)
}

// PrintModels prints what a recorded conversation costs by model.
func (f *Format) PrintModels(ctx context.Context, w io.Writer, as Config, c Conversation) error {
	b, err := New(as)
	if err != nil {
		return err
	}
	costs, err := b.CompareModels(ctx, c.WithPauses(f.pause))
	if err != nil || f.json {
		return errors.Join(err, search.WriteJSON(w, costs))
	}
	return WriteModels(w, costs, f.markdown)
}

// tables are tables in text or in Markdown.
type tables struct {
	strings.Builder

	markdown bool
}

func (t *tables) row(head bool, cells ...string) {
	if !t.markdown {
		t.WriteString(strings.Join(cells, "\t") + "\n")
		return
	}
	t.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	if head {
		t.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
	}
}

// writeTo writes the tables with aligned columns.
func (t *tables) writeTo(w io.Writer) error {
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(aligned, t.String()); err != nil {
		return fmt.Errorf("bill: %w", err)
	}
	return aligned.Flush()
}

// WriteTables writes a table for each conversation, in Markdown if markdown is set.
func WriteTables(w io.Writer, conversations []Conversation, lines []Line, markdown bool) error {
	t, strong := tables{markdown: markdown}, ""
	if markdown {
		strong = "**"
	}
	for i, c := range conversations {
		if i > 0 {
			t.WriteString("\n")
		}
		t.WriteString(strong + c.Name + strong + ": " + c.Title + "\n\n")
		head := []string{"cache"}
		for _, l := range groupByProvider(lines, c.Name)[0] {
			head = append(head, string(l.Routing))
		}
		t.row(true, append(head, "auto, all in money")...)
		for _, of := range groupByProvider(lines, c.Name) {
			t.row(false, append(append([]string{of[0].Provider}, costCells(of)...), formatDollars(of))...)
		}
	}
	return t.writeTo(w)
}

// formatDollars returns the cost in dollars of "auto" and of sending all tools, output included.
func formatDollars(lines []Line) string {
	var auto, all float64
	for _, l := range lines {
		switch l.Routing {
		case search.RoutingAuto:
			auto = l.USD
		case search.RoutingAll:
			all = l.USD
		}
	}
	if auto == 0 {
		return "–"
	}
	return fmt.Sprintf("$%.4f, $%.4f", auto, all)
}

// groupByProvider groups the lines of a conversation by provider.
func groupByProvider(lines []Line, conversation string) [][]Line {
	var all [][]Line
	for _, l := range lines {
		if l.Conversation != conversation {
			continue
		}
		if n := len(all); n > 0 && all[n-1][0].Provider == l.Provider {
			all[n-1] = append(all[n-1], l)
			continue
		}
		all = append(all, []Line{l})
	}
	return all
}

// costCells returns the costs in a row, each with its excess over the cheapest.
func costCells(lines []Line) []string {
	best := math.Inf(1)
	for _, l := range lines {
		best = min(best, l.Billed)
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = fmt.Sprintf("%s (+%.0f %%)", budget.FormatCount(int64(math.RoundToEven(l.Billed))), math.Round((l.Billed/best-1)*100))
		if l.Billed == best {
			out[i] = budget.FormatCount(int64(math.RoundToEven(l.Billed)))
		}
		if l.Routing == search.RoutingAuto {
			out[i] += " " + string(l.UsedRouting)
		}
	}
	return out
}

package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"oneclaw/internal/budget"
	"oneclaw/internal/learning"
	"oneclaw/toolgroups/search"
)

// Options are the options of a run.
type Options struct {
	// Base is from the settings.
	Base Config
	// Model, Routing and Prompt override Base if they are not empty. Prompt names a file.
	Model, Routing, Prompt string
	// Limit bounds the cases; 0 means all.
	Limit int
	JSON  bool
	// Out receives the results, Progress the progress messages.
	Out, Progress io.Writer
}

// defaultBudget is the default budget of a run, in dollars.
const defaultBudget = 0.5

// AddFlags adds the options to the flags of a command.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Model, "model", "", "ask this model (default: that of the settings)")
	flags.StringVar(&o.Routing, "routing", "", "how tools reach the model (default: tools.routing)")
	flags.StringVar(&o.Prompt, "prompt", "", "a file with another prompt")
	flags.IntVar(&o.Limit, "limit", 0, "run so many cases (default: all)")
	flags.Float64Var(&o.Base.Budget, "budget", defaultBudget, "what the run may cost in dollars; where no price is known, a dollar stands for a million tokens")
	flags.BoolVar(&o.JSON, "json", false, "print one JSON object for each case, then the sums")
}

// RunFile runs the cases of a file and prints the differences.
func RunFile(ctx context.Context, path string, o Options) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("eval replay %s: %w", path, err)
		}
	}()
	p, err := o.newPlayer()
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	cases := 0
	for _, err := range learning.ReadCases(file) { // the whole file is valid before any request is paid for
		if err != nil {
			return err
		}
		cases++
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if o.Limit > 0 {
		cases = min(cases, o.Limit)
	}
	if _, err := fmt.Fprintf(o.Progress, "%d cases with %s, routing %s: %s.\n", cases, p.cfg.Name, p.cfg.Routing, p.model.describeLimit()); err != nil {
		return err
	}
	sum, err := o.runCases(ctx, p, file, cases)
	return errors.Join(o.print(struct {
		Sum Summary `json:"sum"`
	}{sum}, sum.WriteText), err)
}

// runCases plays the first cases of a file and prints the results. If the budget ends the run, the error is
// [ErrBudget], and the summary covers the cases before.
func (o Options) runCases(ctx context.Context, p *Player, file io.Reader, cases int) (sum Summary, err error) {
	for c, err := range learning.ReadCases(file) {
		if err != nil || sum.Cases == cases {
			return sum, err
		}
		r, err := p.Play(ctx, c)
		spent := p.model.describe(p.model.spent)
		if errors.Is(err, ErrBudget) {
			sum.NotRun = cases - sum.Cases
			return sum, fmt.Errorf("%w: %s spent, %d of %d cases are not run", ErrBudget, spent, sum.NotRun, cases)
		}
		if err != nil {
			return sum, err
		}
		sum.Add(r)
		_, err = fmt.Fprintf(o.Progress, "case %d of %d, %s spent\n", sum.Cases, cases, spent)
		if err := errors.Join(err, o.print(r, r.WriteText)); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// newPlayer makes the player for these options.
func (o Options) newPlayer() (*Player, error) {
	cfg := o.Base
	if o.Routing != "" {
		cfg.Routing = search.Routing(o.Routing)
	}
	switch {
	case !slices.Contains(search.Routings(), cfg.Routing):
		return nil, fmt.Errorf("--routing %q is none of %q", cfg.Routing, search.Routings())
	case o.Limit < 0:
		return nil, errors.New("--limit: want a number of cases")
	case !(cfg.Budget > 0) || budget.Dollars(cfg.Budget) <= 0:
		return nil, errors.New("--budget: want dollars above 0")
	}
	if o.Prompt != "" {
		data, err := os.ReadFile(o.Prompt)
		if err != nil {
			return nil, fmt.Errorf("--prompt: %w", err)
		}
		cfg.Prompt = string(data)
	}
	return New(cfg)
}

// print prints a value as JSON, or calls text to print it.
func (o Options) print(v any, text func(io.Writer) error) error {
	if o.JSON {
		return json.NewEncoder(o.Out).Encode(v)
	}
	return text(o.Out)
}

package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/lab/eval"
	"oneclaw/toolgroups/search"
)

func evalCommand(load cli.Loader) *cobra.Command {
	command := cli.ParentCommand("eval", "Measure parts of the bot")
	var asJSON, learn bool
	var half, queries string
	retrieval := &cobra.Command{
		Use:   "retrieval FILE…",
		Short: "Measure how well tool search finds the right tools",
		Long: "Measure how well tool search finds the right tools. Each file is JSON of the form " +
			`{"tools": [{"name", "desc", "params": […], "source"}], "queries": [{"q", "gold": [names], "lang"}]}.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			part, err := search.ParseHalf(half)
			if err != nil {
				return err
			}
			asked, err := search.ParseQuerySource(queries)
			if err != nil {
				return err
			}
			if learn && part == search.HalfAll {
				return errors.New("eval retrieval: --learn needs --half tuned or held, and learns from the other half")
			}
			var reports []search.Report
			for _, name := range args {
				of, err := evalFile(cmd.Context(), name, part, asked, learn)
				if err != nil {
					return err
				}
				reports = append(reports, of...)
			}
			if asJSON {
				return search.WriteJSON(cmd.OutOrStdout(), reports)
			}
			return search.WriteText(cmd.OutOrStdout(), reports)
		},
	}
	retrieval.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each file")
	retrieval.Flags().StringVar(&half, "half", "all", "which queries: all, tuned or held")
	retrieval.Flags().StringVar(&queries, "queries", "file", "what is asked: the queries of the file, names (the words of the tools' names) or hidden (these, of an index without names)")
	retrieval.Flags().BoolVar(&learn, "learn", false, "learn from the queries of the other half first, as tools.tool_search.learn does (with --half tuned or held)")
	command.AddCommand(retrieval, evalReplayCommand(load))
	return command
}

func evalFile(ctx context.Context, name string, half search.Half, asked search.QuerySource, learn bool) ([]search.Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("eval retrieval: %w", err)
	}
	defer func() { _ = f.Close() }()
	return search.Eval(ctx, search.WordRanker{}, f, name, half, asked, learn)
}

func evalReplayCommand(load cli.Loader) *cobra.Command {
	var o eval.Options
	command := &cobra.Command{
		Use: "replay FILE", Short: "Run exported cases with another model, routing or prompt and show what is different", Args: cli.OneArgument,
		Long: "Run the cases of oneclaw export eval with the model of the settings, or another one at the same address, and print what is different. Tools answer with what is on record and have no effect; nothing but the model is asked.",
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			o.Out, o.Progress = cmd.OutOrStdout(), cmd.ErrOrStderr()
			cfg.Model.Name, cfg.Store = cmp.Or(o.Model, cfg.Model.Name), database.Bolt
			return app.WithEmptyBot(cmd.Context(), cfg, func(b *app.Bot) error {
				client, err := cfg.Model.Client(cfg.ModelClient())
				if err != nil {
					return err
				}
				o.Base = eval.Config{
					Model: client, Name: cfg.Model.Name, Effort: cfg.Model.Effort, Prompt: app.Prompt, Registry: b.Registry(), Now: cfg.Runtime.Now,
					Routing: search.Routing(cfg.Tools.Routing), Search: cfg.Tools.ToolSearch, Prices: app.CachePrices(cfg), DollarPrice: cfg.PriceLookup(), Budget: o.Base.Budget,
				}
				return eval.RunFile(cmd.Context(), args[0], o)
			})
		}),
	}
	o.AddFlags(command.Flags())
	return command
}

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"oneclaw/toolgroups/search"
)

func evalCommand(load loader) *cobra.Command {
	command := parent("eval", "Measure parts of the bot")
	var asJSON bool
	var half, queries string
	retrieval := &cobra.Command{
		Use:   "retrieval FILE…",
		Short: "Measure how well tool search finds the right tools",
		Long: "Measure how well tool search finds the right tools. Each file is JSON of the form " +
			`{"tools": [{"name", "desc", "params": […], "source"}], "queries": [{"q", "gold": [names]}]}.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			part, err := search.ParseHalf(half)
			if err != nil {
				return err
			}
			asked, err := search.ParseQueries(queries)
			if err != nil {
				return err
			}
			var reports []search.Report
			for _, name := range args {
				report, err := evalFile(name, part, asked)
				if err != nil {
					return err
				}
				reports = append(reports, report)
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
	command.AddCommand(retrieval, evalReplayCommand(load))
	return command
}

func evalFile(name string, half search.Half, asked search.Queries) (search.Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return search.Report{}, fmt.Errorf("eval retrieval: %w", err)
	}
	defer func() { _ = f.Close() }()
	return search.Eval(f, name, half, asked)
}

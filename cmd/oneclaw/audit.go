package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"oneclaw/bridge/audit"
	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/wording"
)

func auditCommand(load cli.Loader) *cobra.Command {
	asJSON, most := false, 0
	command := &cobra.Command{
		Use:   "audit",
		Short: "Show who did what, the newest first: let in, removed, approved, cleared, switched, connected, signed in",
		Args:  cobra.NoArgs,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, _ []string) error {
			var all []audit.Entry
			running, err := app.SendOrder(cmd.Context(), cfg, fmt.Sprintf("audit?most=%d", most), nil, func(body io.Reader) error { return json.NewDecoder(body).Decode(&all) })
			if err == nil && !running {
				err = database.View(cmd.Context(), cfg.Place(), func(store *database.Store) error {
					all, err = audit.List(cmd.Context(), store, most)
					return err
				})
			}
			if err != nil {
				return err
			}
			return printAudit(cmd.OutOrStdout(), all, asJSON)
		}),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print a line of JSON for each")
	command.Flags().IntVar(&most, "most", 100, "how many; 0 means all")
	return command
}

// printAudit prints entries as a table without terminal control characters, or as JSON.
func printAudit(w io.Writer, all []audit.Entry, asJSON bool) error {
	if asJSON {
		lines := json.NewEncoder(w)
		for _, e := range all {
			if err := lines.Encode(e); err != nil {
				return err
			}
		}
		return nil
	}
	const widest = 80
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "TIME\tBY\tNAME\tCHAT\tACTION\tABOUT")
	for _, e := range all {
		_, _ = fmt.Fprint(table, e.At.UTC().Format(time.DateTime))
		for _, cell := range []string{e.By, e.Name, e.Chat, e.Action, e.About} {
			_, _ = fmt.Fprint(table, "\t", wording.OneLine(cell, widest))
		}
		_, _ = fmt.Fprintln(table)
	}
	return table.Flush()
}

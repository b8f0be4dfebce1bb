package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/storage/replicas"
)

func replicasCommand(load cli.Loader) *cobra.Command {
	asJSON := false
	command := &cobra.Command{
		Use:   "replicas",
		Short: "Show which replicas share the database, and what each owns",
		Long: "Show which replicas share the database, since when by their own clocks, and what each owns: shares of the chats, and tasks that only one may do at a time. " +
			"A replica that has died is in the list until another has noticed, and a line lists shares without an owner.",
		Args: cobra.NoArgs,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, _ []string) error {
			members, err := listReplicas(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return printReplicas(cmd.OutOrStdout(), members, asJSON)
		}),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print them as JSON")
	return command
}

func listReplicas(ctx context.Context, cfg config.Config) (members []replicas.Member, err error) {
	if !cfg.Store.Shared() {
		return nil, fmt.Errorf("the database is a file in %s, which only one bot can use: replicas share a database in PostgreSQL (ONECLAW_STORE)", cfg.DataDir)
	}
	err = database.View(ctx, cfg.Place(), func(store *database.Store) error {
		members, err = replicas.List(ctx, store)
		return err
	})
	return members, err
}

// printReplicas prints replicas as a table, or completely as JSON.
func printReplicas(w io.Writer, members []replicas.Member, asJSON bool) error {
	if asJSON {
		type row struct {
			replicas.Member

			Leases []string `json:"leases"`
		}
		rows := []row{}
		for _, m := range members {
			rows = append(rows, row{m, append([]string{}, m.Leases...)})
		}
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(rows)
	}
	if len(members) == 0 {
		_, err := io.WriteString(w, "No bot serves the database.\n")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "HOST\tID\tVERSION\tSINCE\tHOLDS")
	for _, m := range members {
		_, _ = fmt.Fprintf(table, "%s\t%.8s\t%s\t%s\t%s\n", m.Host, m.ID, m.Version, m.Since.UTC().Format(time.DateTime), m.Holdings())
	}
	return table.Flush()
}

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/learning"
)

func exportCommand(load cli.Loader) *cobra.Command {
	all, force := cli.ParentCommand("export", "Export data of the bot to files"), false
	command := &cobra.Command{
		Use: "eval FILE", Short: "Write the conversations that people rated with 👍 or 👎 as cases for oneclaw-lab eval replay", Args: cli.OneArgument,
		Long: "Write the conversations that people rated with 👍 or 👎, also while the bot runs. Secrets, names and ids are replaced. The setting export_judged has to allow it. Ratings in chats that were not told, and conversations of people who said /learning no, are left out.",
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			counts, err := learning.ExportFile{
				Disabled: !cfg.ExportJudged, Path: args[0], Force: force, At: cfg.Place(),
				ExportFromBot: func(ctx context.Context, read func(io.Reader) error) (bool, error) {
					return app.SendOrder(ctx, cfg, "export", nil, read)
				},
				Exporter: func(store *database.Store) (learning.Exporter, error) {
					log := slog.New(slog.DiscardHandler)
					_, _, err := app.OpenSettings(cfg, store, log) // the redactor knows the vault from then on
					return app.Exporter(cfg, store, log), err
				},
			}.Write(cmd.Context())
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s written to %s.\n", counts, args[0])
			}
			return err
		}),
	}
	command.Flags().BoolVar(&force, "force", false, "replace the file if it is there")
	all.AddCommand(command)
	return all
}

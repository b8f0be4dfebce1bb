package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/wording"
)

// progressEvery is the interval of a move's progress messages.
const progressEvery = 2 * time.Second

func moveCommand(load cli.Loader) *cobra.Command {
	var from, to string
	command := &cobra.Command{
		Use:   "move",
		Short: "Move the database to another engine (stop the bot first)",
		Long: "Copy all that one database holds into another one, which must be empty, and compare the two record by record. " +
			"A place is bolt (the file in the data directory) or postgres://user@host/database; what is not named is the one in the settings. " +
			"Stop the bot first. Where a move breaks off, run it again: it begins anew, and nothing serves a database that is half filled. " +
			"The former database stays as it was. Workspaces, skills and your own tools in the data directory are stored in a database on a server too (tools.files).",
		Args: cobra.NoArgs,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, _ []string) error {
			return move(cmd, cfg, database.Address(from), database.Address(to))
		}),
	}
	command.Flags().StringVar(&from, "from", "", "the database to move")
	command.Flags().StringVar(&to, "to", "", "where to move it")
	return command
}

func move(cmd *cobra.Command, cfg config.Config, from, to database.Address) error {
	places := []database.Place{cfg.Place(), cfg.Place()}
	for i, address := range []database.Address{from, to} {
		if err := address.Check(); err != nil {
			return fmt.Errorf("%s: %w", []string{"--from", "--to"}[i], err)
		}
		if address != "" {
			places[i].Address = address
			cfg.Redact.Add(address.Secrets()...)
		}
	}
	if places[0].Address == places[1].Address {
		return errors.New("--from and --to are the same database: name another one, such as --to postgres://user@host/database")
	}
	last := cfg.Runtime.Now()
	progress := func(so database.RecordCount) {
		if now := cfg.Runtime.Now(); now.Sub(last) >= progressEvery {
			last = now
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s …\n", describeCount(so))
		}
	}
	moved, err := database.Move(cmd.Context(), places[0], places[1], progress)
	if err != nil {
		return err
	}
	before, after := cfg, cfg
	before.Store, after.Store = places[0].Address, places[1].Address
	also := ""
	switch {
	case after.FilesInStore() && !before.Store.Shared():
		if err := app.StoreFiles(cmd.Context(), after, cli.NewLogger(cmd.ErrOrStderr(), cfg)); err != nil {
			return fmt.Errorf("the database was moved, but not the files beside it, which the first bot that starts with %s takes along: %w", cfg.DataDir, err)
		}
	case before.FilesInStore() && !after.FilesInStore():
		also = ", and ONECLAW_TOOLS_FILES=store, because the files of people, skills and your own tools are in the database"
	}
	if after.Store.Shared() && cfg.SecretKey == "" {
		also += fmt.Sprintf(", and ONECLAW_SECRET_KEY to what %s holds, if that is there", filepath.Join(cfg.DataDir, database.SecretName))
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "Moved and compared: %s.\nNow set ONECLAW_STORE=%s%s. The former database is as it was; delete it when you do not need it.\n",
		describeCount(moved), places[1].Address, also)
	return err
}

// describeCount describes how much was moved.
func describeCount(n database.RecordCount) string {
	return fmt.Sprintf("%d entries and %d conversations with %d records, %s", n.Keys, n.Logs, n.Records, wording.FormatSize(n.Bytes))
}

package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/wording"
)

// notInBackup names what a backup does not contain.
const notInBackup = "Not in it, so copy them as well: the folders workspaces, skills and tools, " +
	"the settings in oneclaw.yaml, and secret.key, without which stored keys and accounts cannot be read."

func backupCommand(load cli.Loader) *cobra.Command {
	var o database.Options
	command := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the database to a file, also while the bot runs",
		Long: "Write the database to a file and check it, also while the bot runs. The file holds conversations, " +
			"memory, tasks, what was set up in chats, and accounts (keys and tokens encrypted), all as it was at one moment. " +
			"It is the same from a file and from PostgreSQL, and can be restored into either. With --recipient, or the setting backup_recipients, it is encrypted with age: only one of the secret keys can open it. " + notInBackup,
		Args: cli.OneArgument,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			if len(o.Recipients) == 0 {
				o.Recipients = cfg.BackupRecipients
			}
			size, err := database.Backup(cmd.Context(), cfg.Place(), args[0], o)
			if err != nil {
				return err
			}
			sealed := ""
			if n := len(o.Recipients); n > 0 {
				sealed = fmt.Sprintf(", and sealed for %d key(s)", n)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Backup written to %s and checked (%s)%s.\nIt holds the database in %s as it was at one moment. %s\n",
				args[0], wording.FormatSize(size), sealed, cfg.Place(), notInBackup)
			return err
		}),
	}
	command.Flags().BoolVar(&o.Force, "force", false, "replace the file if it is there")
	command.Flags().StringArrayVar(&o.Recipients, "recipient", nil, "seal the backup for this public key of age (age1…); once for each key")
	return command
}

func restoreCommand(load cli.Loader) *cobra.Command {
	identities := ""
	command := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in the place of the database (stop the bot first)",
		Long: "Check a backup and put it in the place of the database, which is kept beside it under another name. " +
			"A database in PostgreSQL is written to a file in the data directory first, and then replaced: where that breaks off, restore again; " +
			"no bot starts before. Stop the bot first. What the backup says is still unanswered is answered at the next start. " +
			"A backup that is sealed wants the file with its secret key (--identity). " + notInBackup,
		Args: cli.OneArgument,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			kept, err := database.Restore(cmd.Context(), cfg.Place(), args[0], identities, database.NewestFormat(app.Migrations(cfg)))
			if err != nil {
				return err
			}
			text := fmt.Sprintf("Restored %s into %s.\n"+
				"What was open when the backup was made is open again: an answer or a result may be told a second time, and a card that was decided since can be decided once more.\n", args[0], cfg.Place())
			if kept != "" {
				text += fmt.Sprintf("The database as it was is kept in %s; delete it when you do not need it.\n", kept)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		}),
	}
	command.Flags().StringVar(&identities, "identity", "", "the file with the secret key of age that opens a sealed backup")
	return command
}

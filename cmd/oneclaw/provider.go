package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/storage"
)

func providerCommand(load cli.Loader) *cobra.Command {
	command := cli.Parent("provider", "Keys of model providers")
	command.AddCommand(&cobra.Command{
		Use:   "key ID",
		Short: "Store the API key of a provider, read from standard input (with the database in a file, stop the bot first)",
		Long: "Store the API key of a provider that was made in a chat. The key is read from standard input, " +
			"so that it stands in no chat, no history of commands and no list of processes. " +
			"An empty line says that the provider wants no key.",
		Args: cli.OneArgument,
		RunE: load.Run(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			log := cli.NewLogger(io.Discard, cfg)
			return app.WithStore(cfg, log, func(s *database.Store) error { return storeKey(cmd, cfg, s, log, args[0]) })
		}),
	})
	return command
}

func storeKey(cmd *cobra.Command, cfg config.Config, store storage.KV, log *slog.Logger, id string) error {
	changing, vault, err := app.OpenSettings(cfg, store, log)
	if err != nil {
		return err
	}
	provider, err := changing.Providers.Get(cmd.Context(), id)
	if err != nil {
		return err
	}
	key, err := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), 16<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the key: %w", err)
	}
	if err := vault.SetKey(cmd.Context(), id, strings.TrimSpace(key)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "The key of %s is stored, encrypted.\n", provider.Name)
	return err
}

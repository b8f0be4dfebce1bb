package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
)

func providerCommand(load cli.Loader) *cobra.Command {
	command := cli.ParentCommand("provider", "Model providers: their keys, and switching them on")
	command.AddCommand(&cobra.Command{
		Use:   "key ID",
		Short: "Store the API key of a provider, read from standard input",
		Long: "Store the API key of a provider that was made in a chat. The key is read from standard input, and a terminal does not show it, " +
			"so that it stands in no chat, no history of commands and no list of processes. " +
			"An empty line says that the provider wants no key. A bot that runs uses it at once.",
		Args: cli.OneArgument,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			in := cmd.InOrStdin()
			if q := newQuestioner(in, cmd.ErrOrStderr()); q.terminal != nil {
				q.printf("Key, which is not shown: ")
				key, err := q.read(cmd.Context(), true)
				q.printf("\n")
				if err != nil {
					return fmt.Errorf("read the key: %w", err)
				}
				in = strings.NewReader(key)
			}
			return app.SendKey(cmd.Context(), cfg, args[0], in, cmd.OutOrStdout())
		}),
	})
	command.AddCommand(&cobra.Command{
		Use:   "on ID",
		Short: "Switch a provider on, such as preset, the one of the settings",
		Long:  "Switch a provider on. The one of the settings is called preset. A bot that runs uses it at once.",
		Args:  cli.OneArgument,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			return app.SwitchOnProvider(cmd.Context(), cfg, args[0], cmd.OutOrStdout())
		}),
	})
	return command
}

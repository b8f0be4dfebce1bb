package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
)

func configCommand(load cli.Loader) *cobra.Command {
	command := &cobra.Command{
		Use:   "config",
		Short: "Print the settings of the file and the environment, with secrets masked",
		Args:  cobra.NoArgs,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, _ []string) error {
			encoder := yaml.NewEncoder(cmd.OutOrStdout())
			encoder.SetIndent(2)
			if err := encoder.Encode(cfg.ForDisplay()); err != nil {
				return fmt.Errorf("print settings: %w", err)
			}
			return encoder.Close()
		}),
	}
	command.AddCommand(&cobra.Command{
		Use:   "reset KEY",
		Short: "Take back a setting that was made in a chat, such as default_model",
		Long:  "Take back a setting that was made in a chat, such as default_model. A bot that runs uses it at once.",
		Args:  cli.OneArgument,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			return app.ResetSetting(cmd.Context(), cfg, args[0], cmd.OutOrStdout())
		}),
	})
	return command
}

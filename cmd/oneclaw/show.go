package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"oneclaw/internal/cli"
	"oneclaw/internal/config"
)

func configCommand(load cli.Loader) *cobra.Command {
	return &cobra.Command{
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
}

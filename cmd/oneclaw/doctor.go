package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/doctor"
)

func doctorCommand(load cli.Loader) *cobra.Command {
	asJSON, live, chosen := false, false, []string(nil)
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Check the settings and everything the bot needs",
		Long: "Check the settings, the data directory, the database, the tokens and what the tools need, and say what to do. " +
			"Nothing is changed, and no message and no paid request is sent, unless --live asks for it: then one message of each kind " +
			"goes to the owner's chat, the model is asked twice, and a table shows what came of it. The exit code is 1 where something fails.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if live {
				return load.WithConfig(func(cmd *cobra.Command, cfg config.Config, _ []string) error { return runLive(cmd, cfg, chosen) })(cmd, nil)
			}
			return examine(cmd.Context(), load, asJSON, cmd.OutOrStdout())
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	command.Flags().BoolVar(&live, "live", false, "send one message of each kind to the owner's chat, and ask the model twice (stop the bot first)")
	command.Flags().StringArrayVar(&chosen, "chat", nil, "with --live: send to this chat, such as telegram:123, instead of the owner's; once for each platform")
	command.MarkFlagsMutuallyExclusive("json", "live")
	return command
}

// examine checks the settings and, if they can be read, everything else.
func examine(ctx context.Context, load cli.Loader, asJSON bool, w io.Writer) error {
	cfg, err := load()
	if err == nil {
		err = cfg.Platforms.Check()
	}
	checks := []doctor.Check{{Name: "settings", Run: func(context.Context) *doctor.Finding {
		if err != nil {
			return doctor.Fail("%v", err)
		}
		return doctor.OK("valid; oneclaw config prints them")
	}}}
	if cfg.DataDir != "" && cfg.LogLevel != nil { // the settings are complete
		checks = append(checks, app.Checks(cfg)...)
	}
	return doctor.Examine(ctx, checks, cfg.Redact.Text, asJSON, w)
}

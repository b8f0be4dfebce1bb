package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
)

func runCommand(load cli.Loader) *cobra.Command {
	command := &cobra.Command{
		Use:   "run",
		Short: "Serve the configured platforms until stopped",
		Args:  cobra.NoArgs,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, _ []string) error {
			if cmd.Flags().Changed(recordFlag) {
				return errors.New("--" + recordFlag + " is gone: the log, /why and traces say what the bot does")
			}
			log := cli.NewLogger(cmd.ErrOrStderr(), cfg)
			if out, ok := cmd.OutOrStdout().(*os.File); ok && term.IsTerminal(int(out.Fd())) {
				cfg.Runtime.Terminal = out
			}
			return app.Run(cmd.Context(), cfg, log, systemdNotifier(log))
		}),
	}
	command.Flags().String(recordFlag, "", "")
	_ = command.Flags().MarkHidden(recordFlag) // it exists
	return command
}

// recordFlag is a flag of earlier programs.
const recordFlag = "record"

// healthCommand asks a running bot whether it is alive. It is the health check of the container image,
// which contains no other program that could do so.
func healthCommand(load cli.Loader) *cobra.Command {
	return &cobra.Command{
		Use:    "health",
		Short:  "Ask the running bot whether it is alive",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
			defer cancel()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.LocalURL()+"/healthz", nil)
			if err != nil {
				return fmt.Errorf("check health: %w", err)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return fmt.Errorf("the bot does not respond: %w", err)
			}
			defer func() { _ = response.Body.Close() }()
			if response.StatusCode != http.StatusOK {
				return fmt.Errorf("the bot's health check returns the status %s", response.Status)
			}
			return nil
		}),
	}
}

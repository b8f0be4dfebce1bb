package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/record"
	"oneclaw/internal/wording"
)

func runCommand(load cli.Loader) *cobra.Command {
	file := ""
	command := &cobra.Command{
		Use:   "run",
		Short: "Serve the configured platforms until stopped",
		Args:  cobra.NoArgs,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, _ []string) error {
			log := cli.NewLogger(cmd.ErrOrStderr(), cfg)
			if out, ok := cmd.OutOrStdout().(*os.File); ok && term.IsTerminal(int(out.Fd())) {
				cfg.Runtime.Terminal = out
			}
			return withRecording(file, cfg, log, func(cfg config.Config) error { return app.Run(cmd.Context(), cfg, log, systemdNotifier(log)) })
		}),
	}
	command.Flags().StringVar(&file, "record", "", "keep what is exchanged with platforms and models in this new file, with secrets masked")
	return command
}

// withRecording calls do, and records the traffic to a file if path is not empty.
func withRecording(path string, cfg config.Config, log *slog.Logger, do func(config.Config) error) error {
	if path == "" {
		return do(cfg)
	}
	file, err := record.Create(path, record.MaxFile, log)
	if err != nil {
		return err
	}
	log.Warn("recording all messages and answers to a file", "file", path, "at_most", wording.FormatSize(record.MaxFile))
	cfg.Taps = &record.Recorder{OnLine: file.Append, Redact: cfg.Redact.Text, Now: cfg.Runtime.Now}
	return errors.Join(do(cfg), file.Close())
}

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

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
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
		RunE: load.Run(func(cmd *cobra.Command, cfg config.Config, _ []string) error {
			log := cli.NewLogger(cmd.ErrOrStderr(), cfg)
			if out, ok := cmd.OutOrStdout().(*os.File); ok && term.IsTerminal(int(out.Fd())) {
				cfg.Outside.Terminal = out
			}
			return recorded(file, cfg, log, func(cfg config.Config) error { return app.Run(cmd.Context(), cfg, log, telling(log)) })
		}),
	}
	command.Flags().StringVar(&file, "record", "", "keep what is exchanged with platforms and models in this new file, with secrets masked")
	return command
}

// recorded runs do with the traffic recorded to a file, if path is not empty.
func recorded(path string, cfg config.Config, log *slog.Logger, do func(config.Config) error) error {
	if path == "" {
		return do(cfg)
	}
	file, err := record.Create(path, record.MaxFile, log)
	if err != nil {
		return err
	}
	log.Warn("what people write and the bot answers is recorded", "file", path, "at_most", wording.Bytes(record.MaxFile))
	cfg.Taps = &record.Recorder{Keep: file.Keep, Redact: cfg.Redact.Text, Now: cfg.Outside.Now}
	return errors.Join(do(cfg), file.Close())
}

// healthCommand asks a running bot whether it is alive: the health check of the container image,
// which contains no other program.
func healthCommand(load cli.Loader) *cobra.Command {
	return &cobra.Command{
		Use:    "health",
		Short:  "Ask the running bot whether it is alive",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: load.Run(func(cmd *cobra.Command, cfg config.Config, _ []string) error {
			host, port, err := net.SplitHostPort(cfg.Listen)
			if err != nil {
				return fmt.Errorf("setting listen: %w", err)
			}
			if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
				host = "127.0.0.1"
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
			defer cancel()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
			if err != nil {
				return fmt.Errorf("ask for health: %w", err)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return fmt.Errorf("the bot does not answer: %w", err)
			}
			defer func() { _ = response.Body.Close() }()
			if response.StatusCode != http.StatusOK {
				return fmt.Errorf("the bot answers %s", response.Status)
			}
			return nil
		}),
	}
}

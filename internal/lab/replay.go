package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	play "oneclaw/internal/lab/replay"
	"oneclaw/internal/record"
)

func replayCommand(load cli.Loader) *cobra.Command {
	return &cobra.Command{
		Use:   "replay FILE",
		Short: "Play a recording of oneclaw run --record, and say where the bot now does something else",
		Long: "Play a recording to a bot with the present settings and an empty data directory: what people wrote comes through the emulators, " +
			"what the model answered from the recording. Tools run, without names of hosts, MCP servers and accounts. The exit code is 1 where the bot does something else.",
		Args: cli.OneArgument,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, args []string) error { return replay(cmd, cfg, args[0]) }),
	}
}

func replay(cmd *cobra.Command, cfg config.Config, path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	lines, err := record.Read(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("replay %s: %w", path, err)
	}
	dir, err := os.MkdirTemp("", "oneclaw-replay-")
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	log := cli.NewLogger(cmd.ErrOrStderr(), cfg)
	cfg.CacheDir, cfg.DataDir = cfg.CachePath(), filepath.Join(dir, "data")
	other, err := play.Replay{Settings: cfg, Bot: func(ctx context.Context, cfg config.Config) error {
		return app.WithBot(ctx, cfg, log, func(b *app.Bot) error { return b.Run(ctx) })
	}}.Play(cmd.Context(), lines)
	if err != nil {
		return fmt.Errorf("replay %s: %w", path, err)
	}
	if len(other) > 0 {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.Join(other, "\n"))
		return errors.Join(err, fmt.Errorf("differences from the recording: %d", len(other)))
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "The bot does what was recorded (%d lines).\n", len(lines))
	return err
}

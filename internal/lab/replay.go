package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"oneclaw/bridge/access"
	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	play "oneclaw/internal/lab/replay"
	"oneclaw/internal/models"
	"oneclaw/internal/record"
	"oneclaw/internal/redact"
	"oneclaw/slack"
	"oneclaw/telegram"
	"oneclaw/toolgroups/core"
	"oneclaw/toolgroups/mcp"
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
	other, err := play.Replay{Redact: cfg.Redact.Text, Now: cfg.Runtime.Now, Bot: func(ctx context.Context, env play.Environment) error {
		return app.WithBot(ctx, replayConfig(cfg, env, dir), log, func(b *app.Bot) error { return b.Run(ctx) })
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

// replayConfig configures a bot that is connected only to the emulators of a replay.
func replayConfig(cfg config.Config, env play.Environment, dir string) config.Config {
	cfg.CacheDir, cfg.DataDir = cfg.CachePath(), filepath.Join(dir, "data")
	cfg.Tools.Files = config.FilesLocal
	cfg.Taps, cfg.Runtime.Now = env.Taps, env.Now
	cfg.Runtime.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("host names are not resolved in a replay")
	}}
	cfg.Telegram = telegram.Settings{Token: redact.Secret(env.TelegramToken), APIURL: env.TelegramURL}
	cfg.Slack = slack.Settings{BotToken: redact.Secret(env.SlackBotToken), AppToken: redact.Secret(env.SlackAppToken), APIURL: env.SlackURL, Channels: cfg.Slack.Channels}
	cfg.Model = models.OwnModel{APIKey: "replayed", BaseURL: env.ModelURL, Name: env.ModelName}
	cfg.Google, cfg.MCP, cfg.PublicURL = config.GoogleConfig{}, mcp.Config{}, ""
	cfg.Tools.Exec, cfg.Tools.AllowPrivate = core.ExecConfig{}, nil
	if access.Access(cfg.Access).Empty() {
		cfg.Access.Admins = []string{"*"}
	}
	return cfg
}

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/lab/demo"
	"oneclaw/internal/settings"
	"oneclaw/slack/manifest"
)

// demoPace is the pause of the demo's offline model between groups of words.
const demoPace = 100 * time.Millisecond

func demoCommand(load cli.Loader) *cobra.Command {
	var address string
	command := &cobra.Command{
		Use:   "demo",
		Short: "Try the bot in a local page: no keys, no accounts",
		Args:  cobra.NoArgs,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, _ []string) error {
			return runDemo(cmd, cfg, address)
		}),
	}
	command.Flags().StringVar(&address, "addr", "127.0.0.1:8788", "loopback address of the page")
	return command
}

func runDemo(cmd *cobra.Command, cfg config.Config, address string) (err error) {
	ctx := cmd.Context()
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || (host != "localhost" && (ip == nil || !ip.IsLoopback())) {
		return fmt.Errorf("--addr %s: the demo listens on loopback only, such as 127.0.0.1:8788", address)
	}
	listener, err := app.Listen(ctx, address, "--addr")
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	dir, err := os.MkdirTemp("", "oneclaw-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	commands := cfg.Tools.Exec.UnsafeExec || cfg.Tools.Exec.Check(ctx) == nil
	log := cli.NewLogger(cmd.ErrOrStderr(), cfg)
	d, err := demo.New(demo.Config{
		Settings: cfg, DataDir: dir, Logger: log, Manifest: manifest.YAML(), Pace: demoPace,
		Bot: func(ctx context.Context, env demo.Environment) error {
			return app.WithBot(ctx, env.Config, log, func(b *app.Bot) error {
				env.Ready(newControls(b, commands))
				return b.Run(ctx)
			}, env.Observe)
		},
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "The demo is at http://%s – stop it with Ctrl-C.\n", listener.Addr())
	if err != nil {
		return err
	}
	return d.Run(ctx, listener)
}

func newControls(b *app.Bot, commands bool) demo.Controls {
	return demo.Controls{
		CanRunCommands: commands,
		Web:            b.Handler(), Routings: config.Routings(),
		Routing: func(ctx context.Context) (string, error) {
			return b.Settings().Values.Get(ctx, settings.SettingRouting)
		},
		SetRouting: func(ctx context.Context, name string) error {
			return b.Settings().Values.Set(ctx, settings.SettingRouting, name)
		},
	}
}

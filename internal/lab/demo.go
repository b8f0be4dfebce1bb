package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/lab/demo"
	"oneclaw/internal/models"
	"oneclaw/internal/redact"
	"oneclaw/internal/settings"
	"oneclaw/slack"
	"oneclaw/slack/manifest"
	"oneclaw/telegram"
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
		DataDir: dir, Logger: log, Model: demoModel(cfg), Manifest: manifest.YAML(), Pace: demoPace,
		Bot: func(ctx context.Context, env demo.Environment) error {
			return app.WithBot(ctx, demoConfig(cfg, env), log, func(b *app.Bot) error {
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

func demoModel(cfg config.Config) demo.Model {
	if cfg.Model.APIKey == "" && cfg.Model.BaseURL == config.Default().Model.BaseURL {
		return demo.Model{}
	}
	return demo.Model{BaseURL: cfg.Model.BaseURL, APIKey: string(cfg.Model.APIKey), Name: cfg.Model.Name}
}

// demoConfig configures a bot connected to the emulators, for the one user of the page.
func demoConfig(cfg config.Config, env demo.Environment) config.Config {
	demo := config.Default()
	demo.LogLevel, demo.Redact = cfg.LogLevel, cfg.Redact
	if demo.CacheDir = cfg.CacheDir; demo.CacheDir == "" {
		// The data of a demo is deleted. Keep the cache, which takes time to compile.
		if dir, err := os.UserCacheDir(); err == nil {
			demo.CacheDir = filepath.Join(dir, "oneclaw")
		}
	}
	demo.DataDir, demo.Timezone, demo.Log, demo.Tools = env.DataDir, cfg.Timezone, cfg.Log, cfg.Tools
	demo.Tools.Files = config.FilesLocal
	demo.Telegram = telegram.Settings{Token: redact.Secret(env.TelegramToken), APIURL: env.TelegramURL}
	demo.Slack = slack.Settings{BotToken: redact.Secret(env.SlackBotToken), AppToken: redact.Secret(env.SlackAppToken), APIURL: env.SlackURL}
	demo.Model = models.OwnModel{APIKey: redact.Secret(env.Model.APIKey), BaseURL: env.Model.BaseURL, Name: env.Model.Name}
	demo.Google = config.GoogleConfig{ClientID: env.GoogleID, ClientSecret: redact.Secret(env.GoogleSecret), APIURL: env.GoogleURL}
	if demo.Voice = cfg.Voice; env.VoiceModel != "" {
		demo.Voice.BaseURL, demo.Voice.Model = "", env.VoiceModel
	}
	if demo.Images = cfg.Images; env.ImageModel != "" {
		demo.Images.BaseURL, demo.Images.Model = "", env.ImageModel
	}
	if demo.Speech = cfg.Speech; env.SpeechModel != "" {
		demo.Speech.BaseURL, demo.Speech.Model = "", env.SpeechModel
	}
	demo.PublicURL = env.PublicURL
	demo.Access = config.AccessConfig{Allow: []string{"*"}}
	return demo
}

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"oneclaw/internal/app"
	"oneclaw/internal/emulator/anthropic"
	"oneclaw/internal/emulator/google"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/websearch"
	"oneclaw/internal/lab/demo"
	"oneclaw/slack/manifest"
)

func emulatorsCommand() *cobra.Command {
	port, profile := 0, ""
	command := &cobra.Command{
		Use:   "emulators",
		Short: "Run all emulated services, and print the settings that point a bot at them",
		Long: "Run the emulators of Telegram, Slack, OpenAI, Anthropic, Google and the services of web search on ports that follow " +
			"one another, until stopped, and print the settings of a bot that uses them. In Telegram and Slack there is one person; " +
			"what they say is posted to /emulator/say, what the bot wrote is at /emulator/messages.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runEmulators(cmd.Context(), cmd.OutOrStdout(), port, profile)
		},
	}
	command.Flags().IntVar(&port, "port", 8790, "the first port on 127.0.0.1; 0 takes any free ones")
	command.Flags().StringVar(&profile, "profile", profiles()[0], "the provider whose manners the model has: "+strings.Join(profiles(), ", "))
	return command
}

// profiles returns the names of the model's provider profiles.
func profiles() []string {
	var names []string
	for _, p := range openai.Profiles() {
		names = append(names, p.Name)
	}
	return names
}

// The OAuth client of the emulated Google, and the key of the emulated search services.
const (
	googleID     = "lab-client"
	googleSecret = "lab-client-secret"
	searchKey    = "lab-search-key"
)

func runEmulators(ctx context.Context, w io.Writer, port int, profile string) (err error) { //nolint:funlen // One service after another, in the order in which they need each other.
	served, ok := openai.ProfileByName(profile)
	if !ok {
		return fmt.Errorf("--profile: there is no provider profile %q; there are %s", profile, strings.Join(profiles(), ", "))
	}
	var closing []func() error
	defer func() {
		for _, end := range closing {
			err = errors.Join(err, end())
		}
	}()
	next := func() string {
		if port == 0 {
			return "127.0.0.1:0"
		}
		port++
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(port-1))
	}
	type emulator interface {
		Start(ctx context.Context, addr ...string) (string, error)
		Close() error
	}
	start := func(e emulator) (string, error) {
		closing = append(closing, e.Close)
		return e.Start(ctx, next())
	}

	p, err := demo.NewPlatforms(manifest.YAML(), true)
	if err != nil {
		return err
	}
	telegramURL, err := start(p.Telegram)
	if err != nil {
		return err
	}
	slackURL, err := start(p.Slack)
	if err != nil {
		return err
	}
	model, err := openai.New(openai.Config{Profile: served, MaxTools: 1000})
	if err != nil {
		return err
	}
	openaiURL, err := start(model)
	if err != nil {
		return err
	}
	claude, err := anthropic.New(anthropic.Config{})
	if err != nil {
		return err
	}
	anthropicURL, err := start(claude)
	if err != nil {
		return err
	}
	accounts, err := google.New(google.Config{ClientID: googleID, ClientSecret: googleSecret})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	defer func() { err = errors.Join(err, group.Wait()) }()
	ctx, cancel := context.WithCancel(ctx) // ends what is served already if the next cannot be
	defer cancel()
	serve := func(handler http.Handler) (string, error) {
		l, err := app.Listen(ctx, next(), "--port")
		if err != nil {
			return "", err
		}
		group.Go(func() error { return app.Serve(ctx, l, handler) })
		return "http://" + l.Addr().String(), nil
	}
	googleURL, err := serve(accounts)
	if err != nil {
		return err
	}
	searchURL, err := serve(websearch.New(websearch.Config{Key: searchKey}))
	if err != nil {
		return err
	}
	telegramSays := fmt.Sprintf(`curl -H 'Content-Type: application/json' -d '{"chat":%d,"user":%[1]d,"text":"hello"}' %s/emulator/say`, p.TelegramUser, telegramURL)
	slackSays := fmt.Sprintf(`curl -H 'Content-Type: application/json' -d '{"channel":%q,"user":%q,"text":"hello"}' %s/emulator/say`, p.SlackDM, p.SlackUser, strings.TrimSuffix(slackURL, "/api/"))
	for _, line := range [][]any{
		{"# The settings of a bot that uses these services:"},
		{"export TELEGRAM_BOT_TOKEN=" + p.Telegram.Token(), "TELEGRAM_API_URL=" + telegramURL},
		{"export SLACK_BOT_TOKEN=" + p.Slack.BotToken(), "SLACK_APP_TOKEN=" + p.Slack.AppToken(), "SLACK_API_URL=" + slackURL},
		{"export OPENAI_API_KEY=any", "OPENAI_BASE_URL=" + openaiURL, "OPENAI_MODEL=" + served.Model, "ONECLAW_IMAGES_MODEL=" + openai.ImageModel, "ONECLAW_SPEECH_MODEL=" + openai.SpeechModel},
		{"export GOOGLE_CLIENT_ID=" + googleID, "GOOGLE_CLIENT_SECRET=" + googleSecret, "GOOGLE_API_URL=" + googleURL},
		{fmt.Sprintf("export ONECLAW_ALLOW=telegram:%d,slack:%s", p.TelegramUser, p.SlackUser)},
		{"# Claude instead of that model:"},
		{"#   export OPENAI_API_KEY=any", "OPENAI_BASE_URL=" + anthropicURL, "OPENAI_MODEL=" + anthropic.DefaultModel},
		{"# The services of web search, with the key " + searchKey + ":", searchURL},
		{"# Then start it: oneclaw run"},
		{"# What a person says in Telegram, and in Slack, and what is in the chat then:"},
		{"#  ", telegramSays},
		{fmt.Sprintf("#   curl '%s/emulator/messages?chat=%d'", telegramURL, p.TelegramUser)},
		{"#  ", slackSays},
		{fmt.Sprintf("#   curl '%s/emulator/messages?channel=%s'", strings.TrimSuffix(slackURL, "/api/"), p.SlackDM)},
	} {
		if _, err := fmt.Fprintln(w, line...); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

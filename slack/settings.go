package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/internal/doctor"
	"oneclaw/internal/redact"
	"oneclaw/internal/retry"
	"oneclaw/storage"
)

// Settings connect a Slack app. The rest of the program knows nothing else about Slack.
type Settings struct {
	// BotToken is the app's bot token, xoxb-…. It is required.
	BotToken redact.Secret `yaml:"bot_token" env:"SLACK_BOT_TOKEN"`
	// AppToken is the app-level token, xapp-…, for Socket Mode.
	AppToken redact.Secret `yaml:"app_token" env:"SLACK_APP_TOKEN"`
	// SigningSecret proves that requests come from Slack. If it is set, events come to
	// [platform.Events] and no socket is opened.
	SigningSecret redact.Secret `yaml:"signing_secret" env:"SLACK_SIGNING_SECRET"`
	// APIURL is the base address of the Web API. Empty means [defaultAPIURL].
	APIURL string `yaml:"api_url" env:"SLACK_API_URL"`
	// Channels are the ids of the channels that the bot works in, such as C0123ABCD. None means every
	// channel it is invited to; direct messages always work.
	Channels []string `yaml:"channels" env:"SLACK_CHANNELS"`

	tap      retry.Tap
	isLeader func() bool
}

// Share is called if several processes serve the bot with one store. leads returns true in one of
// them, which fetches missed messages for all. Each opens a socket of its own, of which Slack allows
// ten per app.
func (s *Settings) Share(leads func() bool) { s.isLeader = leads }

// Tap sets a tap on the traffic with Slack.
func (s *Settings) Tap(tap retry.Tap) { s.tap = tap }

// Default sets the defaults.
func (s *Settings) Default() { s.APIURL = defaultAPIURL }

// Missing returns what to set so that the bot serves Slack; empty if the bot token is set.
func (s *Settings) Missing() string {
	if s.BotToken != "" {
		return ""
	}
	return "SLACK_BOT_TOKEN and SLACK_APP_TOKEN to those of your Slack app"
}

// Validate rejects incomplete settings.
func (s *Settings) Validate() error {
	switch {
	case s.BotToken == "" && s.AppToken+s.SigningSecret != "":
		return errors.New("setting slack.bot_token (SLACK_BOT_TOKEN) is missing beside the other Slack settings")
	case s.BotToken != "" && s.AppToken+s.SigningSecret == "":
		return errors.New("setting slack.app_token (SLACK_APP_TOKEN) is missing: Slack needs it for Socket Mode, or slack.signing_secret (SLACK_SIGNING_SECRET) for events over HTTP")
	}
	return nil
}

// Open returns the platform. It keeps its state in kv; see [config].
func (s *Settings) Open(kv storage.KV, log *slog.Logger) (chats.Platform, error) {
	return newPlatform(config{Settings: *s, kv: kv, logger: log})
}

// Doctor asks Slack for the identity of the bot, and compares its scopes with the manifest.
func (s *Settings) Doctor(ctx context.Context) *doctor.Finding {
	app, err := check(ctx, config{Settings: *s})
	if err != nil {
		return doctor.FailError(err)
	}
	var lacks []string
	for _, lack := range app.missingScopes {
		if lack.scope != agentScope {
			lacks = append(lacks, fmt.Sprintf("%s (%s)", lack.scope, lack.consequence))
		}
	}
	switch {
	case len(lacks) > 0:
		return doctor.Fail("@%s in %s lacks %s: add them under OAuth & Permissions of the app, then install it again", app.name, app.team, strings.Join(lacks, ", "))
	case len(app.missingScopes) > 0:
		return doctor.Warn("@%s in %s has no agent view: %s. Switch it on under Agent in the settings of the app, then install it again", app.name, app.team, consequences[agentScope])
	}
	return doctor.OK("@%s in %s, with all scopes of the manifest", app.name, app.team)
}

// Questions returns questions for the tokens of an app that uses Socket Mode.
func (s *Settings) Questions() []doctor.Question {
	return []doctor.Question{{
		Explanation: "Make the Slack app from its manifest (oneclaw slack manifest --link prints a link that fills it in), install it,\n" +
			"and copy the Bot User OAuth Token from OAuth & Permissions.",
		Prompt: "Slack bot token (xoxb-…)", Key: "bot_token",
		Check: func(ctx context.Context, token string) (string, error) {
			alone := *s
			alone.BotToken, alone.AppToken, alone.SigningSecret = redact.Secret(token), "", "not needed to ask who the bot is"
			app, err := check(ctx, config{Settings: alone})
			switch {
			case !strings.HasPrefix(token, "xoxb-"):
				err = errors.New("that is not a bot token, which begins with xoxb-")
			case isTokenError(err):
				err = errors.New("Slack does not accept this token: copy all of it, and install the app again if its scopes have changed") //nolint:staticcheck // It begins with a name.
			case err == nil:
				s.BotToken = alone.BotToken
			}
			return "This is @" + app.name + " in " + app.team + ".", err
		},
	}, {
		Explanation: "Under Basic Information, App-Level Tokens, make a token with the scope connections:write.",
		Prompt:      "Slack app token (xapp-…)", Key: "app_token",
		Check: func(ctx context.Context, token string) (string, error) {
			s.AppToken = redact.Secret(token)
			_, err := check(ctx, config{Settings: *s})
			switch {
			case !strings.HasPrefix(token, "xapp-"):
				err = errors.New("that is not an app-level token, which begins with xapp-")
			case isTokenError(err), hasErrorCode(err, "missing_scope"):
				err = errors.New("Slack opens no connection for this token: copy all of it, or make one with the scope connections:write, and see that Socket Mode is on") //nolint:staticcheck // It begins with a name.
			}
			return "Slack opens a connection for it.", err
		},
	}}
}

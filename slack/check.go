package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"oneclaw/slack/manifest"
)

// App is what Slack says about the tokens.
type App struct {
	// Name is the name of the bot, Team that of its workspace.
	Name, Team string
	// Missing are the scopes of the manifest that the bot token does not have. It is empty
	// where Slack does not say.
	Missing []string
}

// Check asks Slack once who the bot is and what it may do, and in Socket Mode whether the
// app-level token opens a connection. The text of an error says what to do.
func Check(ctx context.Context, cfg Config) (App, error) {
	p, err := New(cfg)
	if err != nil {
		return App{}, err
	}
	defer p.api.Close()
	who, err := p.api.whoAmI(ctx)
	if err != nil {
		return App{}, err
	}
	app := App{Name: who.User, Team: who.Team, Missing: missingScopes(who.Header.Get("X-Oauth-Scopes"))}
	if p.signatures.secret != "" {
		return app, nil
	}
	if _, err = p.api.socketAddress(ctx); err != nil {
		return app, fmt.Errorf("slack: no socket is opened: check SLACK_APP_TOKEN (xapp-…, with the scope connections:write) and Socket Mode of the app: %w", err)
	}
	return app, nil
}

// whoAmI asks Slack who the bot is. The text of an error says what to do.
func (c *client) whoAmI(ctx context.Context) (*slack.AuthTestResponse, error) {
	who, err := ask(ctx, c, "auth.test", func(ctx context.Context, api *slack.Client) (*slack.AuthTestResponse, error) {
		return api.AuthTestContext(ctx)
	})
	switch {
	case wrongToken(err):
		return nil, fmt.Errorf("slack: the bot token is refused: check SLACK_BOT_TOKEN (xoxb-…): %w", err)
	case err != nil:
		return nil, fmt.Errorf("slack cannot be reached: check SLACK_API_URL and the network: %w", err)
	case who.UserID == "" || who.TeamID == "":
		return nil, errors.New("slack: auth.test: the answer names no bot: check SLACK_API_URL")
	}
	return who, nil
}

// missingScopes compares the scopes of an answer with the manifest's; a proxy may drop them.
func missingScopes(header string) []string {
	if header == "" {
		return nil
	}
	have := strings.FieldsFunc(header, func(r rune) bool { return r == ',' || r == ' ' })
	return slices.DeleteFunc(manifest.Scopes(), func(scope string) bool { return slices.Contains(have, scope) })
}

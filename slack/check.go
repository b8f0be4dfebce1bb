package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"oneclaw/slack/manifest"
)

// app describes the app that the tokens belong to.
type app struct {
	// name is the name of the bot, team the name of its workspace.
	name, team string
	// missingScopes are the scopes in the manifest that the bot token lacks. It is empty if Slack does
	// not report the scopes.
	missingScopes []missingScope
	// agentView is set if direct messages with the app are threads.
	agentView bool
}

// missingScope is a scope that the bot token lacks, and what does not work without it.
type missingScope struct{ scope, consequence string }

// agentScope is the scope of apps with the agent view. Slack gives it to no other apps, and no call
// reports the feature itself.
const agentScope = "assistant:write"

// consequences describes what does not work without a scope.
var consequences = map[string]string{
	"app_mentions:read": "mentions in channels are not heard",
	agentScope:          "direct messages are no threads, and answers do not stream",
	"channels:history":  "what is said in public channels is not heard",
	"channels:read":     "what is said in public channels while the bot is away stays unanswered",
	"chat:write":        "nothing is answered",
	"commands":          "/oneclaw does nothing",
	"files:read":        "files that people send are not read",
	"files:write":       "files are not sent",
	"groups:history":    "what is said in private channels is not heard",
	"groups:read":       "what is said in private channels while the bot is away stays unanswered",
	"im:history":        "direct messages are not heard",
	"im:read":           "direct messages that come while the bot is away stay unanswered",
	"mpim:history":      "messages of group chats are not heard",
	"mpim:read":         "messages of group chats that come while the bot is away stay unanswered",
	"reactions:read":    "👍 and 👎 on questions and answers are not seen",
	"reactions:write":   "messages that wait bear no 👀",
	"usergroups:read":   "groups of people that are mentioned have no names",
	"users:read":        "people have no names, and nobody counts as an administrator",
}

// check asks Slack for the identity and scopes of the bot, and in Socket Mode checks whether the
// app-level token opens a connection. The text of an error tells the operator what to do.
func check(ctx context.Context, cfg config) (app, error) {
	p, err := newPlatform(cfg)
	if err != nil {
		return app{}, err
	}
	defer p.api.Close()
	who, err := p.api.whoAmI(ctx)
	if err != nil {
		return app{}, err
	}
	app := app{name: who.User, team: who.Team}
	app.missingScopes, app.agentView = readScopes(who.header)
	if p.verifier.enabled() {
		return app, nil
	}
	if _, err = p.api.socketAddress(ctx); err != nil {
		return app, fmt.Errorf("slack: no socket is opened: check SLACK_APP_TOKEN (xapp-…, with the scope connections:write) and Socket Mode of the app: %w", err)
	}
	return app, nil
}

// account is the answer of auth.test.
type account struct {
	UserID       string `json:"user_id"`
	User         string `json:"user"`
	BotID        string `json:"bot_id"`
	TeamID       string `json:"team_id"`
	Team         string `json:"team"`
	EnterpriseID string `json:"enterprise_id"`
	OrgInstall   bool   `json:"is_enterprise_install"`

	header http.Header
}

// errOrgInstall is returned for an app that is installed for all workspaces of an organization. Its events and
// its people come from workspaces that the token does not name.
var errOrgInstall = errors.New("slack: the app is installed for a whole organization (Enterprise Grid), which does not work: " +
	"install it in one workspace instead, and use the bot token of that installation")

// whoAmI asks Slack for the identity of the bot. The text of an error tells the operator what to do.
func (c *client) whoAmI(ctx context.Context) (account, error) {
	var who account
	header, err := c.query(ctx, "auth.test", url.Values{}, &who)
	switch {
	case isTokenError(err):
		return who, fmt.Errorf("slack: the bot token is refused: check SLACK_BOT_TOKEN (xoxb-…): %w", err)
	case err != nil:
		return who, fmt.Errorf("slack cannot be reached: check SLACK_API_URL and the network: %w", err)
	case who.UserID == "" || who.TeamID == "":
		return who, errors.New("slack: auth.test: the answer names no bot: check SLACK_API_URL")
	case who.OrgInstall || who.TeamID == who.EnterpriseID || strings.HasPrefix(who.TeamID, "E"):
		return who, errOrgInstall
	}
	who.header = header
	return who, nil
}

// scopesHeader has the scopes of the token in a response.
const scopesHeader = "X-Oauth-Scopes"

// readScopes compares the scopes in a response's header with those in the manifest. A proxy may drop
// the header.
func readScopes(header http.Header) (lacks []missingScope, agentView bool) {
	list := header.Get(scopesHeader)
	if list == "" {
		return nil, false
	}
	have := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	for _, scope := range manifest.Scopes() {
		if !slices.Contains(have, scope) {
			lacks = append(lacks, missingScope{scope, consequences[scope]})
		}
	}
	return lacks, slices.Contains(have, agentScope)
}

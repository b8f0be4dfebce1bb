package slack

import (
	"slices"
	"strings"
	"sync"

	"oneclaw/internal/emulator/slack/manifest"
)

// messageEvents are the events for messages by the kind of channel
// (docs.slack.dev/reference/events/message).
var messageEvents = map[string]string{public: "message.channels", Private: "message.groups", DM: "message.im", groupDM: "message.mpim"}

// CheckManifest returns the errors for which the service would refuse a manifest, in YAML or JSON.
func CheckManifest(data []byte) error {
	_, err := manifest.Read(data)
	return err
}

// EventScope returns the scope that an event requires, if any.
func EventScope(event string) (scope string, known bool) { return manifest.EventScope(event) }

// MethodScopes returns the scopes that a method requires, one of each list. There is a list for each
// kind of channel if they differ. known is false for an unknown method.
func MethodScopes(name string) (needs [][]string, known bool) {
	m, known := methods()[name]
	switch {
	case !known || m.appToken:
	case m.scopeKind != "":
		for _, kind := range []string{public, Private, DM, groupDM} {
			needs = append(needs, []string{kindScope(kind, m.scopeKind)})
		}
	case len(m.scopes) > 0:
		needs = [][]string{m.scopes}
	}
	return needs, known
}

// App is the installed app: its scopes and events.
type App struct {
	mu *sync.Mutex

	// Guarded by mu.
	scopes    []string // scopes of the bot token
	events    []string // subscribed events; nil for all
	revoked   bool
	noHomeTab bool // it has no Home tab
}

// SetScopes changes the scopes of the bot token, as reinstalling the app does.
func (a *App) SetScopes(scopes ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scopes = slices.Clone(scopes)
}

// Revoke makes both tokens invalid, as removing the app does.
func (a *App) Revoke() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revoked = true
}

// Install configures the app from a manifest, as creating it from the manifest and installing it
// does. The app gets the manifest's scopes, and only its events.
func (a *App) Install(data []byte) error {
	m, err := manifest.Read(data)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scopes, a.noHomeTab = slices.Clone(m.OAuthConfig.Scopes.Bot), !m.Features.AppHome.HomeTabEnabled
	a.events = append([]string{}, m.Settings.EventSubscriptions.BotEvents...)
	return nil
}

// isSubscribed reports whether the app gets events of a kind. Without a manifest it gets all events.
func (a *App) isSubscribed(event string) bool {
	return a.events == nil || slices.Contains(a.events, event)
}

func (a *App) hasScope(scope string) bool {
	return slices.Contains(a.scopes, scope)
}

// seesMessages reports whether the app gets the messages of a channel.
func (a *App) seesMessages(c *channel) bool {
	return a.hasScope(kindScope(c.kind, "history")) && a.isSubscribed(messageEvents[c.kind])
}

func (a *App) missingScope(scope string) *refusal {
	return &refusal{code: "missing_scope", needed: scope, provided: strings.Join(a.scopes, ",")}
}

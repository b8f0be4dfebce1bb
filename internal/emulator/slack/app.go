package slack

import (
	"slices"
	"strings"
	"sync"

	"oneclaw/internal/emulator/slack/manifest"
)

// messageEvents are the events of messages by kind of channel
// (docs.slack.dev/reference/events/message).
var messageEvents = map[string]string{Public: "message.channels", Private: "message.groups", DM: "message.im", GroupDM: "message.mpim"}

// CheckManifest returns what the service would refuse in a manifest in YAML or JSON.
func CheckManifest(data []byte) error {
	_, err := manifest.Read(data)
	return err
}

// EventScope returns the scope that an event requires, if any.
func EventScope(event string) (scope string, known bool) { return manifest.EventScope(event) }

// MethodScopes returns the scopes that a method requires: one of each list, with a list per kind
// of channel if they differ. known is false for an unknown method.
func MethodScopes(name string) (needs [][]string, known bool) {
	m, known := methods()[name]
	switch {
	case !known || m.app:
	case m.kind != "":
		for _, kind := range []string{Public, Private, DM, GroupDM} {
			needs = append(needs, []string{kindScope(kind, m.kind)})
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
	scopes   []string // of the bot token
	events   []string // subscribed events; nil for all
	revoked  bool
	homeless bool // it has no Home tab
}

// SetScopes changes the scopes of the bot token, like reinstalling the app.
func (a *App) SetScopes(scopes ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scopes = slices.Clone(scopes)
}

// Revoke makes both tokens invalid, like removing the app.
func (a *App) Revoke() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revoked = true
}

// Install configures the app from a manifest, like creating it from the manifest and installing
// it: with its scopes, and only its events.
func (a *App) Install(data []byte) error {
	m, err := manifest.Read(data)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scopes, a.homeless = slices.Clone(m.OAuth.Scopes.Bot), !m.Features.Home.Enabled
	a.events = append([]string{}, m.Settings.Events.List...)
	return nil
}

// subscribed reports whether the app gets events of a kind. Without a manifest it gets all.
func (a *App) subscribed(event string) bool {
	return a.events == nil || slices.Contains(a.events, event)
}

func (a *App) hasScope(scope string) bool {
	return slices.Contains(a.scopes, scope)
}

// hears reports whether the app gets the messages of a channel.
func (a *App) hears(c *channel) bool {
	return a.hasScope(kindScope(c.kind, "history")) && a.subscribed(messageEvents[c.kind])
}

func (a *App) missing(scope string) *refusal {
	return &refusal{code: "missing_scope", needed: scope, provided: strings.Join(a.scopes, ",")}
}

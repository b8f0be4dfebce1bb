package slack

import (
	"slices"
	"strings"
	"sync"

	"oneclaw/internal/emulator/slack/manifest"
)

// messageEvents are the events of messages, by the kind of channel
// (docs.slack.dev/reference/events/message).
var messageEvents = map[string]string{Public: "message.channels", Private: "message.groups", DM: "message.im", GroupDM: "message.mpim"}

// CheckManifest returns what the service would refuse of a manifest in YAML or JSON.
func CheckManifest(data []byte) error {
	_, err := manifest.Read(data)
	return err
}

// EventScope returns the scope that an event takes, if any.
func EventScope(event string) (scope string, known bool) { return manifest.EventScope(event) }

// MethodScopes returns what calling a method takes: one scope of each list, with a list
// for each kind of channel where they differ. Known is false for what is no method.
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

// App is the installed app: what it may do and what it hears of.
type App struct {
	mu *sync.Mutex

	// Guarded by mu.
	scopes   []string // of the bot token
	events   []string // those subscribed to; nil for all
	revoked  bool
	homeless bool // it has no Home tab
}

// SetScopes changes the scopes of the bot token, as installing the app again does.
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

// Install makes the app the one that a manifest describes, as creating it from the
// manifest and installing it do: with its scopes, and with no events but its own.
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

// subscribed says whether the app gets events of a kind. One that no manifest describes
// gets all.
func (a *App) subscribed(event string) bool {
	return a.events == nil || slices.Contains(a.events, event)
}

func (a *App) hasScope(scope string) bool {
	return slices.Contains(a.scopes, scope)
}

// hears says whether the app gets the messages of a channel.
func (a *App) hears(c *channel) bool {
	return a.hasScope(kindScope(c.kind, "history")) && a.subscribed(messageEvents[c.kind])
}

func (a *App) missing(scope string) *refusal {
	return &refusal{code: "missing_scope", needed: scope, provided: strings.Join(a.scopes, ",")}
}

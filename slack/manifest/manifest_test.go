package manifest

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"go.yaml.in/yaml/v3"
)

func TestManifest(t *testing.T) {
	m := made(t, YAML())
	if !m.Settings.SocketModeEnabled || !m.Settings.Interactivity.IsEnabled || m.Settings.Interactivity.RequestUrl != "" {
		t.Errorf("settings %+v", m.Settings)
	}
	scopes := m.OAuthConfig.Scopes.Bot
	for _, scope := range []string{"chat:write", "app_mentions:read", "assistant:write", "commands", "files:read", "users:read", "im:history", "channels:history", "groups:history", "mpim:history", "im:read", "channels:read", "groups:read", "mpim:read"} {
		if !slices.Contains(scopes, scope) {
			t.Errorf("no scope %s in %v", scope, scopes)
		}
	}
	if !slices.Equal(scopes, Scopes()) {
		t.Errorf("got %v", Scopes())
	}
	for _, event := range []string{"app_mention", "message.im", "message.channels", "message.groups", "message.mpim"} {
		if !slices.Contains(m.Settings.EventSubscriptions.BotEvents, event) {
			t.Errorf("no event %s", event)
		}
	}
	if c := m.Features.SlashCommands; len(c) != 1 || c[0].Command != "/oneclaw" {
		t.Errorf("commands %+v", c)
	}
	var again any
	if err := yaml.Unmarshal(YAML(), &again); err != nil {
		t.Error(err)
	}
}

// made is the app that a link makes of a manifest.
func made(t *testing.T, manifest []byte) slack.Manifest {
	t.Helper()
	u, err := url.Parse(Link(manifest))
	if err != nil {
		t.Fatal(err)
	}
	if u.Host != "api.slack.com" || u.Path != "/apps" || u.Query().Get("new_app") != "1" {
		t.Errorf("got %s", u)
	}
	// The library's type knows what Slack takes.
	var m slack.Manifest
	dec := json.NewDecoder(strings.NewReader(u.Query().Get("manifest_json")))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestHTTPManifest(t *testing.T) {
	data, err := HTTP("https://bot.example.com/a/")
	if err != nil {
		t.Fatal(err)
	}
	got, want := made(t, data), made(t, YAML())
	want.Settings.SocketModeEnabled = false
	want.Settings.EventSubscriptions.RequestUrl = "https://bot.example.com/a/slack/events"
	want.Settings.Interactivity.RequestUrl = "https://bot.example.com/a/slack/interactive"
	want.Features.SlashCommands[0].Url = "https://bot.example.com/a/slack/commands"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	for _, public := range []string{"", "bot.example.com", "http://bot.example.com", "https://", "https://u:p@bot.example.com", "https://bot.example.com?x=1", "%"} {
		if _, err := HTTP(public); err == nil {
			t.Errorf("%q is taken for an address", public)
		}
	}
}

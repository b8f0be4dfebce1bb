// Package manifest holds the manifest of the Slack app.
package manifest

import (
	_ "embed" // embeds the manifest
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed manifest.yaml
var manifest []byte

// YAML returns the manifest in YAML.
func YAML() []byte { return slices.Clone(manifest) }

// HTTP returns the manifest of an app that posts its events to a public address.
func HTTP(public string) ([]byte, error) {
	u, err := url.Parse(strings.TrimRight(public, "/"))
	if err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("slack: %q is no public address: want one such as https://bot.example.com", public)
	}
	var m map[string]any
	if err := yaml.Unmarshal(manifest, &m); err != nil {
		return nil, fmt.Errorf("slack: read manifest: %w", err)
	}
	at := func(path string) string { return u.JoinPath("slack", path).String() }
	settings, features := section(m, "settings"), section(m, "features")
	settings["socket_mode_enabled"] = false
	section(settings, "event_subscriptions")["request_url"] = at("events")
	section(settings, "interactivity")["request_url"] = at("interactive")
	commands, _ := features["slash_commands"].([]any)
	for _, command := range commands {
		if c, ok := command.(map[string]any); ok {
			c["url"] = at("commands")
		}
	}
	data, err := yaml.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("slack: write manifest: %w", err)
	}
	return data, nil
}

// section returns a part of a manifest. It creates the part if it does not exist.
func section(m map[string]any, name string) map[string]any {
	part, ok := m[name].(map[string]any)
	if !ok {
		part = map[string]any{}
		m[name] = part
	}
	return part
}

// Link returns the address of the Slack page that creates an app from a manifest.
func Link(manifest []byte) string {
	const empty = "https://api.slack.com/apps?new_app=1" // the user pastes the manifest
	var m map[string]any
	if err := yaml.Unmarshal(manifest, &m); err != nil {
		return empty
	}
	data, err := json.Marshal(m)
	if err != nil {
		return empty
	}
	return empty + "&manifest_json=" + url.QueryEscape(string(data))
}

// Scopes returns the scopes of the bot token in the manifest.
func Scopes() []string {
	var m struct {
		OAuth struct {
			Scopes struct {
				Bot []string `yaml:"bot"`
			} `yaml:"scopes"`
		} `yaml:"oauth_config"`
	}
	if err := yaml.Unmarshal(manifest, &m); err != nil {
		return nil
	}
	return m.OAuth.Scopes.Bot
}

// Package manifest is what a Slack app is made from.
package manifest

import (
	_ "embed" // the manifest is part of the program
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed manifest.yaml
var manifest []byte

// YAML returns the manifest that the app is made from, in YAML.
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

// section is a part of a manifest. One that is not there is made.
func section(m map[string]any, name string) map[string]any {
	part, ok := m[name].(map[string]any)
	if !ok {
		part = map[string]any{}
		m[name] = part
	}
	return part
}

// Link returns the page of Slack on which an app with a manifest is made.
func Link(manifest []byte) string {
	const empty = "https://api.slack.com/apps?new_app=1" // where the manifest is pasted
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

// Scopes are the scopes of the bot token that the manifest asks for.
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

package slack

import (
	_ "embed" // the manifest is part of the program
	"encoding/json"
	"net/url"
	"slices"

	"go.yaml.in/yaml/v3"
)

//go:embed manifest.yaml
var manifest []byte

// Manifest returns the manifest that the app is made from, in YAML.
func Manifest() []byte { return slices.Clone(manifest) }

// CreationLink returns the page of Slack on which an app with this manifest is made.
func CreationLink() string {
	var m map[string]any
	if err := yaml.Unmarshal(manifest, &m); err != nil {
		return "https://api.slack.com/apps?new_app=1" // a test reads the manifest
	}
	data, err := json.Marshal(m)
	if err != nil {
		return "https://api.slack.com/apps?new_app=1"
	}
	return "https://api.slack.com/apps?new_app=1&manifest_json=" + url.QueryEscape(string(data))
}

// manifestScopes are the scopes of the bot token that the manifest asks for.
func manifestScopes() []string {
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

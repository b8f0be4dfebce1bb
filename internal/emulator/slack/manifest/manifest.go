// Package manifest reads Slack app manifests, and refuses the manifests that Slack refuses.
package manifest

import (
	_ "embed" // the schema is embedded
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

//go:embed manifest.schema.json
var schemaJSON []byte

// AgentScope is the scope of apps with the agent view. Slack adds the scope to the token when the
// feature is switched on (docs.slack.dev/ai/developing-agents), and refuses the scope otherwise
// (vellum-ai/vellum-assistant PR 27248, openclaw/openclaw PR 67650).
const AgentScope = "assistant:write"

// eventScopes has the events that an app may subscribe to, each with the scope that it requires, if any
// (docs.slack.dev/reference/events/<name>). Assumed: the events of the agent view require its scope.
var eventScopes = map[string]string{
	"agent_session_stopped":            AgentScope,
	"app_context_changed":              AgentScope,
	"app_home_opened":                  "",
	"app_mention":                      "app_mentions:read",
	"assistant_thread_context_changed": AgentScope,
	"assistant_thread_started":         AgentScope,
	"member_joined_channel":            "channels:read",
	"message.channels":                 "channels:history",
	"message.groups":                   "groups:history",
	"message.im":                       "im:history",
	"message.mpim":                     "mpim:history",
	"reaction_added":                   "reactions:read",
	"reaction_removed":                 "reactions:read",
}

// Manifest is the part of a manifest that the emulator uses.
type Manifest struct {
	Features struct {
		AgentView *struct{} `json:"agent_view"`
		AppHome   struct {
			HomeTabEnabled bool `json:"home_tab_enabled"`
		} `json:"app_home"`
		AssistantView *struct{}      `json:"assistant_view"`
		BotUser       *struct{}      `json:"bot_user"`
		SlashCommands []slashCommand `json:"slash_commands"`
	} `json:"features"`
	OAuthConfig struct {
		Scopes struct {
			Bot []string `json:"bot"`
		} `json:"scopes"`
	} `json:"oauth_config"`
	Settings struct {
		EventSubscriptions struct {
			RequestURL string   `json:"request_url"`
			BotEvents  []string `json:"bot_events"`
		} `json:"event_subscriptions"`
		Interactivity struct {
			IsEnabled  bool   `json:"is_enabled"`
			RequestURL string `json:"request_url"`
		} `json:"interactivity"`
		SocketModeEnabled bool `json:"socket_mode_enabled"`
	} `json:"settings"`
}

type slashCommand struct {
	URL string `json:"url"`
}

// Read parses a manifest in YAML or JSON. It returns an error if the service would refuse the manifest.
func Read(data []byte) (*Manifest, error) {
	var tree map[string]any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return nil, fmt.Errorf("slack emulator: read manifest: %w", err)
	}
	plain, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("slack emulator: read manifest: %w", err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(schemaJSON, &schema); err != nil {
		return nil, fmt.Errorf("slack emulator: read schema: %w", err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("slack emulator: read schema: %w", err)
	}
	var instance any
	var m Manifest
	if err := errors.Join(json.Unmarshal(plain, &instance), json.Unmarshal(plain, &m)); err != nil {
		return nil, fmt.Errorf("slack emulator: read manifest: %w", err)
	}
	return &m, errors.Join(resolved.Validate(instance), m.check())
}

// check refuses a manifest whose parts are inconsistent.
func (m *Manifest) check() error {
	var errs []error
	refuse := func(refused bool, format string, args ...any) {
		if refused {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	scopes, f := m.OAuthConfig.Scopes.Bot, m.Features
	// vellum-ai/vellum-assistant PR 27248; the wording is from remoteclaw/remoteclaw #584.
	refuse(slices.Contains(scopes, AgentScope) && f.AgentView == nil && f.AssistantView == nil, "%s scope should include the agent_view feature", AgentScope)
	// docs.slack.dev/ai/developing-agents: switching the feature on adds the scope.
	refuse(f.AgentView != nil && !slices.Contains(scopes, AgentScope), "the agent_view feature needs the scope %s", AgentScope)
	// docs.slack.dev/ai/migrating-to-agent-messaging, openclaw/openclaw #108975.
	refuse(f.AssistantView != nil, "assistant_view is closed to new apps: use agent_view")
	refuse(f.BotUser == nil && len(scopes) > 0, "bot scopes need a bot user") // assumed
	// docs.slack.dev/reference/scopes/commands.
	refuse(len(f.SlashCommands) > 0 && !slices.Contains(scopes, "commands"), "slash commands need the scope commands")
	for _, event := range m.Settings.EventSubscriptions.BotEvents {
		scope, known := eventScopes[event]
		refuse(!known, "unknown event %q", event)
		refuse(scope != "" && !slices.Contains(scopes, scope), "event %s needs the scope %s", event, scope)
		// docs.slack.dev/reference/events/app_context_changed.
		refuse(event == "app_context_changed" && f.AgentView == nil, "event %s needs the agent_view feature", event)
	}
	if m.Settings.SocketModeEnabled {
		return errors.Join(errs...)
	}
	// speakeasy-api/gram PR 2711 for events; assumed for the others.
	refuse(len(m.Settings.EventSubscriptions.BotEvents) > 0 && m.Settings.EventSubscriptions.RequestURL == "", "event subscriptions need a request_url without Socket Mode")
	refuse(m.Settings.Interactivity.IsEnabled && m.Settings.Interactivity.RequestURL == "", "interactivity needs a request_url without Socket Mode")
	for _, c := range f.SlashCommands {
		refuse(c.URL == "", "a slash command needs a url without Socket Mode")
	}
	return errors.Join(errs...)
}

// EventScope returns the scope that an event requires, if any. known is false for an unknown event.
func EventScope(event string) (scope string, known bool) {
	scope, known = eventScopes[event]
	return scope, known
}

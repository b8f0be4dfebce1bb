package slack

import (
	_ "embed" // the schema is part of the program
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

//go:embed manifest.schema.json
var manifestSchema []byte

// agentScope is the scope of apps with the agent view. Slack puts it on the token when the
// feature is switched on (docs.slack.dev/ai/developing-agents), and refuses it without
// (vellum-ai/vellum-assistant PR 27248, openclaw/openclaw PR 67650).
const agentScope = "assistant:write"

// eventScopes are the events that an app may subscribe to, each with the scope that it
// takes, or none (docs.slack.dev/reference/events/<name>). That those of the agent view
// take its scope is assumed.
var eventScopes = map[string]string{
	"agent_session_stopped":            agentScope,
	"app_context_changed":              agentScope,
	"app_home_opened":                  "",
	"app_mention":                      "app_mentions:read",
	"assistant_thread_context_changed": agentScope,
	"assistant_thread_started":         agentScope,
	"message.channels":                 "channels:history",
	"message.groups":                   "groups:history",
	"message.im":                       "im:history",
	"message.mpim":                     "mpim:history",
	reactionAdded:                      "reactions:read",
	reactionRemoved:                    "reactions:read",
}

// messageEvents are the events of messages, by the kind of channel
// (docs.slack.dev/reference/events/message).
var messageEvents = map[string]string{Public: "message.channels", Private: "message.groups", DM: "message.im", GroupDM: "message.mpim"}

// appManifest is the part of a manifest that decides what the app can do.
type appManifest struct {
	Features struct {
		Agent *struct{} `json:"agent_view"`
		Home  struct {
			Enabled bool `json:"home_tab_enabled"`
		} `json:"app_home"`
		Assistant *struct{}   `json:"assistant_view"`
		Bot       *struct{}   `json:"bot_user"`
		Commands  []addressed `json:"slash_commands"`
	} `json:"features"`
	OAuth struct {
		Scopes struct {
			Bot []string `json:"bot"`
		} `json:"scopes"`
	} `json:"oauth_config"`
	Settings struct {
		Events struct {
			URL  string   `json:"request_url"`
			List []string `json:"bot_events"`
		} `json:"event_subscriptions"`
		Interactivity struct {
			Enabled bool   `json:"is_enabled"`
			URL     string `json:"request_url"`
		} `json:"interactivity"`
		Socket bool `json:"socket_mode_enabled"`
	} `json:"settings"`
}

type addressed struct {
	URL string `json:"url"`
}

// CheckManifest returns what the service would refuse of a manifest in YAML or JSON.
func CheckManifest(data []byte) error {
	_, err := readManifest(data)
	return err
}

func readManifest(data []byte) (*appManifest, error) {
	var tree map[string]any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return nil, fmt.Errorf("slack emulator: read manifest: %w", err)
	}
	plain, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("slack emulator: read manifest: %w", err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(manifestSchema, &schema); err != nil {
		return nil, fmt.Errorf("slack emulator: read schema: %w", err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("slack emulator: read schema: %w", err)
	}
	var instance any
	var m appManifest
	if err := errors.Join(json.Unmarshal(plain, &instance), json.Unmarshal(plain, &m)); err != nil {
		return nil, fmt.Errorf("slack emulator: read manifest: %w", err)
	}
	return &m, errors.Join(resolved.Validate(instance), m.check())
}

// check refuses parts that do not fit together.
func (m *appManifest) check() error {
	var errs []error
	refuse := func(refused bool, format string, args ...any) {
		if refused {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	scopes, f := m.OAuth.Scopes.Bot, m.Features
	// vellum-ai/vellum-assistant PR 27248, remoteclaw/remoteclaw #584 in these words.
	refuse(slices.Contains(scopes, agentScope) && f.Agent == nil && f.Assistant == nil, "%s scope should include the agent_view feature", agentScope)
	// docs.slack.dev/ai/developing-agents: switching the feature on adds the scope.
	refuse(f.Agent != nil && !slices.Contains(scopes, agentScope), "the agent_view feature needs the scope %s", agentScope)
	// docs.slack.dev/ai/migrating-to-agent-messaging, openclaw/openclaw #108975.
	refuse(f.Assistant != nil, "assistant_view is closed to new apps: use agent_view")
	refuse(f.Bot == nil && len(scopes) > 0, "bot scopes need a bot user") // assumed
	// docs.slack.dev/reference/scopes/commands.
	refuse(len(f.Commands) > 0 && !slices.Contains(scopes, "commands"), "slash commands need the scope commands")
	for _, event := range m.Settings.Events.List {
		scope, known := eventScopes[event]
		refuse(!known, "unknown event %q", event)
		refuse(scope != "" && !slices.Contains(scopes, scope), "event %s needs the scope %s", event, scope)
		// docs.slack.dev/reference/events/app_context_changed.
		refuse(event == "app_context_changed" && f.Agent == nil, "event %s needs the agent_view feature", event)
	}
	if m.Settings.Socket {
		return errors.Join(errs...)
	}
	// speakeasy-api/gram PR 2711 for events; the others are assumed to be alike.
	refuse(len(m.Settings.Events.List) > 0 && m.Settings.Events.URL == "", "event subscriptions need a request_url without Socket Mode")
	refuse(m.Settings.Interactivity.Enabled && m.Settings.Interactivity.URL == "", "interactivity needs a request_url without Socket Mode")
	for _, c := range f.Commands {
		refuse(c.URL == "", "a slash command needs a url without Socket Mode")
	}
	return errors.Join(errs...)
}

// Install makes the app the one that a manifest describes, as creating it from the
// manifest and installing it do: with its scopes, and with no events but its own.
func (s *Server) Install(manifest []byte) error {
	m, err := readManifest(manifest)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scopes, s.homeless = slices.Clone(m.OAuth.Scopes.Bot), !m.Features.Home.Enabled
	s.events = append([]string{}, m.Settings.Events.List...)
	return nil
}

// subscribed says whether the app gets events of a kind. One that no manifest describes
// gets all.
func (s *Server) subscribed(event string) bool {
	return s.events == nil || slices.Contains(s.events, event)
}

// EventScope returns the scope that an event takes, if any.
func EventScope(event string) (scope string, known bool) {
	scope, known = eventScopes[event]
	return scope, known
}

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

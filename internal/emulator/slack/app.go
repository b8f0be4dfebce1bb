package slack

import (
	"slices"

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

// Install makes the app the one that a manifest describes, as creating it from the
// manifest and installing it do: with its scopes, and with no events but its own.
func (s *Server) Install(data []byte) error {
	m, err := manifest.Read(data)
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

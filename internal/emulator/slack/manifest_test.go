package slack_test

import (
	"strings"
	"testing"

	"oneclaw/internal/emulator/slack"
)

const validManifest = `
display_information: {name: Bot}
features:
  agent_view: {agent_description: A bot}
  bot_user: {display_name: bot}
  slash_commands: [{command: /bot, description: Talk to it}]
oauth_config: {scopes: {bot: [assistant:write, chat:write, commands, im:history]}}
settings:
  event_subscriptions: {bot_events: [app_context_changed, message.im]}
  interactivity: {is_enabled: true}
  socket_mode_enabled: true
`

func TestManifestsAreChecked(t *testing.T) {
	if err := slack.CheckManifest([]byte(validManifest)); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, from, to, want string }{
		{"scope without its feature", "  agent_view: {agent_description: A bot}\n", "", "should include the agent_view feature"},
		{"feature without its scope", "assistant:write, ", "", "needs the scope assistant:write"},
		{"closed feature", "agent_view: {agent_", "assistant_view: {assistant_", "closed to new apps"},
		{"event without its scope", ", im:history", "", "message.im needs the scope im:history"},
		{"unknown event", "message.im", "message.me", "unknown event"},
		{"command without its scope", " commands,", "", "need the scope commands"},
		{"no bot", "  bot_user: {display_name: bot}\n", "", "need a bot user"},
		{"nowhere to post", "socket_mode_enabled: true", "socket_mode_enabled: false", "need a request_url"},
		{"unknown part", "settings:", "setings: {}\nsettings:", "setings"},
		{"name too long", "name: Bot", "name: " + strings.Repeat("b", 36), "maxLength"},
		{"description too long", "A bot", strings.Repeat("b", 301), "maxLength"},
		{"no name", "{name: Bot}", "{}", "required"},
		{"no YAML", "features:", "features", "read manifest"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := slack.CheckManifest([]byte(strings.Replace(validManifest, tt.from, tt.to, 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestAnAppIsWhatItsManifestSays(t *testing.T) {
	f := start(t, slack.Config{})
	if err := f.Install([]byte("display_information: {}")); err == nil {
		t.Error("a manifest that is refused is installed")
	}
	if err := f.Install([]byte(validManifest)); err != nil {
		t.Fatal(err)
	}
	if sent := f.say(f.channel, "<@U0BOT> x", nil); len(sent.Events) != 0 {
		t.Errorf("events that nobody subscribed to: %+v", sent)
	}
	if sent := f.say(f.dm, "x", nil); len(sent.Events) != 1 {
		t.Errorf("got %+v", sent)
	}
	if out := f.call("users.info", map[string]string{"user": f.user}); out["needed"] != "users:read" {
		t.Errorf("got %v", out)
	}
}

// A status needs the scope that messages need; Slack still accepts that of the agent view, but not for long.
func TestStatusTakesTheScopeOfMessages(t *testing.T) {
	for _, scope := range []string{"chat:write", "assistant:write", "users:read"} {
		f := start(t, slack.Config{Scopes: []string{scope}})
		root := f.say(f.channel, "root", nil)
		out := f.call("assistant.threads.setStatus", map[string]string{"channel_id": f.channel, "thread_ts": root.TS, "status": "x"})
		if want := scope == "chat:write"; out["ok"] != want {
			t.Errorf("with %s: %v", scope, out)
		}
	}
}

package slack

import (
	"strings"
	"testing"
)

func TestNewChecks(t *testing.T) {
	good := Config{Settings: Settings{BotToken: "xoxb-1", AppToken: "xapp-1"}}
	with := func(change func(*Config)) Config { c := good; change(&c); return c }
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{"good", good, ""},
		{"signed", Config{Settings: Settings{BotToken: " xoxb-1\n", SigningSecret: "s"}}, ""},
		{"nothing", Config{}, "SLACK_BOT_TOKEN"},
		{"tokens swapped", Config{Settings: Settings{BotToken: "xapp-1", AppToken: "xoxb-1"}}, "SLACK_BOT_TOKEN"},
		{"no way in", Config{Settings: Settings{BotToken: "xoxb-1"}}, "SLACK_APP_TOKEN"},
		{"bad app token", with(func(c *Config) { c.AppToken = "secret" }), "SLACK_APP_TOKEN"},
		{"bad address", with(func(c *Config) { c.APIURL = "slack.com" }), "SLACK_API_URL"},
		{"bad time", with(func(c *Config) { c.CallTimeout = -1 }), "negative"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := New(tt.cfg)
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("got %v", err)
			}
			if p != nil && p.Name() != Name {
				t.Errorf("name %q", p.Name())
			}
		})
	}
}

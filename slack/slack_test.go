package slack

import (
	"strings"
	"testing"
)

func TestNewChecks(t *testing.T) {
	good := config{Settings: Settings{BotToken: "xoxb-1", AppToken: "xapp-1"}}
	with := func(change func(*config)) config { c := good; change(&c); return c }
	tests := []struct {
		name string
		cfg  config
		want string
	}{
		{"good", good, ""},
		{"signed", config{Settings: Settings{BotToken: " xoxb-1\n", SigningSecret: "s"}}, ""},
		{"nothing", config{}, "SLACK_BOT_TOKEN"},
		{"tokens swapped", config{Settings: Settings{BotToken: "xapp-1", AppToken: "xoxb-1"}}, "SLACK_BOT_TOKEN"},
		{"no way in", config{Settings: Settings{BotToken: "xoxb-1"}}, "SLACK_APP_TOKEN"},
		{"bad app token", with(func(c *config) { c.AppToken = "secret" }), "SLACK_APP_TOKEN"},
		{"bad address", with(func(c *config) { c.APIURL = "slack.com" }), "SLACK_API_URL"},
		{"bad time", with(func(c *config) { c.callTimeout = -1 }), "negative"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := newPlatform(tt.cfg)
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("got %v", err)
			}
			if p != nil && p.Name() != platformName {
				t.Errorf("name %q", p.Name())
			}
		})
	}
}

package slack_test

import (
	_ "embed"
	"net"
	"strconv"
	"testing"

	"oneclaw/internal/emulator/npmtest"
	"oneclaw/internal/emulator/slack"
)

//go:embed testdata/clients.cjs
var clientsScript string

// Slack's own libraries find here what they find at Slack, over a socket and over HTTP.
func TestSlacksLibrariesMakeTheirEverydayCalls(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"socket", "http"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			cfg, port := slack.Config{Control: true}, 0
			if mode == "http" {
				port = freePort(t)
				cfg.EventsURL = "http://127.0.0.1:" + strconv.Itoa(port) + "/slack/events"
			}
			f := start(t, cfg)
			npmtest.Run(t, clientsScript, map[string]any{
				"url": f.url, "port": port, "bot": f.BotToken(), "app": f.AppToken(), "secret": f.SigningSecret(), "user": f.user, "channel": f.channel, "dm": f.dm,
			}, "@slack/bolt", "@slack/web-api")
		})
	}
}

// freePort returns a port on which the app may listen.
func freePort(t *testing.T) int {
	t.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	return ln.Addr().(*net.TCPAddr).Port
}

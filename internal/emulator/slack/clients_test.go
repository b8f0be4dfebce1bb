package slack_test

import (
	"context"
	_ "embed"
	"errors"
	"maps"
	"net"
	"strconv"
	"strings"
	"testing"

	api "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"

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

// The client of Slack for Go gets each kind of envelope over its own sockets, and uploads in chunks.
func TestTheClientForGoReceivesAndUploads(t *testing.T) {
	t.Parallel()
	f := start(t, slack.Config{})
	client := socketmode.New(f.bot)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- client.RunContext(ctx) }()

	f.wait(func(s slack.State) bool { return s.ActiveSockets() > 0 })
	_, asked, err := f.bot.PostMessageContext(t.Context(), f.dm, api.MsgOptionBlocks(api.NewActionBlock("", api.NewButtonBlockElement("go", "1", api.NewTextBlockObject(api.PlainTextType, "Go", false, false)))))
	if err != nil {
		t.Fatal(err)
	}
	f.say(f.dm, "hello", nil)
	if _, err := f.Press(f.dm, asked, f.user, "1", false); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Command(f.dm, f.user, "/ask", "why"); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for len(got) < 4 {
		event := <-client.Events
		switch data := event.Data.(type) {
		case slackevents.EventsAPIEvent:
			message, _ := data.InnerEvent.Data.(*slackevents.MessageEvent)
			got["message "+message.Text] = true
		case api.InteractionCallback:
			got["press "+data.ActionCallback.BlockActions[0].Value] = true
		case api.SlashCommand:
			got["command "+data.Text] = true
		default:
			continue
		}
		if err := client.AckCtx(t.Context(), event.Request.EnvelopeID, nil); err != nil {
			t.Fatal(err)
		}
	}
	// The bot's own message, which has no text, comes back, too.
	if want := map[string]bool{"message ": true, "message hello": true, "press 1": true, "command why": true}; !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	f.wait(func(s slack.State) bool { return s.UnackedCount() == 0 })
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	up, err := f.bot.UploadFileContext(t.Context(), api.UploadFileParameters{Channel: f.channel, Filename: "my report.txt", FileSize: 3, Reader: strings.NewReader("abc")})
	if err != nil {
		t.Fatal(err)
	}
	if m := f.Messages(f.channel); len(m) != 1 || m[0].Files[0].ID != up.ID || string(m[0].Files[0].Data) != "abc" {
		t.Errorf("got %+v", m)
	}
}

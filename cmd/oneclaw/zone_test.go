package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
)

const stretching = "remind me tomorrow at 9:00 to stretch"

// TestPeopleSayWhereTheyLive to a bot on a server, whose clock is UTC: the first reminder names that and asks, later ones
// have the zone that they told.
func TestPeopleSayWhereTheyLive(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	w.env["TZ"] = "UTC"
	bot, ann := w.run(), w.person("Ann")
	w.ask(bot, ann, stretching, nil)
	w.shownTo(bot, ann, "09:00 (UTC; if you live in another time zone, tell me your city)")
	wantIn(t, w.ask(bot, ann, "I live in New York.", nil), "America/New_York")
	wantIn(t, w.ask(bot, ann, "what time is it?", nil), " E") // EST or EDT
	w.ask(bot, ann, stretching, nil)
	w.shownTo(bot, ann, "09:00 (America/New_York)")
	bob := w.person("Bob")
	w.ask(bot, bob, stretching, nil)
	w.shownTo(bot, bob, "09:00 (UTC; ")
}

// TestSlackTellsWherePeopleLive without being asked.
func TestSlackTellsWherePeopleLive(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	w.env["TZ"] = "UTC"
	server, _, _ := w.withSlack(t)
	ann := server.AddUser(slack.User{Name: "Ann", Zone: "Asia/Tokyo"}).ID
	dm, err := server.AddChannel(slack.ChannelSpec{Kind: slack.DM, Members: []string{ann}})
	if err != nil {
		t.Fatal(err)
	}
	start(t, w.env, "run")
	sayTo(t, server, dm, ann, stretching, "")
	waitSlack(t, server, "reminder in the zone of Slack", func(s slack.State) bool {
		for _, m := range s.Messages(dm) {
			if strings.Contains(m.Text, "09:00 (Asia/Tokyo)") {
				return true
			}
		}
		return false
	})
}

// TestTheHostsTimeZoneNeedsNoName has it as a file that says nothing of its name, and as the path of one.
func TestTheHostsTimeZoneNeedsNoName(t *testing.T) {
	t.Parallel()
	const named = "/usr/share/zoneinfo/Asia/Kathmandu"
	zone, err := os.ReadFile(named)
	if err != nil {
		t.Skip("there are no time zones here")
	}
	copied := filepath.Join(t.TempDir(), "localtime")
	if err := os.WriteFile(copied, zone, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tz := range []string{copied, named} {
		w := newHarness(t, openai.Offline{})
		w.env["TZ"] = tz
		bot := w.run()
		wantIn(t, w.ask(bot, w.person("Ann"), "/status", nil), "+0545")
		bot.kill(syscall.SIGTERM)
	}
}

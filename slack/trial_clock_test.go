package slack

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/internal/redact"
)

// TestTrialClockOfAnotherTimeThanSlacksMissesNothing stops and starts the platform, and
// cuts its connection, on a machine whose clock is hours ahead of Slack's or behind it.
func TestTrialClockOfAnotherTimeThanSlacksMissesNothing(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead": -2 * time.Hour, "behind": 2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			cfg := deaf()
			cfg.Now = func() time.Time { return time.Now().Add(off) }
			kept := &notes{}
			f := start(t, cfg, func(c *config) { c.kv = kept })
			f.acked(f.say(f.dm, "before", nil))
			f.stop()
			hear := f.lose()
			f.say(f.dm, "while it was down", nil)
			p, err := newPlatform(config{
				Settings: Settings{BotToken: redact.Secret(f.BotToken()), AppToken: redact.Secret(f.AppToken()), APIURL: f.url}, httpClient: f.client, kv: kept,
				logger: slog.New(slog.NewTextHandler(f.log, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			f.p = p
			f.run()
			// What came within some minutes before is fetched, too: the bridge knows it.
			f.in.wait(t, 3)
			f.say(f.dm, "while it was cut off", nil)
			f.BreakSockets()
			f.wait(func(s emulator.State) bool { return s.OpenedSockets() >= 3 })
			hear()
			f.in.wait(t, 6)
			var got []string
			for _, m := range f.in.all() {
				got = append(got, m.Text)
			}
			want := []string{"before", "before", "while it was down", "before", "while it was down", "while it was cut off"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

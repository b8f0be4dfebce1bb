package slack_test

import (
	"encoding/json"
	"testing"

	api "github.com/slack-go/slack"

	"oneclaw/internal/emulator/slack"
)

// What was recorded is sent to the app, which can answer where it came from.
func TestRecordedPayloadsArePlayed(t *testing.T) {
	f := start(t, slack.Config{})
	for _, p := range []struct{ kind, payload string }{
		{"events_api", `{"team_id":"T1","event":{"type":"message","channel":"D77","channel_type":"im","user":"U77","text":"hi","ts":"1700000000.000100"}}`},
		{"events_api", `{"event":{"type":"app_mention","channel":"C77","user":"U77","text":"<@U0BOT> hi","ts":"1700000001.000100","thread_ts":"1690000000.000100"}}`},
		{"interactive", `{"type":"block_actions","user":{"id":"U77"},"channel":{"id":"C77"},"response_url":"••••"}`},
	} {
		if err := f.Play(p.kind, json.RawMessage(p.payload)); err != nil {
			t.Fatalf("%s: %v", p.payload, err)
		}
	}
	for channel, thread := range map[string]string{"D77": "1700000000.000100", "C77": "1690000000.000100"} {
		if _, _, err := f.bot.PostMessageContext(t.Context(), channel, api.MsgOptionText("yes", false), api.MsgOptionTS(thread)); err != nil {
			t.Errorf("%s: %v", channel, err)
		}
	}
	f.View(func(s slack.State) {
		// Its own messages come to the app, too.
		if n := s.UnackedCount(); n != 3+2 || len(s.Thread("C77", "1690000000.000100")) != 3 {
			t.Errorf("%d envelopes, the thread is %+v", n, s.Thread("C77", "1690000000.000100"))
		}
	})
	for _, payload := range []string{`{`, `[]`} {
		if err := f.Play("events_api", json.RawMessage(payload)); err == nil {
			t.Errorf("%s is played", payload)
		}
	}
}

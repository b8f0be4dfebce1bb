package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/internal/config"
	"oneclaw/internal/lab/replay"
	"oneclaw/internal/record"
)

// step is a call of a bot in the chat 5. One that changes a message says which of those that
// it has sent.
type step struct {
	method, text string
	changes      int
}

// recorded is what is recorded of a bot that takes steps when it is spoken to.
func recorded(steps ...step) []record.Line {
	lines := recording()[:2]
	at, messages := lines[1].Time, 0
	for _, s := range steps {
		at = at.Add(time.Second)
		request, id := map[string]string{"chat_id": "5", "text": s.text}, 40+s.changes
		if s.changes > 0 {
			request["message_id"] = fmt.Sprint(id)
		} else {
			messages++
			id = 40 + messages
		}
		body, _ := json.Marshal(request) // these are strings
		lines = append(lines, record.Line{
			Time: at, EndedAt: at, Direction: record.Call, Status: http.StatusOK, Service: "telegram", Method: http.MethodPost,
			URL: "https://api.telegram.org/bot••••/" + s.method, Request: body, Response: fmt.Appendf(nil, `{"ok":true,"result":{"message_id":%d}}`, id),
		})
	}
	return lines
}

// taking is a bot that takes steps when it is spoken to.
func taking(t *testing.T, steps ...step) func(context.Context, config.Config) error {
	return func(ctx context.Context, cfg config.Config) error {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		bot := &robot{t: t, cfg: cfg, http: &http.Client{Transport: cfg.Taps.Tap("telegram").Transport(transport)}}
		var came struct{ Result []struct{} }
		for len(came.Result) == 0 && ctx.Err() == nil {
			bot.call("getUpdates", map[string]string{"timeout": "1"}, &came)
		}
		var ids []int64
		for _, s := range steps {
			params := map[string]string{"chat_id": "5", "text": s.text}
			var answer struct {
				Result struct {
					ID int64 `json:"message_id"`
				}
			}
			if s.changes > 0 {
				params["message_id"] = fmt.Sprint(ids[s.changes-1])
			}
			if bot.call(s.method, params, &answer); s.changes == 0 {
				ids = append(ids, answer.Result.ID)
			}
		}
		<-ctx.Done()
		return nil
	}
}

// TestReplayComparesRows has a bot take the steps of a recording in another order: between
// messages and the changes of one there is none.
func TestReplayComparesRows(t *testing.T) {
	t.Parallel()
	send := func(text string) step { return step{"sendMessage", text, 0} }
	edit := func(text string, message int) step { return step{"editMessageText", text, message} }
	const first, second = "telegram 5, message 1 of the bot", "telegram 5, message 2 of the bot"
	was := []step{send("one"), send("two"), edit("done", 1), edit("over", 1)}
	for name, tt := range map[string]struct {
		now  []step
		want []string
	}{
		"the same":                    {was, nil},
		"a change before a message":   {[]step{was[0], was[2], was[1], was[3]}, nil},
		"a message before another":    {[]step{was[1], was[0], was[2], was[3]}, []string{first + `: recorded sendMessage {"text":"one"}; now sendMessage {"text":"two"}`, second + `: recorded sendMessage {"text":"two"}; now sendMessage {"text":"one"}`}},
		"a change before another":     {[]step{was[0], was[1], was[3], was[2]}, []string{first + `, change 1: recorded editMessageText {"text":"done"}; now editMessageText {"text":"over"}`, first + `, change 2: recorded editMessageText {"text":"over"}; now editMessageText {"text":"done"}`}},
		"a change of another message": {[]step{was[0], was[1], was[2], edit("over", 2)}, []string{first + `, change 2: recorded editMessageText {"text":"over"}; now nothing`, second + `, change 1: recorded nothing; now editMessageText {"text":"over"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			other, err := replay.Replay{Bot: taking(t, tt.now...), Settings: config.Default(), Quiet: 100 * time.Millisecond}.Play(t.Context(), recorded(was...))
			if err != nil || !slices.Equal(other, tt.want) {
				t.Errorf("%v:\n%s\nwant\n%s", err, strings.Join(other, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// TestReplayNamesWhatIsMissing plays a chat of Slack to a bot that is silent.
func TestReplayNamesWhatIsMissing(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	lines := []record.Line{{
		Time: at, Direction: record.In, Service: "slack",
		Response: json.RawMessage(`{"envelope_id":"e1","type":"events_api","payload":{"event":{"type":"message","user":"U1","channel":"C1","channel_type":"channel","text":"go","ts":"1777636800.000100"}}}`),
	}}
	for _, call := range []struct{ method, request, answer string }{
		{"chat.postMessage", `{"channel":"C1","text":"may I?"}`, `{"ok":true,"ts":"1.1"}`},
		{"chat.postEphemeral", `{"channel":"C1","user":"U1","text":"you may"}`, `{"ok":true,"message_ts":"1.2"}`},
		{"chat.postMessage", `{"channel":"C1","text":"done"}`, `{"ok":true,"ts":"1.3"}`},
		{"chat.update", `{"channel":"C1","ts":"1.1","text":"allowed"}`, `{"ok":true,"ts":"1.1"}`},
		{"chat.delete", `{"channel":"C1","ts":"0.9"}`, `{"ok":true,"ts":"0.9"}`},
	} {
		at = at.Add(time.Second)
		lines = append(lines, record.Line{
			Time: at, EndedAt: at, Direction: record.Call, Status: http.StatusOK, Service: "slack", Method: http.MethodPost,
			URL: "https://slack.com/api/" + call.method, Request: json.RawMessage(call.request), Response: json.RawMessage(call.answer),
		})
	}
	silent := func(ctx context.Context, _ config.Config) error {
		<-ctx.Done()
		return nil
	}
	want := []string{
		`slack C1, message 1 of the bot: recorded chat.postMessage {"text":"may I?"}; now nothing`,
		`slack C1 for U1, message 1 of the bot: recorded chat.postEphemeral {"text":"you may"}; now nothing`,
		`slack C1, message 2 of the bot: recorded chat.postMessage {"text":"done"}; now nothing`,
		`slack C1, message 1 of the bot, change 1: recorded chat.update {"text":"allowed"}; now nothing`,
		`slack C1, message 0.9, change 1: recorded chat.delete {}; now nothing`,
	}
	other, err := replay.Replay{Bot: silent, Settings: config.Default(), Timeout: time.Millisecond, Quiet: time.Millisecond}.Play(t.Context(), lines)
	if err != nil || !slices.Equal(other, want) {
		t.Errorf("%v:\n%s\nwant\n%s", err, strings.Join(other, "\n"), strings.Join(want, "\n"))
	}
}

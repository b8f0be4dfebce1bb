package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"oneclaw/internal/config"
	"oneclaw/internal/lab/replay"
	"oneclaw/internal/record"
)

// recording is a chat of Telegram: two messages, each answered with what a model says, and
// a button that is pressed.
func recording() []record.Line {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	next := func(l record.Line) record.Line {
		at = at.Add(time.Second)
		l.Time, l.EndedAt, l.Direction, l.Status = at, at, record.Call, 200
		return l
	}
	telegram := func(method, request, result string) record.Line {
		return next(record.Line{
			Service: "telegram", Method: "POST", URL: "https://api.telegram.org/bot••••/" + method,
			Request: json.RawMessage(request), Response: json.RawMessage(`{"ok":true,"result":` + result + `}`),
		})
	}
	model := func(last, text string) record.Line {
		return next(record.Line{
			Service: record.ModelService, Method: "POST", URL: "https://models.example/v1/chat/completions", MediaType: "text/plain",
			Request: json.RawMessage(`{"model":"m1","messages":[{"role":"user","content":"` + last + `"}]}`), Response: json.RawMessage(`"` + text + `"`),
		})
	}
	said := func(id, text string) string {
		return `[{"update_id":7,"message":{"message_id":` + id + `,"date":1777636800,"from":{"id":5,"first_name":"Ann"},"chat":{"id":5,"type":"private"},"text":"` + text + `"}}]`
	}
	return []record.Line{
		telegram("getMe", "", `{"id":99,"is_bot":true,"username":"old_bot"}`),
		telegram("getUpdates", "{}", said("30", "one")), model("one", "first"),
		telegram("sendMessage", `{"chat_id":"5","text":"first","reply_markup":"{\"inline_keyboard\":[[{\"text\":\"Go\",\"callback_data\":\"then-1\"}]]}"}`, `{"message_id":31}`),
		telegram("getUpdates", "{}", `[{"update_id":8,"callback_query":{"id":"c1","data":"then-1","from":{"id":5,"first_name":"Ann"},"message":{"message_id":31,"chat":{"id":5,"type":"private"}}}}]`),
		telegram("answerCallbackQuery", `{"callback_query_id":"c1","text":"pressed"}`, "true"),
		telegram("getUpdates", "{}", said("32", "two")), model("two", "second"),
		telegram("sendMessage", `{"chat_id":"5","text":"second"}`, `{"message_id":33}`),
	}
}

// robot is a bot of a few lines, whose buttons have other data each time.
type robot struct {
	t       *testing.T
	cfg     config.Config
	http    *http.Client
	ask     func(text string) string // what the model is asked for a message
	say     func(text string) string // what is made of its answer
	started time.Time
}

func (b *robot) call(method string, params map[string]string, into any) {
	form := url.Values{}
	for name, value := range params {
		form.Set(name, value)
	}
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.cfg.Telegram.APIURL+"/bot"+string(b.cfg.Telegram.Token)+"/"+method, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := b.http.Do(req)
	if err != nil {
		return // it is over
	}
	data, _ := io.ReadAll(resp.Body)
	if err := resp.Body.Close(); err != nil {
		b.t.Error(err)
	}
	if into != nil && json.Unmarshal(data, into) != nil {
		b.t.Errorf("%s: %s", method, data)
	}
}

func (b *robot) model(ctx context.Context, last string) string {
	body := `{"model":"m1","messages":[{"role":"user","content":"` + last + `"}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.cfg.Model.BaseURL+"/chat/completions", strings.NewReader(body))
	if err != nil {
		b.t.Error(err)
		return ""
	}
	resp, err := b.cfg.Taps.Tap(record.ModelService).Transport(nil).RoundTrip(req) //nolint:bodyclose // it is, below
	if err != nil {
		b.t.Error(err)
		return ""
	}
	data, _ := io.ReadAll(resp.Body)
	return string(data)
}

// run answers until ctx ends.
func (b *robot) run(ctx context.Context, cfg config.Config) error {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	b.cfg, b.http, b.started = cfg, &http.Client{Transport: cfg.Taps.Tap("telegram").Transport(transport)}, cfg.Runtime.Now()
	for offset, n := int64(0), 0; ctx.Err() == nil; {
		var answer struct {
			Result []struct {
				ID      int64                 `json:"update_id"`
				Message struct{ Text string } `json:"message"`
				Press   struct {
					ID, Data string
					Message  struct {
						ID int64 `json:"message_id"`
					}
				} `json:"callback_query"`
			}
		}
		b.call("getUpdates", map[string]string{"offset": fmt.Sprint(offset), "timeout": "1"}, &answer)
		for _, u := range answer.Result {
			offset = u.ID + 1
			if u.Press.ID != "" {
				b.call("answerCallbackQuery", map[string]string{"callback_query_id": u.Press.ID, "text": map[bool]string{true: "pressed"}[u.Press.Data == "now-1" && u.Press.Message.ID == 31]}, nil)
				continue
			}
			if n++; b.ask(u.Message.Text) == "" {
				continue
			}
			params := map[string]string{"chat_id": "5", "text": b.say(b.model(ctx, b.ask(u.Message.Text)))}
			if n == 1 {
				params["reply_markup"] = `{"inline_keyboard":[[{"text":"Go","callback_data":"now-1"}]]}`
			}
			b.call("sendMessage", params, nil)
		}
	}
	return nil
}

func same(text string) string { return text }

func TestReplayComparesWhatTheBotDoes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ask, say func(string) string
		change   func([]record.Line) []record.Line
		want     []string
	}{
		"the same": {ask: same, say: same},
		"another text": {ask: same, say: strings.ToUpper, want: []string{
			`telegram 5, message 1 of the bot: recorded sendMessage {"reply_markup":{"inline_keyboard":[[{"text":"Go"}]]},"text":"first"}; now sendMessage {"reply_markup":{"inline_keyboard":[[{"text":"Go"}]]},"text":"FIRST"}`,
			`telegram 5, message 2 of the bot: recorded sendMessage {"text":"second"}; now sendMessage {"text":"SECOND"}`,
		}},
		"silence": {ask: func(text string) string { return strings.TrimPrefix(text, "two") }, say: same, want: []string{
			`telegram 5, message 2 of the bot: recorded sendMessage {"text":"second"}; now nothing`,
			"model: recorded a request with the messages [user]; now none",
		}},
		"one more": {ask: same, say: same, change: func(l []record.Line) []record.Line { return append(l[:6:6], l[6:8]...) }, want: []string{
			`telegram 5, message 2 of the bot: recorded nothing; now sendMessage {"text":"second"}`,
		}},
		"more of the model": {ask: same, say: func(text string) string { return text[:5] }, change: func(l []record.Line) []record.Line { return append(l[:7:7], l[8:]...) }, want: []string{
			"model: the request is not recorded: POST /v1/chat/completions, user",
			`telegram 5, message 2 of the bot: recorded sendMessage {"text":"second"}; now sendMessage {"text":"{\"err"}`,
		}},
		"what is refused": {ask: same, say: func(text string) string { return strings.TrimPrefix(text, "second") }, want: []string{
			`telegram refuses sendMessage: {"ok":false,"error_code":400,"description":"Bad Request: message text is empty"}`,
			`telegram 5, message 2 of the bot: recorded sendMessage {"text":"second"}; now nothing`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := recording()
			if tt.change != nil {
				lines = tt.change(lines)
			}
			bot := &robot{t: t, ask: tt.ask, say: tt.say}
			patience, quiet := time.Minute, 100*time.Millisecond
			if name == "one more" { // comes within that time
				quiet = 10 * time.Second
			}
			if len(tt.want) > 0 && strings.Contains(tt.want[len(tt.want)-1]+tt.want[0], "now no") {
				patience = 10 * time.Second
			}
			other, err := replay.Replay{Bot: bot.run, Settings: config.Default(), Timeout: patience, Quiet: quiet}.Play(t.Context(), lines)
			if err != nil || fmt.Sprintf("%q", other) != fmt.Sprintf("%q", append([]string(nil), tt.want...)) {
				t.Errorf("%v:\n%s\nwant\n%s", err, strings.Join(other, "\n"), strings.Join(tt.want, "\n"))
			}
			if bot.cfg.Model.BaseURL != "https://models.example/v1" || bot.cfg.Model.Name != "m1" || !strings.HasPrefix(string(bot.cfg.Telegram.Token), "99:") || bot.cfg.Slack.BotToken != "" || bot.started.Year() != 2026 || bot.started.Month() != 5 {
				t.Errorf("the bot is given %+v, %+v, %+v at %s", bot.cfg.Telegram, bot.cfg.Slack, bot.cfg.Model, bot.started)
			}
		})
	}
}

func TestReplaySaysWhatItCannotPlay(t *testing.T) {
	for name, tt := range map[string]struct {
		lines []record.Line
		bot   func(context.Context, config.Config) error
		want  string
	}{
		"nothing said":    {recording()[:1], nil, "no events for the bot"},
		"a bot that dies": {recording(), func(context.Context, config.Config) error { return io.ErrUnexpectedEOF }, "the bot stopped unexpectedly"},
	} {
		_, err := replay.Replay{Bot: tt.bot, Settings: config.Default()}.Play(t.Context(), tt.lines)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

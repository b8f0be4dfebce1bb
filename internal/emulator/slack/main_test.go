package slack_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	api "github.com/slack-go/slack"
	"go.uber.org/goleak"

	"oneclaw/internal/emulator/slack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a running workspace with a real client, one user, their DM and a
// channel that the bot is in.
type fixture struct {
	*slack.Server
	t       *testing.T
	url     string
	user    string
	dm      string
	channel string
	http    *http.Client
	bot     *api.Client
}

func start(t *testing.T, cfg slack.Config) *fixture {
	t.Helper()
	cfg.AckTimeout = cmp.Or(cfg.AckTimeout, time.Minute) // a busy machine delivers nothing again
	s, err := slack.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	address, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		client.CloseIdleConnections()
	})
	f := &fixture{Server: s, t: t, url: address, http: client}
	f.bot = api.New(s.BotToken(), api.OptionAPIURL(address), api.OptionAppLevelToken(s.AppToken()), api.OptionHTTPClient(client))
	f.user = s.AddUser(slack.User{ID: "U1", Name: "ann", RealName: "Ann Lee"}).ID
	f.dm = f.make(slack.ChannelSpec{ID: "D1", Kind: slack.DM, Members: []string{f.user}})
	f.channel = f.make(slack.ChannelSpec{ID: "C1", Name: "general", Members: []string{f.user}})
	return f
}

func (f *fixture) make(spec slack.ChannelSpec) string {
	f.t.Helper()
	id, err := f.AddChannel(spec)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

func (f *fixture) say(channel, text string, opts *slack.SayOptions) slack.Sent {
	f.t.Helper()
	sent, err := f.Say(channel, f.user, text, opts)
	if err != nil {
		f.t.Fatal(err)
	}
	return sent
}

func (f *fixture) inject(fault slack.Fault) int {
	f.t.Helper()
	n, err := f.Inject(fault)
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

func (f *fixture) wait(cond func(slack.State) bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	if err := f.WaitFor(ctx, cond); err != nil {
		f.t.Fatal(err)
	}
}

// call makes a form call with the bot's token and returns the decoded answer.
func (f *fixture) call(method string, params map[string]string) map[string]any {
	f.t.Helper()
	values := url.Values{"token": {f.BotToken()}}
	for k, v := range params {
		values.Set(k, v)
	}
	_, body := f.post(f.url+method, "application/x-www-form-urlencoded", values.Encode())
	var out map[string]any
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		f.t.Fatalf("%s: %v in %s", method, err, body)
	}
	return out
}

func (f *fixture) post(address, kind, body string) (int, string) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	return f.do(req)
}

func (f *fixture) do(req *http.Request) (int, string) {
	f.t.Helper()
	resp, err := f.http.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	data, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		f.t.Fatal(err)
	}
	return resp.StatusCode, string(bytes.TrimSpace(data))
}

// envelope is what a socket brings.
type envelope struct {
	Type         string `json:"type"`
	Reason       string `json:"reason"`
	ID           string `json:"envelope_id"`
	RetryAttempt int    `json:"retry_attempt"`
	Accepts      bool   `json:"accepts_response_payload"`
	Payload      struct {
		Type    string `json:"type"`
		EventID string `json:"event_id"`
		TeamID  string `json:"team_id"`
		Command string `json:"command"`
		Text    string `json:"text"`
		Actions []struct {
			Value string `json:"value"`
		} `json:"actions"`
		ResponseURL string `json:"response_url"`
		Event       struct {
			Type        string `json:"type"`
			Subtype     string `json:"subtype"`
			TS          string `json:"ts"`
			ThreadTS    string `json:"thread_ts"`
			Parent      string `json:"parent_user_id"`
			ChannelType string `json:"channel_type"`
			BotID       string `json:"bot_id"`
			Text        string `json:"text"`
			Message     *struct {
				Text string `json:"text"`
			} `json:"message"`
		} `json:"event"`
	} `json:"payload"`
}

// dial opens a socket and reads the hello.
func (f *fixture) dial() *websocket.Conn {
	f.t.Helper()
	_, address, err := f.bot.StartSocketModeContext(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	conn, resp, err := websocket.DefaultDialer.DialContext(f.t.Context(), address, http.Header{"Origin": {"https://api.slack.com"}})
	if err != nil {
		f.t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = conn.Close() })
	if e := f.next(conn); e.Type != "hello" {
		f.t.Fatalf("first came %+v", e)
	}
	return conn
}

func (f *fixture) next(conn *websocket.Conn) envelope {
	f.t.Helper()
	var e envelope
	if err := conn.ReadJSON(&e); err != nil {
		f.t.Fatal(err)
	}
	return e
}

func (f *fixture) ack(conn *websocket.Conn, id string) {
	f.t.Helper()
	if err := conn.WriteJSON(map[string]string{"envelope_id": id}); err != nil {
		f.t.Fatal(err)
	}
}

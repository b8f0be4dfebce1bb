package telegram_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	tg "github.com/go-telegram-bot-api/telegram-bot-api/v5"
	"go.uber.org/goleak"

	"oneclaw/internal/emulator/telegram"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a running server with a real client, one user and their private chat.
type fixture struct {
	*telegram.Server
	t    *testing.T
	url  string
	user int64
	bot  *tg.BotAPI
	http *http.Client
}

func start(t *testing.T, cfg telegram.Config) *fixture {
	t.Helper()
	s, err := telegram.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	url, err := s.Start(t.Context())
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
	f := &fixture{Server: s, t: t, url: url, http: client, bot: &tg.BotAPI{Token: s.Token(), Client: &http.Client{Transport: measured{client.Transport}}}}
	f.bot.SetAPIEndpoint(url + "/bot%s/%s")
	f.user = s.AddUser(telegram.User{FirstName: "Ann", Username: "ann"}).ID
	f.chat(telegram.ChatSpec{Kind: telegram.Private, User: f.user})
	return f
}

// measured sends each request with its length: a library that writes a form while it is
// sent does not know it.
type measured struct{ http.RoundTripper }

func (m measured) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.ContentLength < 0 || req.Body != nil && req.Body != http.NoBody && req.ContentLength == 0 {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		if len(body) == 0 {
			req.Body = http.NoBody
		}
	}
	return m.RoundTripper.RoundTrip(req)
}

func (f *fixture) chat(spec telegram.ChatSpec) int64 {
	f.t.Helper()
	id, err := f.AddChat(spec)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

func (f *fixture) say(chat int64, text string, opts *telegram.SayOptions) telegram.Sent {
	f.t.Helper()
	sent, err := f.Say(chat, f.user, text, opts)
	if err != nil {
		f.t.Fatal(err)
	}
	return sent
}

// call makes a call that must succeed and decodes its result.
func (f *fixture) call(method string, params tg.Params, into any) {
	f.t.Helper()
	resp, err := f.bot.MakeRequest(method, params)
	if err != nil {
		f.t.Fatalf("%s: %v", method, err)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(resp.Result, into); err != nil {
		f.t.Fatalf("%s: %v in %s", method, err, resp.Result)
	}
}

// refusal makes a call that must be refused.
func (f *fixture) refusal(method string, params tg.Params) *tg.Error {
	f.t.Helper()
	_, err := f.bot.MakeRequest(method, params)
	var refused *tg.Error
	if !errors.As(err, &refused) {
		f.t.Fatalf("%s %v: got %v, want a refusal", method, params, err)
	}
	return refused
}

type sent struct {
	ID       int64             `json:"message_id"`
	Date     int64             `json:"date"`
	Thread   int64             `json:"message_thread_id"`
	IsTopic  bool              `json:"is_topic_message"`
	Text     string            `json:"text"`
	Caption  string            `json:"caption"`
	Entities []telegram.Entity `json:"entities"`
	Reply    *sent             `json:"reply_to_message"`
	Document struct {
		ID string `json:"file_id"`
	} `json:"document"`
	MigrateTo   int64 `json:"migrate_to_chat_id"`
	MigrateFrom int64 `json:"migrate_from_chat_id"`
	Chat        struct {
		ID int64 `json:"id"`
	} `json:"chat"`
}

type got struct {
	ID       int64 `json:"update_id"`
	Message  *sent `json:"message"`
	Edited   *sent `json:"edited_message"`
	Callback *struct {
		ID   string `json:"id"`
		Data string `json:"data"`
		// Message shows a date of 0 where it is deleted.
		Message *sent `json:"message"`
	} `json:"callback_query"`
	MyMember *struct {
		New struct {
			Status string `json:"status"`
		} `json:"new_chat_member"`
	} `json:"my_chat_member"`
	Reaction *struct {
		New []struct {
			Emoji string `json:"emoji"`
		} `json:"new_reaction"`
	} `json:"message_reaction"`
}

func (f *fixture) updates(params tg.Params) []got {
	f.t.Helper()
	var list []got
	f.call("getUpdates", params, &list)
	return list
}

func (f *fixture) wait(cond func(telegram.State) bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	if err := f.WaitFor(ctx, cond); err != nil {
		f.t.Fatal(err)
	}
}

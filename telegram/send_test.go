package telegram

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/retry"
)

var private = chats.Address{Chat: chats.Chat{Platform: platformName, ID: "5"}}

func TestOutcomesOfSends(t *testing.T) {
	tests := map[string]struct {
		answer func() (int, string, error)
		want   chats.SendError
	}{
		"429": {func() (int, string, error) {
			return 429, `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 31","parameters":{"retry_after":31}}`, nil
		}, chats.SendError{Outcome: chats.Later, RetryAfter: 31 * time.Second}},
		"migrated": {func() (int, string, error) {
			return 400, `{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-100123}}`, nil
		}, chats.SendError{Outcome: chats.Later, MovedTo: "-100123"}},
		"blocked":         {func() (int, string, error) { return refusal(403, "Forbidden: bot was blocked by the user") }, chats.SendError{Outcome: chats.Refused}},
		"chat not found":  {func() (int, string, error) { return refusal(400, "Bad Request: chat not found") }, chats.SendError{Outcome: chats.Refused}},
		"too much markup": {func() (int, string, error) { return refusal(400, "Bad Request: MESSAGE_TOO_LONG") }, chats.SendError{Outcome: chats.Refused, ContentRefused: true}},
		"odd buttons":     {func() (int, string, error) { return refusal(400, "Bad Request: REPLY_MARKUP_INVALID") }, chats.SendError{Outcome: chats.Refused, ContentRefused: true}},
		"no right": {func() (int, string, error) {
			return refusal(400, "Bad Request: not enough rights to send text messages to the chat")
		}, chats.SendError{Outcome: chats.Refused}},
		"too large":      {func() (int, string, error) { return 413, "<html>", nil }, chats.SendError{Outcome: chats.Refused, ContentRefused: true}},
		"token revoked":  {func() (int, string, error) { return refusal(401, "Unauthorized") }, chats.SendError{Outcome: chats.Later, Outage: true}},
		"token unknown":  {func() (int, string, error) { return refusal(404, "Not Found") }, chats.SendError{Outcome: chats.Later, Outage: true}},
		"500":            {func() (int, string, error) { return refusal(500, "Internal Server Error") }, chats.SendError{Outcome: chats.Unknown}},
		"502 page":       {func() (int, string, error) { return 502, "<html>", nil }, chats.SendError{Outcome: chats.Unknown}},
		"503 page":       {func() (int, string, error) { return 503, "", nil }, chats.SendError{Outcome: chats.Unknown}},
		"504 page":       {func() (int, string, error) { return 504, "<html>", nil }, chats.SendError{Outcome: chats.Unknown}},
		"403 page":       {func() (int, string, error) { return 403, "<html>", nil }, chats.SendError{Outcome: chats.Later, Outage: true}},
		"redirect":       {func() (int, string, error) { return 302, "", nil }, chats.SendError{Outcome: chats.Later, Outage: true}},
		"half an answer": {func() (int, string, error) { return 200, `{"ok":true,"result":{"message_`, nil }, chats.SendError{Outcome: chats.Unknown}},
		"no message":     {func() (int, string, error) { return ok(`true`) }, chats.SendError{Outcome: chats.Unknown}},
		"no id":          {func() (int, string, error) { return ok(`{}`) }, chats.SendError{Outcome: chats.Unknown}},
		"not the api":    {func() (int, string, error) { return 200, `{}`, nil }, chats.SendError{Outcome: chats.Unknown}},
		"broken":         {func() (int, string, error) { return 0, "", errors.New("connection reset") }, chats.SendError{Outcome: chats.Unknown}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, _ := newFake(t, func(context.Context, string, url.Values) (int, string, error) { return tt.answer() })
			id, err := p.Send(t.Context(), private, chats.Part{Text: "hi", Plain: "hi"})
			var got *chats.SendError
			if !errors.As(err, &got) || id != "" {
				t.Fatalf("Send = %q, %v, want a SendError", id, err)
			}
			if got.Outcome != tt.want.Outcome || got.RetryAfter != tt.want.RetryAfter || got.MovedTo != tt.want.MovedTo || got.Outage != tt.want.Outage || got.ContentRefused != tt.want.ContentRefused {
				t.Errorf("Send = %+v, want %+v", *got, tt.want)
			}
		})
	}
}

func TestSendBeforeAnythingIsOut(t *testing.T) {
	p, err := newPlatform(config{Settings: Settings{Token: testToken, APIURL: "http://127.0.0.1:1"}}) // no test listens there
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, ctx := range map[string]context.Context{"nobody listens": t.Context(), "no time": ended} {
		t.Run(name, func(t *testing.T) {
			_, err := p.Send(ctx, private, chats.Part{Text: "hi"})
			var got *chats.SendError
			if !errors.As(err, &got) || got.Outcome != chats.Later || !got.Outage {
				t.Errorf("Send = %v, want Later in an outage", err)
			}
		})
	}
}

func TestSendToABadAddress(t *testing.T) {
	p, _ := newFake(t, func(context.Context, string, url.Values) (int, string, error) {
		t.Error("something was sent")
		return ok(`{"message_id":1}`)
	})
	for _, chat := range []chats.Chat{{}, {Platform: "slack", ID: "5"}, {Platform: platformName, ID: "C1"}, {Platform: platformName, ID: "5", Thread: "x"}} {
		_, err := p.Send(t.Context(), chats.Address{Chat: chat}, chats.Part{Text: "hi"})
		var got *chats.SendError
		if !errors.As(err, &got) || got.Outcome != chats.Refused {
			t.Errorf("Send to %v = %v, want Refused", chat, err)
		}
	}
}

func TestSendParameters(t *testing.T) {
	var form url.Values
	p, _ := newFake(t, func(_ context.Context, _ string, f url.Values) (int, string, error) {
		form = f
		return ok(`{"message_id":77}`)
	})
	to := chats.Address{Chat: chats.Chat{Platform: platformName, ID: "-1001", Thread: "9"}, ReplyTo: "12"}
	id, err := p.Send(t.Context(), to, chats.Part{Text: "<b>hi</b>", Plain: "hi", Repeat: true})
	if err != nil || id != "77" {
		t.Fatalf("Send = %q, %v", id, err)
	}
	for key, want := range map[string]string{
		"chat_id": "-1001", "message_thread_id": "9", "parse_mode": "HTML",
		"reply_parameters":     `{"allow_sending_without_reply":true,"message_id":12}`,
		"link_preview_options": `{"is_disabled":true}`,
		"text":                 "<b>hi</b>\n\n<i>" + chats.RepeatNotice + "</i>",
	} {
		if got := form.Get(key); got != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
	// The id that stands for an ephemeral message is nothing to reply to.
	if _, err := p.Send(t.Context(), chats.Address{Chat: private.Chat, ReplyTo: "u12"}, chats.Part{Plain: "a < b"}); err != nil {
		t.Fatal(err)
	}
	if form.Has("reply_parameters") || form.Has("parse_mode") || form.Get("text") != "a < b" {
		t.Errorf("plain part was sent as %v", form)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestErrorsHoldNoToken plants the token wherever a server or a transport can say it.
//
// Tokens appear in no log.
func TestErrorsHoldNoToken(t *testing.T) {
	leak := "broken at /bot" + testToken + "/sendMessage and " + url.PathEscape(testToken) + url.QueryEscape(testToken)
	secret := strings.SplitN(testToken, ":", 2)[1]
	tests := map[string]func() (int, string, error){
		"transport error": func() (int, string, error) { return 0, "", errors.New(leak) },
		"nested error": func() (int, string, error) {
			return 0, "", &url.Error{Op: "Post", URL: "http://x/bot" + testToken, Err: &url.Error{Op: "Get", URL: leak, Err: errors.New("x")}}
		},
		"refusal":    func() (int, string, error) { return refusal(400, leak) },
		"page":       func() (int, string, error) { return 502, leak, nil },
		"conflict":   func() (int, string, error) { return refusal(409, leak) },
		"wrong type": func() (int, string, error) { return 200, `{"ok":true,"result":"` + leak + `"}`, nil },
		"update":     func() (int, string, error) { return ok(`[{"update_id":1,"message":{"chat":"` + leak + `"}}]`) },
		"wrong token": func() (int, string, error) {
			return refusal(401, "Unauthorized: "+leak)
		},
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			polled := false
			p, logged := newFake(t, func(_ context.Context, method string, _ url.Values) (int, string, error) {
				switch method {
				case "getMe":
					return ok(me)
				case "getWebhookInfo":
					return ok(`{}`)
				case "getUpdates":
					if polled {
						cancel()
					}
					polled = true
				}
				return answer()
			})
			p.conflictWait = 1
			chat := chats.Chat{Platform: platformName, ID: "-5"}
			var errs []error
			_, err := p.Send(ctx, private, chats.Part{Text: "hi"})
			errs = append(errs, err, p.SetTyping(ctx, private, true), p.ListCommands(ctx, nil, nil),
				p.FetchFile(ctx, chats.Attachment{Ref: "f"}, &strings.Builder{}), p.api.download(ctx, "photos/1.jpg", &strings.Builder{}))
			_, err = p.IsAdmin(ctx, chat, "5")
			errs = append(errs, err)
			p.health.start()
			r := &receiver{platform: p, in: newInbox(), decode: *newDecoder(), pauses: retry.New(minBackOff, maxBackOff)}
			r.decode.log = p.log
			_ = r.pollOnce(ctx)
			_ = r.pollOnce(ctx)
			errs = append(errs, p.Health())
			for _, err := range errs {
				for e := err; e != nil; e = errors.Unwrap(e) {
					if strings.Contains(e.Error(), secret) {
						t.Errorf("%T tells the token: %v", e, e)
					}
				}
			}
			if strings.Contains(logged.String(), secret) {
				t.Errorf("the log tells the token:\n%s", logged)
			}
		})
	}
}

func TestFetchIsBounded(t *testing.T) {
	for name, size := range map[string]int{"at the limit": maxFile, "beyond it": maxFile + 1} {
		t.Run(name, func(t *testing.T) {
			data := strings.Repeat("x", size)
			p, _ := newFake(t, func(_ context.Context, method string, _ url.Values) (int, string, error) {
				if method == "getFile" {
					return ok(`{"file_id":"f","file_path":"documents/a b?.bin"}`)
				}
				return 200, data, nil
			})
			var w strings.Builder
			err := p.FetchFile(t.Context(), chats.Attachment{Ref: "f"}, &w)
			if size <= maxFile && (err != nil || w.Len() != size) || size > maxFile && !errors.Is(err, chats.ErrTooLarge) {
				t.Errorf("Fetch of %d bytes = %v after %d", size, err, w.Len())
			}
		})
	}
}

func TestFetchKeepsToItsFolder(t *testing.T) {
	p, _ := newFake(t, func(_ context.Context, method string, _ url.Values) (int, string, error) {
		if method != "getFile" {
			t.Errorf("asked for %s", method)
		}
		return ok(`{"file_id":"f","file_path":"../../bot1:2/getMe"}`)
	})
	if err := p.FetchFile(t.Context(), chats.Attachment{Ref: "f"}, &strings.Builder{}); err == nil {
		t.Error("a path that leads elsewhere was followed")
	}
}

func TestNewChecksItsConfig(t *testing.T) {
	for name, cfg := range map[string]config{
		"no token":      {},
		"no colon":      {Settings: Settings{Token: "SECRET"}},
		"a sentence":    {Settings: Settings{Token: "1:SECRET token"}},
		"no scheme":     {Settings: Settings{Token: testToken, APIURL: "api.telegram.org"}},
		"other scheme":  {Settings: Settings{Token: testToken, APIURL: "ftp://SECRET@x"}},
		"long poll":     {Settings: Settings{Token: testToken}, pollTimeout: time.Minute},
		"half a second": {Settings: Settings{Token: testToken}, pollTimeout: 1500 * time.Millisecond},
		"negative":      {Settings: Settings{Token: testToken}, callTimeout: -1},
	} {
		if p, err := newPlatform(cfg); err == nil || p != nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: New = %v, %v", name, p, err)
		}
	}
	if _, err := newPlatform(config{Settings: Settings{Token: testToken + "\n", APIURL: "https://proxy.test/telegram%20api/"}}); err != nil {
		t.Errorf("New = %v", err)
	}
}

// Tokens appear in no log.
func TestNoTokenByRedirect(t *testing.T) {
	var referer string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		referer += r.Method + r.Referer()
	}))
	defer elsewhere.Close()
	api := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer api.Close()
	client := api.Client()
	p, err := newPlatform(config{Settings: Settings{Token: testToken, APIURL: api.URL}, httpClient: client})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.api.download(t.Context(), "photos/1.jpg", &strings.Builder{}); err == nil {
		t.Error("a redirect was taken for a file")
	}
	if _, err := p.Send(t.Context(), private, chats.Part{Text: "hi"}); err == nil {
		t.Error("a redirect was taken for an answer")
	}
	if referer != "" {
		t.Errorf("redirects were followed, with %q", referer)
	}
}

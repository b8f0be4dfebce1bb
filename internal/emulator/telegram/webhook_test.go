package telegram_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tg "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/internal/emulator/telegram"
)

// hook is a webhook that answers as it is told and notes what came.
type hook struct {
	mu      sync.Mutex
	answers []int // what to answer, then 200
	texts   []string
	bad     []string
	hold    chan struct{} // what begins with "hold" waits for it
	held    chan struct{}
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var u struct {
		ID      int64 `json:"update_id"`
		Message struct{ Text string }
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &u) != nil || u.ID == 0 || r.Method != http.MethodPost ||
		r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Telegram-Bot-Api-Secret-Token") != "s3cret" {
		h.mu.Lock()
		h.bad = append(h.bad, string(body))
		h.mu.Unlock()
	}
	if strings.HasPrefix(u.Message.Text, "hold") {
		h.held <- struct{}{}
		<-h.hold
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts = append(h.texts, u.Message.Text)
	if len(h.answers) > 0 {
		w.WriteHeader(h.answers[0])
		h.answers = h.answers[1:]
	}
}

func (h *hook) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.texts)
}

// hooked is a server that delivers to a webhook.
func hooked(t *testing.T, h *hook) *fixture {
	h.hold, h.held = make(chan struct{}), make(chan struct{}, 10)
	web := httptest.NewTLSServer(h)
	t.Cleanup(web.Close)
	f := start(t, telegram.Config{WebhookClient: web.Client(), WebhookRetryDelay: 10 * time.Millisecond})
	f.call("setWebhook", tg.Params{"url": web.URL + "/hook", "secret_token": "s3cret", "allowed_updates": `["message"]`}, nil)
	return f
}

func TestWebhookGetsUpdatesInTheOrderOfTheirChat(t *testing.T) {
	h := &hook{answers: []int{503, 500, 302}}
	f := hooked(t, h)
	chat := f.user
	f.say(chat, "one", nil)
	last := f.say(chat, "two", nil)
	f.wait(func(s telegram.State) bool { return s.IsConfirmed(last.Update) })
	if got, want := h.seen(), []string{"one", "one", "one", "one", "two"}; !slices.Equal(got, want) {
		t.Errorf("posted %q, want %q", got, want)
	}
	if len(h.bad) > 0 {
		t.Errorf("odd requests: %q", h.bad)
	}
	var info struct {
		Pending int    `json:"pending_update_count"`
		Error   string `json:"last_error_message"`
		Most    int    `json:"max_connections"`
	}
	f.call("getWebhookInfo", nil, &info)
	if info.Pending != 0 || info.Most != 40 || info.Error != "Wrong response from the webhook: 302 Found" {
		t.Errorf("getWebhookInfo: %+v", info)
	}
}

func TestWebhookHoldsUpNoOtherChat(t *testing.T) {
	h := &hook{}
	f := hooked(t, h)
	slow := f.user
	other := f.chat(telegram.ChatSpec{Kind: telegram.Group, Title: "G", User: f.user, BotAdmin: true})
	f.say(slow, "hold on", nil)
	<-h.held
	last := f.say(slow, "behind", nil)
	beside := f.say(other, "beside", nil)
	f.wait(func(s telegram.State) bool { return s.IsConfirmed(beside.Update) && !s.IsConfirmed(last.Update) })
	close(h.hold)
	f.wait(func(s telegram.State) bool { return s.IsConfirmed(last.Update) })
	if got, want := h.seen(), []string{"beside", "hold on", "behind"}; !slices.Equal(got, want) {
		t.Errorf("posted %q, want %q", got, want)
	}
}

func TestWebhookFaultsAndItsEnd(t *testing.T) {
	h := &hook{}
	f := hooked(t, h)
	chat := f.user
	for _, effect := range []telegram.Effect{telegram.Duplicate, telegram.CutAfter, telegram.CutBefore} {
		if _, err := f.Inject(telegram.Fault{Method: "webhook", Times: 1, Effect: effect}); err != nil {
			t.Fatal(err)
		}
		sent := f.say(chat, string(effect), nil)
		f.wait(func(s telegram.State) bool { return s.IsConfirmed(sent.Update) })
	}
	if got, want := h.seen(), []string{"duplicate", "duplicate", "cut_after", "cut_after", "cut_before"}; !slices.Equal(got, want) {
		t.Errorf("posted %q, want %q", got, want)
	}
	f.call("deleteWebhook", nil, nil)
	f.say(chat, "polled", nil)
	if got := f.updates(nil); len(got) != 1 || len(h.seen()) != 5 {
		t.Errorf("after the webhook: %v, posted %q", got, h.seen())
	}
}

func TestWebhooksThatAreRefused(t *testing.T) {
	f := start(t, telegram.Config{})
	for address, want := range map[string]string{
		"http://bot.example/hook":       "HTTPS URL must be provided",
		"https://bot.example:8787/hook": "only on ports 80, 88, 443 or 8443",
		"https://127.0.0.1/hook":        "is reserved",
		"https://10.1.2.3:8443/hook":    "is reserved",
	} {
		if e := f.refusal("setWebhook", tg.Params{"url": address}); e.Code != 400 || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %d %q", address, e.Code, e.Message)
		}
	}
	for secret, want := range map[string]string{strings.Repeat("x", 257): "too long", "a:b": "unallowed characters"} {
		if e := f.refusal("setWebhook", tg.Params{"url": "https://bot.example/hook", "secret_token": secret}); !strings.Contains(e.Message, want) {
			t.Errorf("secret %.10s: %q", secret, e.Message)
		}
	}
}

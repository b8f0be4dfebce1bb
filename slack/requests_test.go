package slack

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	emulator "oneclaw/internal/emulator/slack"
)

// posted is a platform that is posted its events.
func posted(t *testing.T) *fixture {
	t.Helper()
	var handler http.Handler
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(app.Close)
	cfg := quick()
	cfg.EventsURL = app.URL
	cfg.RetryDelays = slices.Repeat([]time.Duration{20 * time.Millisecond}, 100) // until it runs
	f := setup(t, cfg, func(c *config) { c.AppToken, c.SigningSecret = "", emulator.DefaultSigningSecret })
	handler = f.p.Events()
	return f
}

func TestPostedEvents(t *testing.T) {
	f := posted(t)
	f.in.errs = []error{errors.New("disk full")}
	if err := f.VerifyURL(); err != nil {
		t.Error(err)
	}
	f.run()
	sent := f.say(f.channel, "<@U0BOT> hi", nil)
	f.acked(sent)
	for _, m := range f.in.wait(t, 2) {
		if m.Text != "hi" || m.Chat != chatOf(f.channel, sent.TS) {
			t.Errorf("got %+v", m)
		}
	}
	command, err := f.Command(f.channel, f.user, "/oneclaw", "clear")
	if err != nil {
		t.Fatal(err)
	}
	f.acked(command)
	f.wait(func(s emulator.State) bool { return s.CountAnswers(f.channel) == 1 })
	if m := f.Messages(f.channel)[1]; m.Ephemeral != f.user || !strings.Contains(m.Text, "mention me in the thread") {
		t.Errorf("got %+v", m)
	}
	if err := f.p.Health(); err != nil {
		t.Error(err)
	}
	f.View(func(s emulator.State) {
		if s.OpenedSockets() != 0 {
			t.Error("a socket was opened")
		}
	})
}

// A message waits for the one before it, whose file has to be looked up.
func TestPostedEventsAreAcceptedInOrder(t *testing.T) {
	f := posted(t)
	f.run()
	f.inject(emulator.Fault{Method: "files.info", Times: 1, Effect: emulator.Slow, Delay: time.Second})
	first := f.say(f.dm, "first", &emulator.SayOptions{Files: []emulator.Attachment{{Name: "a.txt", MIME: "text/plain", Data: []byte("a"), NeedsLookup: true}}})
	f.wait(func(s emulator.State) bool { return s.CallCount("files.info") > 0 })
	second := f.say(f.dm, "second", nil)
	got := f.in.wait(t, 2)
	if got[0].Text != "first" || got[1].Text != "second" {
		t.Errorf("accepted %q, then %q", got[0].Text, got[1].Text)
	}
	f.acked(first, second)
}

// TestPostedHealthComesBack has nothing posted to an app that counts as ill.
func TestPostedHealthComesBack(t *testing.T) {
	f := posted(t)
	f.run()
	f.acked(f.say(f.dm, "x", nil))
	f.stop()
	synctest.Test(t, func(t *testing.T) {
		h := &f.p.health
		h.withLock(func() { h.running, h.openSockets = true, 1 })
		h.recordAccept(errors.New("disk full"))
		if err := f.p.Health(); err == nil {
			t.Error("well although nothing is kept")
		}
		time.Sleep(unhealthyPeriod)
		if err := f.p.Health(); err != nil {
			t.Errorf("later: %v", err)
		}
	})
}

func TestSignatures(t *testing.T) {
	f := posted(t)
	f.run()
	f.wait(func(s emulator.State) bool { return s.CallCount("auth.test") > 0 })
	body := `{"type":"url_verification","challenge":"c-1"}`
	now := time.Now()
	change := func(h http.Header, key, value string) http.Header {
		h = maps.Clone(h)
		h.Set(key, value)
		return h
	}
	good := f.SignatureHeaders([]byte(body), now)
	tests := []struct {
		name   string
		header http.Header
		body   string
		want   int
	}{
		{"good", good, body, http.StatusOK},
		{"other body", good, body + " ", http.StatusUnauthorized},
		{"no headers", http.Header{}, body, http.StatusUnauthorized},
		{"no signature", change(good, "X-Slack-Signature", ""), body, http.StatusUnauthorized},
		{"short signature", change(good, "X-Slack-Signature", "v0=00"), body, http.StatusUnauthorized},
		{"no hex", change(good, "X-Slack-Signature", "v0=zz"), body, http.StatusUnauthorized},
		{"other version", change(good, "X-Slack-Signature", "v1="+good.Get("X-Slack-Signature")[3:]), body, http.StatusUnauthorized},
		{"other time", change(good, "X-Slack-Request-Timestamp", strconv.FormatInt(now.Unix()-1, 10)), body, http.StatusUnauthorized},
		{"no time", change(good, "X-Slack-Request-Timestamp", "soon"), body, http.StatusUnauthorized},
		{"old", f.SignatureHeaders([]byte(body), now.Add(-6*time.Minute)), body, http.StatusUnauthorized},
		{"from the future", f.SignatureHeaders([]byte(body), now.Add(6*time.Minute)), body, http.StatusUnauthorized},
		{"no JSON", f.SignatureHeaders([]byte("x"), now), "x", http.StatusBadRequest},
		{"too large", good, strings.Repeat("x", (1<<20)+1), http.StatusRequestEntityTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/slack/events", strings.NewReader(tt.body))
			maps.Copy(req.Header, tt.header)
			req.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			f.p.Events().ServeHTTP(w, req)
			if w.Code != tt.want {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			if challenged := strings.Contains(w.Body.String(), "c-1"); challenged != (tt.want == http.StatusOK) {
				t.Errorf("answered %s", w.Body)
			}
		})
	}
	f.noSecrets(f.log.String())
}

func TestRequestsBeforeRun(t *testing.T) {
	f := posted(t)
	body := `{"type":"event_callback","team_id":"T0ONECLAW","event":{"type":"message","channel":"D1","channel_type":"im","user":"U1","text":"x","ts":"1.000001"}}`
	for method, want := range map[string]int{http.MethodPost: http.StatusServiceUnavailable, http.MethodGet: http.StatusMethodNotAllowed} {
		req := httptest.NewRequestWithContext(t.Context(), method, "/slack/events", strings.NewReader(body))
		maps.Copy(req.Header, f.SignatureHeaders([]byte(body), time.Now()))
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		f.p.Events().ServeHTTP(w, req)
		if w.Code != want {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
}

func TestForms(t *testing.T) {
	tests := []struct {
		name, contentType, body string
		kind, payload           string
		ok                      bool
	}{
		{"event", "application/json; charset=utf-8", `{"a":1}`, kindEvent, `{"a":1}`, true},
		{"command", "application/x-www-form-urlencoded", "command=%2Foneclaw&text=a+b", kindCommand, `{"command":"/oneclaw","text":"a b"}`, true},
		{"press", "application/x-www-form-urlencoded", "payload=%7B%7D", kindInteractive, `{}`, true},
		{"other form", "application/x-www-form-urlencoded", "a=b", "", "", false},
		{"bad form", "application/x-www-form-urlencoded", "%zz", "", "", false},
		{"bad JSON", "application/json", "{", "", "", false},
		{"text", "text/plain", "{}", "", "", false},
		{"nothing", "", "{}", "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kind, payload, ok := readPayload(tt.contentType, []byte(tt.body))
			if ok != tt.ok || ok && (kind != tt.kind || string(payload) != tt.payload) {
				t.Errorf("got %s %s %t", kind, payload, ok)
			}
		})
	}
}

// Whoever reaches the port can have the log tell of it once a minute, with a count.
//
// Unsigned requests write few lines of log.
func TestUnsignedRequestsAreLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p, err := newPlatform(config{Settings: Settings{BotToken: "xoxb-1", SigningSecret: "secret"}, logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		flood := func(n int) {
			for range n {
				w := httptest.NewRecorder()
				p.Events().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/slack/events", strings.NewReader("{}")))
				if w.Code != http.StatusUnauthorized {
					t.Fatalf("got %d", w.Code)
				}
			}
		}
		flood(1000)
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "count=1 ") {
			t.Errorf("%d lines: %s", n, log.String())
		}
		minute, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		<-minute.Done()
		flood(1000)
		if n := strings.Count(log.String(), "\n"); n != 2 || !strings.Contains(log.String(), "count=1000 ") {
			t.Errorf("%d lines: %s", n, log.String())
		}
	})
}

// Without a signing secret anybody could sign: nothing is taken.
//
// Unsigned requests write few lines of log.
func TestNothingIsTakenWithoutASecret(t *testing.T) {
	f := setup(t, quick(), func(c *config) { c.SigningSecret = "" })
	body := `{"type":"url_verification","challenge":"c-1"}`
	now := strconv.FormatInt(time.Now().Unix(), 10)
	sum := hmac.New(sha256.New, nil)
	sum.Write([]byte("v0:" + now + ":" + body))
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/slack/events", strings.NewReader(body))
	req.Header = http.Header{
		"X-Slack-Request-Timestamp": {now}, "X-Slack-Signature": {"v0=" + hex.EncodeToString(sum.Sum(nil))}, "Content-Type": {"application/json"},
	}
	w := httptest.NewRecorder()
	f.p.Events().ServeHTTP(w, req)
	if w.Code != http.StatusUnauthorized {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// Slack checks the certificate of a request URL without a signature, and takes any answer but 200 for a fault.
func TestTheCheckOfTheCertificateIsAnswered(t *testing.T) {
	t.Parallel()
	f := posted(t)
	const form = "application/x-www-form-urlencoded"
	for _, tt := range []struct {
		name, method, query, body, kind string
		want                            int
	}{
		{"form", http.MethodPost, "", "token=x&ssl_check=1", form, http.StatusOK},
		{"query", http.MethodGet, "?token=x&ssl_check=1", "", "", http.StatusOK},
		{"with a command", http.MethodPost, "", "command=%2Foneclaw&ssl_check=1", form, http.StatusUnauthorized},
		{"another value", http.MethodPost, "", "ssl_check=0", form, http.StatusUnauthorized},
		{"long", http.MethodPost, "", "ssl_check=1&x=" + strings.Repeat("x", maxCheck), form, http.StatusUnauthorized},
		{"JSON", http.MethodPost, "", `{"ssl_check":1}`, "application/json", http.StatusUnauthorized},
	} {
		req := httptest.NewRequestWithContext(t.Context(), tt.method, "/slack/events"+tt.query, strings.NewReader(tt.body))
		req.Header.Set("Content-Type", tt.kind)
		w := httptest.NewRecorder()
		f.p.Events().ServeHTTP(w, req)
		if w.Code != tt.want {
			t.Errorf("%s: got %d %s, want %d", tt.name, w.Code, w.Body, tt.want)
		}
	}
}

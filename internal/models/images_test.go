package models_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/budget"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/models"
	"oneclaw/internal/settings"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

// studio is a maker of pictures, with the server and the accounts behind it.
type studio struct {
	*models.ImageMaker
	server *openai.Server
	ledger *budget.Ledger
	// address is that of the server.
	address string
}

func ann() budget.Payer { return budget.Payer{User: "telegram:1", Chat: "telegram:1"} }

// newStudio makes a maker for a server, or for the emulator if address is empty.
func newStudio(t *testing.T, address string, images models.ImageSettings, limits budget.Limits) *studio {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "test.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := &studio{}
	if s.ledger, err = budget.Open(budget.Config{
		Now: time.Now, Store: store, Prices: budget.KnownPrices(), Limits: func(context.Context) (budget.Limits, error) { return limits, nil },
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.ledger.Close() })
	if address == "" {
		if s.server, err = openai.New(openai.Config{Key: "k"}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.server.Close(); err != nil {
				t.Error(err)
			}
		})
		if address, err = s.server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.address = address
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	if images.Model == "" {
		images.Model = openai.ImageModel
	}
	s.ImageMaker, err = models.NewImageMaker(images, models.MediaConfig{
		BaseURL: address, APIKey: "k", HTTPClient: &http.Client{Transport: transport}, Ledger: s.ledger,
		Payer: func(toolgroups.Scope) budget.Payer { return ann() }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// spent is what has been charged.
func (s *studio) spent(t *testing.T) budget.Usage {
	t.Helper()
	r, err := s.ledger.Report(t.Context(), ann())
	if err != nil {
		t.Fatal(err)
	}
	return r.User.Spent
}

// fault is the code and the text of an error for the model.
func fault(t *testing.T, err error) (code, text string) {
	t.Helper()
	told, ok := errors.AsType[*toolgroups.Error](err)
	if !ok {
		t.Fatalf("not an error for the model: %v", err)
	}
	return told.Code, told.Message
}

func TestPicturesCostWhatTheyUsed(t *testing.T) {
	s := newStudio(t, "", models.ImageSettings{Quality: "medium"}, budget.Limits{})
	made, err := s.MakeImage(t.Context(), toolgroups.Scope{}, "a cat", "1536x1024", nil)
	if err != nil || !bytes.HasPrefix(made, []byte("\x89PNG")) {
		t.Fatalf("%.20q, %v", made, err)
	}
	if got, want := s.spent(t), (budget.Usage{Calls: 1, Input: 2, Output: 658, Money: budget.Dollars(0.019756)}); got != want {
		t.Errorf("spent %+v, want %+v", got, want)
	}
	if _, err := s.MakeImage(t.Context(), toolgroups.Scope{}, "a blue cat", "1024x1024", made); err != nil {
		t.Fatal(err)
	}
	requests := s.server.Pictures()
	if got := s.spent(t); got.Calls != 2 || got.Output != 658+439 || len(requests) != 2 || !bytes.Equal(requests[1].Source, made) || requests[1].Quality != "medium" {
		t.Errorf("spent %+v", got)
	}
	flat := newStudio(t, "", models.ImageSettings{Model: openai.DefaultModel, USD: 0.07}, budget.Limits{})
	if _, err := flat.MakeImage(t.Context(), toolgroups.Scope{}, "a cat", "1024x1024", nil); err != nil {
		t.Fatal(err)
	}
	if got := flat.spent(t); got.Money != budget.Dollars(0.07) || got.Unpriced != 0 || got.Output != 7024 {
		t.Errorf("at a price of its own, and without a reported usage, %+v is spent", got)
	}
}

// What a failure says, and whether it is paid: only what surely made nothing costs nothing. No request is
// repeated.
func TestFailedPictures(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	refusal := func(status int, code, text string) http.HandlerFunc {
		return answer(status, fmt.Sprintf(`{"error":{"message":%q,"type":"t","code":%q}}`, text, code))
	}
	for name, c := range map[string]struct {
		server     http.HandlerFunc
		code, says string
		paid       bool
	}{
		"filter":       {refusal(400, "moderation_blocked", "Your request was rejected by the safety system."), "refused_by_provider", "filter refused", false},
		"older filter": {refusal(400, "content_policy_violation", "Rejected."), "refused_by_provider", "filter refused", false},
		"size":         {refusal(400, "invalid_value", "Invalid value: '1024x1024'."), "refused_by_provider", "Invalid value", false},
		"model":        {refusal(404, "model_not_found", "There is no such model."), "refused_by_provider", "no such model", false},
		"key":          {refusal(401, "invalid_api_key", "Incorrect API key provided: k."), "images_unavailable", "rejects the key", false},
		"often":        {refusal(429, "rate_limit_exceeded", "Slow down."), "images_unavailable", "Slow down.", false},
		"credit":       {refusal(429, "insufficient_quota", "You exceeded your quota."), "images_unavailable", "has to top it up", false},
		"down":         {refusal(503, "", "Overloaded."), "outcome_unknown", "Overloaded.", true},
		"gateway":      {answer(502, "<html>bad gateway</html>"), "outcome_unknown", "do not try again by yourself", true},
		"cut off":      {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "outcome_unknown", "EOF", true},
		"nothing":      {answer(200, `{"created":1,"data":[]}`), "outcome_unknown", "no picture", true},
		"an address":   {answer(200, `{"data":[{"url":"http://10.0.0.1/a.png"}]}`), "outcome_unknown", "addresses", true},
		"no base64":    {answer(200, `{"data":[{"b64_json":"%%%"}]}`), "outcome_unknown", "illegal base64", true},
		"no JSON":      {answer(200, `<html>`), "outcome_unknown", "invalid character", true},
		"types":        {answer(200, `{"data":"x"}`), "outcome_unknown", "cannot unmarshal", true},
		"too large":    {answer(200, `{"data":[{"b64_json":"`+strings.Repeat("A", 17<<20)), "outcome_unknown", "too large", true},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				c.server(w, r)
			}))
			defer server.Close()
			s := newStudio(t, server.URL, models.ImageSettings{Quality: "low"}, budget.Limits{})
			for _, source := range [][]byte{nil, small(t)} {
				before := s.spent(t)
				_, err := s.MakeImage(t.Context(), toolgroups.Scope{}, "a cat", "1024x1024", source)
				code, text := fault(t, err)
				if code != c.code || !strings.Contains(text, c.says) || strings.Contains(text, "API key provided: k") {
					t.Errorf("%s: %s", code, text)
				}
				if got := s.spent(t); got != before && !c.paid || c.paid && got.Output != before.Output+272 {
					t.Errorf("spent %+v after %+v", got, before)
				}
			}
			if n := requests.Load(); n != 2 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// small is a picture.
func small(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 30, 20))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPicturesOfNobody(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	s := newStudio(t, gone.URL, models.ImageSettings{}, budget.Limits{})
	_, err := s.MakeImage(t.Context(), toolgroups.Scope{}, "a cat", "1024x1024", nil)
	if code, text := fault(t, err); code != "images_unavailable" || !strings.Contains(text, "cannot be reached") || s.spent(t) != (budget.Usage{}) {
		t.Errorf("%s: %s, spent %+v", code, text, s.spent(t))
	}
	s = newStudio(t, "", models.ImageSettings{}, budget.Limits{User: budget.Limit{Tokens: 5000}})
	if _, err := s.MakeImage(t.Context(), toolgroups.Scope{}, "a cat", "1024x1024", nil); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		_, err = s.MakeImage(t.Context(), toolgroups.Scope{}, "a cat", "1024x1024", nil)
	}
	if code, text := fault(t, err); code != "no_budget" || !strings.Contains(text, "Today's budget is used up") || len(s.server.Pictures()) != 3 {
		t.Errorf("%s: %s, after %d pictures", code, text, len(s.server.Pictures()))
	}
}

// A call that takes too long, or that the user stops, stays paid.
func TestPicturesThatAreNotWaitedFor(t *testing.T) {
	s := newStudio(t, "", models.ImageSettings{Quality: "low"}, budget.Limits{})
	reached, free := make(chan struct{}, 2), make(chan struct{})
	s.server.OnPicture(func(openai.PictureRequest) *openai.Error { reached <- struct{}{}; <-free; return nil })
	defer close(free)
	late, cancel := context.WithDeadlineCause(t.Context(), time.Now().Add(time.Hour), nil)
	defer cancel()
	stopped, stop := context.WithCancel(late)
	go func() { <-reached; stop() }()
	if _, err := s.MakeImage(stopped, toolgroups.Scope{}, "a cat", "1024x1024", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	slow, over := context.WithCancelCause(t.Context())
	go func() { <-reached; over(context.DeadlineExceeded) }()
	_, err := s.MakeImage(slow, toolgroups.Scope{}, "a cat", "1024x1024", nil)
	if code, text := fault(t, err); code != "outcome_unknown" || !strings.Contains(text, "too long") {
		t.Errorf("%s: %s", code, text)
	}
	if got := s.spent(t); got.Calls != 2 || got.Output != 2*272 {
		t.Errorf("spent %+v", got)
	}
}

func TestImageSettings(t *testing.T) {
	const own, other = "https://api.openai.com/v1", "http://127.0.0.1:9/v1"
	for _, c := range []struct {
		settings models.ImageSettings
		draws    bool
		err      string
	}{
		{models.ImageSettings{}, false, ""},
		{models.ImageSettings{Model: "gpt-image-2"}, true, ""},
		{models.ImageSettings{BaseURL: other}, false, "images.model"},
		{models.ImageSettings{BaseURL: "no address", Model: "flux"}, false, "images"},
	} {
		m, err := models.NewImageMaker(c.settings, models.MediaConfig{BaseURL: own, APIKey: "k"})
		if (m != nil) != c.draws || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v, %v", c.settings, m, err)
		}
	}
	got := "none"
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
	defer server.Close()
	s := newStudio(t, own, models.ImageSettings{BaseURL: server.URL, Model: "flux"}, budget.Limits{})
	for _, source := range [][]byte{nil, small(t)} {
		if _, err := s.MakeImage(t.Context(), toolgroups.Scope{}, "a cat", "1024x1024", source); err == nil || got != "" {
			t.Errorf("%v, sent with %q", err, got)
		}
	}
}

// Speech is paid first, at an estimate. What surely was not made costs nothing.
func TestSpeechIsPaid(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(openai.SpeechRequest) *openai.Error
		limits budget.Limits
		says   string
		paid   bool
	}{
		"spoken":    {nil, budget.Limits{}, "", true},
		"refused":   {func(openai.SpeechRequest) *openai.Error { return &openai.Error{Status: 400, Message: "No."} }, budget.Limits{}, "No.", false},
		"down":      {func(openai.SpeechRequest) *openai.Error { return &openai.Error{Status: 503, Message: "Down."} }, budget.Limits{}, "Down.", true},
		"no budget": {nil, budget.Limits{User: budget.Limit{Tokens: 1}}, "budget", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStudio(t, "", models.ImageSettings{}, c.limits)
			s.server.OnSpeech(c.answer)
			if name == "no budget" {
				if _, err := s.ledger.Prepay(t.Context(), ann(), "m", budget.Usage{Input: 1}); err != nil {
					t.Fatal(err)
				}
			}
			before := s.spent(t)
			sound, err := s.voice(t, settings.VoiceOn, false)(t.Context(), "Buy milk.", chats.VoiceOpus)
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) || err == nil && !bytes.HasPrefix(sound, []byte("OggS")) {
				t.Errorf("%.20q, %v", sound, err)
			}
			if got := s.spent(t); c.paid && got != (budget.Usage{Calls: 1, Input: 3, Output: 13, Money: budget.Dollars(0.0001578)}) || !c.paid && got != before {
				t.Errorf("spent %+v", got)
			}
		})
	}
}

// A character of Chinese, Japanese or Korean takes as long as three others.
func TestSpeechIsPaidByItsLength(t *testing.T) {
	for text, output := range map[string]int64{strings.Repeat("Buy milk. ", 10): 134, strings.Repeat("牛乳を買う。", 10): 236, strings.Repeat("우유를 사다.", 10): 249} {
		s := newStudio(t, "", models.ImageSettings{}, budget.Limits{})
		if _, err := s.voice(t, settings.VoiceOn, false)(t.Context(), text, chats.VoiceOpus); err != nil {
			t.Fatal(err)
		}
		if got := s.spent(t).Output; got != output {
			t.Errorf("%.30s: %d tokens, want %d", text, got, output)
		}
	}
}

// What comes back and is no recording is not sent on. It may have been made, so it counts as paid.
func TestSpeechThatIsNoRecording(t *testing.T) {
	for name, answer := range map[string]string{
		"empty": "", "a page": "<html>", "an error": `{"error": {"message": "No."}}`, "another format": "\xff\xfb\x90\x00", "no Opus": "OggS" + strings.Repeat("\x00", 60) + "OpusHead",
		"without end": "OggS" + strings.Repeat("\x00", 17<<20),
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, answer) // who has read enough leaves
			}))
			defer server.Close()
			s := newStudio(t, server.URL, models.ImageSettings{}, budget.Limits{})
			sound, err := s.voice(t, settings.VoiceOn, false)(t.Context(), "Buy milk.", chats.VoiceOpus)
			if err == nil || sound != nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("%.20q, %v", sound, err)
			}
			if got := s.spent(t); got.Calls != 1 || got.Money == 0 {
				t.Errorf("spent %+v", got)
			}
		})
	}
}

func TestWhenAnswersAreSpoken(t *testing.T) {
	s := newStudio(t, "", models.ImageSettings{}, budget.Limits{})
	for choice, want := range map[string][2]bool{"": {false, true}, settings.VoiceAuto: {false, true}, settings.VoiceOn: {true, true}, settings.VoiceOff: {false, false}} {
		for i, heard := range []bool{false, true} {
			if got := s.voice(t, choice, heard) != nil; got != want[i] {
				t.Errorf("%q, heard %v: spoken %v", choice, heard, got)
			}
		}
	}
	if _, err := models.NewSpeaker(models.SpeechSettings{BaseURL: "http://127.0.0.1:9"}, models.MediaConfig{}, settings.Chats{}); err == nil || !strings.Contains(err.Error(), "speech.model") {
		t.Errorf("an address without a model: %v", err)
	}
}

// voice returns the function that speaks an answer in a chat that has made a choice.
func (s *studio) voice(t *testing.T, choice string, heard bool) func(context.Context, string, string) ([]byte, error) {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "settings.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	stored, _, err := settings.Open(settings.Config{Now: time.Now, KV: store, SecretKey: make([]byte, 32), Agents: []settings.Agent{{ID: "a", Name: "A", Prompt: "p"}}})
	if err == nil {
		err = stored.Chats.SetVoice(t.Context(), "telegram:1", choice)
	}
	if err != nil {
		t.Fatal(err)
	}
	speaker, err := models.NewSpeaker(models.SpeechSettings{Model: openai.SpeechModel}, models.MediaConfig{
		BaseURL: s.address, APIKey: "k", HTTPClient: http.DefaultClient, Ledger: s.ledger,
		Payer: func(toolgroups.Scope) budget.Payer { return ann() }, Logger: slog.New(slog.DiscardHandler),
	}, stored.Chats)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return speaker.SpeechFor(t.Context(), toolgroups.Scope{Chat: "telegram:1"}, heard)
}

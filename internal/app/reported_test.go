package app_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"oneclaw/internal/app"
	"oneclaw/internal/config"
	"oneclaw/internal/redact"
)

// Replicas share the vault, and each masks what it knows.
func TestAVariableSetAtAnotherReplicaIsMasked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	telegram := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ctx.Done():
		}
	}))
	t.Cleanup(telegram.Close)
	cfg := config.Default()
	cfg.DataDir, cfg.Redact = t.TempDir(), redact.New()
	cfg.Listen, cfg.Telegram.Token, cfg.Telegram.APIURL = "127.0.0.1:0", "1:x", telegram.URL
	read := make(chan struct{}, 10) // all variables, of which the last cannot be
	log := slog.New(slog.NewTextHandler(called{"cannot read a variable", func() { read <- struct{}{} }}, nil))
	store, err := app.OpenStore(ctx, cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	set := func(name, value string, key redact.Secret) {
		other := cfg
		other.Redact, other.SecretKey = redact.New(), key
		there, _, err := app.OpenSettings(other, store, slog.New(slog.DiscardHandler))
		if err == nil {
			err = there.Variables.Set(ctx, name, value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set("Z_VALUE", "x", "another key, of which it knows nothing")
	bot, err := app.New(ctx, cfg, store, log)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- bot.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, bot.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})

	<-read // by New
	<-read // by Run, which watches
	set("A_VALUE", "known-at-both-7", cfg.SecretKey)
	<-read
	if got := cfg.Redact.Text("It is known-at-both-7."); got != "It is ••••." {
		t.Errorf("shown: %q", got)
	}
}

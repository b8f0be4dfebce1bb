package app

import (
	"log/slog"
	"testing"

	"oneclaw/internal/config"
	"oneclaw/internal/redact"
	"oneclaw/internal/settings"
)

// Replicas share the vault, and each masks what it knows.
func TestAVariableSetAtAnotherReplicaIsMasked(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir, cfg.Redact = t.TempDir(), redact.New()
	other := cfg
	other.Redact = redact.New()
	log := slog.New(slog.DiscardHandler)
	store, err := OpenStore(t.Context(), cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	here, vault, err := OpenSettings(cfg, store, log)
	if err != nil {
		t.Fatal(err)
	}
	there, _, err := OpenSettings(other, store, log)
	if err != nil {
		t.Fatal(err)
	}
	if err := there.Variables.Set(t.Context(), "A_VALUE", "known-at-both-7"); err != nil {
		t.Fatal(err)
	}
	if err := (&catalogue{log: log, settings: here, vault: vault}).applyChange(t.Context(), settings.AreaVariables); err != nil {
		t.Fatal(err)
	}
	if got := cfg.Redact.Text("It is known-at-both-7."); got != "It is ••••." {
		t.Errorf("shown: %q", got)
	}
}

package app_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"oneclaw/internal/app"
	"oneclaw/internal/config"
	"oneclaw/internal/workspace"
)

// A folder that was not in the store for a while is not replaced by what the store has of it.
func TestFilesOfATimeWithoutTheStoreAreMovedAside(t *testing.T) {
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	write := func(name string) {
		dir := workspace.OwnerDir(cfg.DataDir, "telegram:7")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start := func(files string) {
		cfg.Tools.Files = files
		if err := app.WithBot(t.Context(), cfg, slog.New(slog.NewTextHandler(t.Output(), nil)), func(*app.Bot) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	start(config.FilesLocal)
	write("a")
	start("store")
	start(config.FilesLocal)
	write("b")
	start("store")
	if data, err := os.ReadFile(filepath.Join(cfg.DataDir, "workspaces-not-stored", "telegram:7", "b")); string(data) != "b" {
		t.Errorf("%q, %v", data, err)
	}
}

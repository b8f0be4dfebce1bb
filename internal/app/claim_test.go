package app

import (
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"oneclaw/internal/config"
	"oneclaw/storage/bolt"
)

// On a terminal the link that claims the bot stands in a line of its own, and not in the log.
func TestTheTerminalShowsTheClaim(t *testing.T) {
	store, err := bolt.Open(bolt.Config{Path: t.TempDir() + "/db", NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	var terminal, log strings.Builder
	cfg := config.Default()
	cfg.Runtime.Now, cfg.Runtime.Terminal = time.Now, io.Writer(&terminal)
	offerClaim(t.Context(), cfg, store, slog.New(slog.NewTextHandler(&log, nil)))
	if !regexp.MustCompile(`(?m)^  claim \S+$`).MatchString(terminal.String()) || !strings.Contains(terminal.String(), "nobody may talk to it yet") || log.Len() > 0 {
		t.Errorf("the terminal shows\n%s\nand the log has\n%s", &terminal, &log)
	}
}

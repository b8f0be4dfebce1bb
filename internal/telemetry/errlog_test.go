package telemetry_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"oneclaw/internal/telemetry"
)

// The last warnings and errors are kept, masked and bounded, the newest first, whatever is logged.
func TestTheLastAreKept(t *testing.T) {
	ring := telemetry.NewRing(func(s string) string { return strings.ReplaceAll(s, "secret", "•••") })
	var out strings.Builder
	log := slog.New(ring.WrapHandler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError})))
	for i := range telemetry.MaxErrors + 50 {
		log.Info("no incident")
		log.With("chat", "secret").WithGroup("g").Warn(fmt.Sprint("warning ", i), "n", i, "long", strings.Repeat("x", 5000)) //nolint:sloglint // Each has to be told apart.
	}
	log.Error("the last", "err", fmt.Errorf("a secret"))
	all := ring.Last()
	if len(all) != telemetry.MaxErrors || all[0].Text != "the last" || all[0].Cause != "a •••" || all[0].Level != slog.LevelError {
		t.Fatalf("%d are kept, the newest %+v", len(all), all[0])
	}
	for i, one := range all[1:] {
		if want := fmt.Sprint("warning ", telemetry.MaxErrors+49-i); one.Text != want || one.Chat != "•••" || !strings.HasPrefix(one.Details, "g.n=") || len(one.Details) > 3000 {
			t.Fatalf("%+v, want %s", one, want)
		}
	}
	if strings.Count(out.String(), "\n") != 1 {
		t.Errorf("the log has %q", out.String())
	}
	var none *telemetry.Ring
	if none.Last() != nil || none.WrapHandler(slog.DiscardHandler) != slog.DiscardHandler {
		t.Error("no ring keeps something")
	}
}

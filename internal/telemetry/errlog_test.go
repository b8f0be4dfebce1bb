package telemetry_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"oneclaw/internal/telemetry"
)

// The last errors are kept, masked and bounded, the newest first, whatever is logged.
func TestTheLastAreKept(t *testing.T) {
	ring := telemetry.NewRing(func(s string) string { return strings.ReplaceAll(s, "secret", "•••") })
	var out strings.Builder
	log := slog.New(ring.WrapHandler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError + 1})))
	for i := range telemetry.MaxErrors + 50 {
		log.Warn("no error")
		log.With("job", "secret").WithGroup("g").Error(fmt.Sprint("error ", i), "err", "of the group", "long", strings.Repeat("x", 5000)) //nolint:sloglint // Each has to be told apart.
	}
	log.Error("the last", "err", errors.New("a secret"), "remedy", strings.Repeat("x", 5000))
	all := ring.Last()
	if len(all) != telemetry.MaxErrors || all[0].Text != "the last" || all[0].Cause != "a •••" || len(all[0].Remedy) > 3000 {
		t.Fatalf("%d are kept, the newest %+v", len(all), all[0])
	}
	for i, one := range all[1:] {
		if want := fmt.Sprint("error ", telemetry.MaxErrors+49-i); one.Text != want || one.Job != "•••" || one.Cause != "" {
			t.Fatalf("%+v, want %s", one, want)
		}
	}
	if out.Len() > 0 {
		t.Errorf("the log has %q", out.String())
	}
	var none *telemetry.Ring
	if none.Last() != nil || none.WrapHandler(slog.DiscardHandler) != slog.DiscardHandler {
		t.Error("no ring keeps something")
	}
}

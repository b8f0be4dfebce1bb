package schedule_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"oneclaw/toolgroups/schedule"
)

// TestARefusedRunEndsAtOnce: a run that can never be taken fails once, with one line
// in the log; the next one is tried again.
//
// Small faults: a field, a default, a task of a removed platform.
func TestARefusedRunEndsAtOnce(t *testing.T) {
	at(t, "UTC", "2026-06-10T05:00:00Z", func(t *testing.T, o *harness) {
		var log bytes.Buffer
		o.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.open()
		o.make(morning)
		o.refuses(fmt.Errorf("%w: no platform is named fake", schedule.ErrRefused))
		o.start()
		pass(20 * time.Hour)
		o.refuses(nil)
		pass(day)
		o.stop()
		if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
			t.Errorf("%d errors in the log, want one:\n%.2000s", n, log.String())
		}
		if got := o.take(); len(got) != 1 {
			t.Errorf("runs after the platform is back: %q", got)
		}
	})
}

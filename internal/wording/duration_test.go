package wording_test

import (
	"testing"
	"time"

	"oneclaw/internal/wording"
)

func TestDurationsAreWords(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                            "less than a second",
		30 * time.Millisecond:        "less than a second",
		time.Second:                  "a second",
		12400 * time.Millisecond:     "12 seconds",
		59700 * time.Millisecond:     "a minute",
		time.Minute:                  "a minute",
		61 * time.Second:             "1 minute and 1 second",
		90 * time.Second:             "1 minute and 30 seconds",
		15 * time.Minute:             "15 minutes",
		time.Hour - time.Millisecond: "an hour",
		time.Hour:                    "an hour",
		time.Hour + 20*time.Second:   "an hour",
		90 * time.Minute:             "1 hour and 30 minutes",
		24 * time.Hour:               "24 hours",
		25*time.Hour + time.Minute:   "25 hours and 1 minute",
	} {
		if got := wording.DurationInWords(d); got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
	}
}

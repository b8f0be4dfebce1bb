package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"oneclaw/internal/retry"
)

// Pauses stay between the bounds, grow, obey the other side, and begin anew.
func TestPauses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		first := time.Duration(rapid.IntRange(1, 1000).Draw(rt, "first")) * time.Millisecond
		longest := first * time.Duration(rapid.IntRange(2, 100).Draw(rt, "times"))
		p := retry.New(first, longest)
		for range 2 {
			if d := p.Next(0); d < first || d > 2*first {
				rt.Fatalf("the first pause is %s, want %s to %s", d, first, 2*first)
			}
			var last time.Duration
			for range 12 {
				last = p.Next(0)
				if last < first || last > longest {
					rt.Fatalf("a pause of %s, want %s to %s", last, first, longest)
				}
			}
			if last < longest/2 {
				rt.Fatalf("after 13 tries a pause of %s, want about %s", last, longest)
			}
			if d := p.Next(2 * longest); d != 2*longest {
				rt.Fatalf("a pause of %s where %s was asked for", d, 2*longest)
			}
			p.Reset()
		}
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if err := retry.Wait(t.Context(), time.Minute); err != nil || time.Since(begun) != time.Minute {
			t.Errorf("waited %s: %v", time.Since(begun), err)
		}
		cause := errors.New("over")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if err := retry.Wait(ctx, time.Hour); !errors.Is(err, cause) {
			t.Errorf("ended with %v, want the cause", err)
		}
		if err := retry.Wait(ctx, 0); !errors.Is(err, cause) {
			t.Errorf("an ended context: %v, want the cause", err)
		}
	})
}

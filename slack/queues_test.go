package slack

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
)

// Who waits for queued work learns that it panicked, and waits no longer than its context.
func TestWhoWaitsForWorkLearnsHowItEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newWorkQueues(slog.New(slog.DiscardHandler))
		failed := errors.New("failed")
		for name, c := range map[string]struct {
			work func() error
			want func(error) bool
		}{
			"done":   {func() error { return nil }, func(err error) bool { return err == nil }},
			"failed": {func() error { return failed }, func(err error) bool { return errors.Is(err, failed) }},
			"panic":  {func() error { panic("broken") }, func(err error) bool { return err != nil }},
		} {
			if err := q.do(t.Context(), "one", c.work); !c.want(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		release := make(chan struct{})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(failed)
		if err := q.do(ctx, "one", func() error { <-release; return nil }); !errors.Is(err, failed) {
			t.Errorf("after the end of the context: %v", err)
		}
		close(release)
		q.close()
		if err := q.do(t.Context(), "one", func() error { return nil }); err == nil {
			t.Error("work was taken after the end")
		}
	})
}

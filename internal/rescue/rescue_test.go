package rescue_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"oneclaw/internal/rescue"
)

func TestAPanicIsAnErrorWithItsStack(t *testing.T) {
	plain := errors.New("plain")
	if err := rescue.Do(func() error { return plain }); !errors.Is(err, plain) {
		t.Errorf("Do = %v", err)
	}
	err := rescue.Do(func() error { panic("boom") })
	if p, is := errors.AsType[*rescue.PanicError](err); !is || p.Value != "boom" || !strings.Contains(err.Error(), "rescue_test.go") {
		t.Errorf("Do = %v", err)
	}
}

func TestALoopThatPanicsGoesOnAndIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		runs, end := 0, errors.New("end")
		err := rescue.Loop(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), "the loop", func(context.Context) error {
			if runs++; runs < 3 {
				panic("boom")
			}
			return end
		})
		if !errors.Is(err, end) || runs != 3 || strings.Count(log.String(), "incident=") != 2 || !strings.Contains(log.String(), `in="the loop"`) {
			t.Errorf("Loop = %v after %d runs:\n%s", err, runs, &log)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if err := rescue.Loop(ctx, nil, "", func(context.Context) error { cancel(); panic("boom") }); err != nil {
			t.Errorf("Loop = %v after the end", err)
		}
	})
}

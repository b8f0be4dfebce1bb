package wire_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"oneclaw/internal/emulator/wire"
)

type event = wire.Event[int, string]

func TestHubCountsWhatASlowSubscriberMissed(t *testing.T) {
	l, mu := lifecycle()
	h := wire.NewHub[int, string](l)
	events, cancel := h.Subscribe(1)
	defer cancel()
	emit := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		h.Emit(event{Chat: n}, func() string { return strconv.Itoa(n) })
	}
	emit(1)
	emit(2)
	emit(3)
	if e := <-events; e.Chat != 1 || *e.Snapshot != "1" || e.Missed != 0 {
		t.Errorf("first: %+v", e)
	}
	emit(4)
	if e := <-events; e.Chat != 4 || *e.Snapshot != "4" || e.Missed != 2 {
		t.Errorf("after two that did not fit: %+v", e)
	}
	if err := l.Close(h.Close); err != nil {
		t.Fatal(err)
	}
	late, cancelLate := h.Subscribe(1)
	cancelLate()
	for _, ch := range []<-chan event{events, late} {
		if e, open := <-ch; open {
			t.Errorf("event after the end: %+v", e)
		}
	}
}

func TestHubWaitsForACondition(t *testing.T) {
	l, mu := lifecycle()
	h := wire.NewHub[int, string](l)
	n, seen := 0, make(chan struct{}, 10)
	waited := make(chan error, 1)
	go func() {
		waited <- h.WaitFor(t.Context(), func() bool { seen <- struct{}{}; return n == 2 })
	}()
	for range 2 {
		<-seen
		mu.Lock()
		n++
		h.Wake()
		mu.Unlock()
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	never := func() bool { return false }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.WaitFor(ctx, never); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	if err := l.Close(h.Close); err != nil {
		t.Fatal(err)
	}
	if err := h.WaitFor(t.Context(), never); !errors.Is(err, errEnded) {
		t.Errorf("after the end: %v", err)
	}
}

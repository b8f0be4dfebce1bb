package named_test

import (
	"context"
	"errors"
	"testing"

	"oneclaw/internal/named"
)

func TestEachNameLetsItsNumberThrough(t *testing.T) {
	s := named.New(2)
	acquire := func(name string) func() {
		release, err := s.Acquire(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	first, second, other := acquire("a"), acquire("a"), acquire("b")
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := s.Acquire(ended, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a third one got %v", err)
	}
	third := make(chan func())
	go func() { third <- acquire("a") }()
	first()
	(<-third)()
	second()
	other()
	if release, err := s.Acquire(ended, "a"); err != nil { // It is free, so that nobody waits.
		t.Error(err)
	} else {
		release()
	}
}

package database

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/storage"
)

// deafStore is a store whose watches end at once, like those on a server that cannot be reached.
type deafStore struct {
	storage.Store
	watches int
	most    func()
}

func (s *deafStore) Watch(context.Context, ...string) iter.Seq2[storage.Event, error] {
	if s.watches++; s.watches == 1000 {
		s.most()
	}
	return func(yield func(storage.Event, error) bool) { yield(storage.Event{}, errors.New("refused")) }
}

// A replica that waits for the others' format does not dial without a pause while the server is away.
func TestAnUpgradeThatWaitsDoesNotDialWithoutAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		deaf := &deafStore{most: cancel}
		s := &Store{deaf, &sharedDatabase{cfg: Config{Migrations: make([]Migration, 1), Logger: slog.New(slog.DiscardHandler)}}}
		if err := s.Upgrade(ctx); err != nil || deaf.watches > 100 || deaf.watches < 2 {
			t.Errorf("%d watches in a minute, %v", deaf.watches, err)
		}
	})
}

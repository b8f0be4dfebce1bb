package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"oneclaw/storage"
	"oneclaw/storage/replicas"
)

// build is a program that knows so many formats above the lowest, opened and joined.
type build struct {
	*Store
	stop  func() error
	lease chan string
}

// beatingTTL is longer than a busy machine lets a replica stand still; silentTTL is for where none runs.
const (
	beatingTTL = replicas.DefaultTTL
	silentTTL  = time.Second
)

func opened(t *testing.T, at Place, formats int, ttl time.Duration) (*Store, error) {
	t.Helper()
	var steps []Migration
	for range formats {
		steps = append(steps, func(ctx context.Context, store storage.Store, _ *slog.Logger) error {
			_, err := store.Put(ctx, "migrated", nil, storage.Any)
			return err
		})
	}
	return Open(t.Context(), Config{Place: at, Migrations: steps, TTL: ttl, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
}

// joined opens a database and has joined when it returns; stop leaves and closes it.
func joined(t *testing.T, at Place, formats int) *build {
	t.Helper()
	store, err := opened(t, at, formats, beatingTTL)
	if err != nil {
		t.Fatal(err)
	}
	b := &build{Store: store, lease: make(chan string, 9)}
	var once sync.Once
	in := make(chan struct{})
	r := replicas.New(replicas.Config{
		Store: store, Leases: []string{"one"}, Format: LowestFormat + formats, TTL: beatingTTL,
		Check: func(ctx context.Context) error {
			once.Do(func() { close(in) })
			return store.CheckFormat(ctx)
		},
		OnTaken: func(context.Context, map[string]storage.Op) error { b.lease <- "one"; return nil },
		OnLost:  func(string) {},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case <-in:
	case err := <-ended:
		t.Fatal(err)
	}
	b.stop = func() error {
		cancel()
		return errors.Join(<-ended, store.Close())
	}
	return b
}

func (b *build) upgraded(t *testing.T) chan error {
	done := make(chan error, 1)
	go func() { done <- b.Upgrade(t.Context()) }()
	return done
}

// TestANewFormatWaitsForTheLastOldReplica has newer programs join an old one. The format
// changes when the old one is gone, and not before; another old one is refused then.
func TestANewFormatWaitsForTheLastOldReplica(t *testing.T) {
	t.Parallel()
	at := onServer(t)
	old := joined(t, at, 1)
	<-old.lease
	_, err := old.Put(t.Context(), "k", nil, storage.Absent)
	if err != nil {
		t.Fatal(err)
	}
	first, second := joined(t, at, 2), joined(t, at, 2)
	if first.Format() != LowestFormat+1 || first.NewestKnown() != LowestFormat+2 {
		t.Errorf("beside an old replica the format is %d of %d", first.Format(), first.NewestKnown())
	}
	one, two := first.upgraded(t), second.upgraded(t)
	if _, err := opened(t, at, 3, beatingTTL); err == nil || !strings.Contains(err.Error(), "older replicas are running") {
		t.Errorf("two formats ahead: %v", err)
	}
	if _, err := first.Get(t.Context(), "migrated"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the format has changed beside an old replica: %v", err)
	}
	again := joined(t, at, 1) // as a rollback does
	if err := errors.Join(old.stop(), again.stop(), <-one, <-two); err != nil {
		t.Fatal(err)
	}
	if first.Format() != LowestFormat+2 || second.Format() != LowestFormat+2 {
		t.Errorf("at the end the formats are %d and %d", first.Format(), second.Format())
	}
	if _, err := opened(t, at, 1, beatingTTL); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("newer oneclaw (format %d, this one knows %d)", LowestFormat+2, LowestFormat+1)) {
		t.Errorf("an old program opens the new format: %v", err)
	}
	if err := errors.Join(first.stop(), second.stop()); err != nil {
		t.Error(err)
	}
}

// TestAnOldProgramThatOpenedBeforeTheChangeIsRefused opens with an old program, which joins
// when the format is new.
func TestAnOldProgramThatOpenedBeforeTheChangeIsRefused(t *testing.T) {
	t.Parallel()
	at := onServer(t)
	old, err := opened(t, at, 1, beatingTTL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()
	newer := joined(t, at, 2)
	<-newer.lease
	if err := old.CheckFormat(t.Context()); !errors.Is(err, replicas.ErrRefused) || strings.Contains(err.Error(), "\n") {
		t.Errorf("refused with %v", err)
	}
	r := replicas.New(replicas.Config{
		Store: old, Leases: []string{"one"}, Format: LowestFormat + 1, Check: old.CheckFormat, TTL: beatingTTL,
		OnTaken: func(context.Context, map[string]storage.Op) error { t.Error("it took a lease"); return nil },
		OnLost:  func(string) {},
	})
	if err := r.Run(t.Context()); !errors.Is(err, replicas.ErrRefused) {
		t.Errorf("Run ends with %v", err)
	}
	members, err := replicas.List(t.Context(), newer)
	if err != nil || len(members) != 1 {
		t.Errorf("%v, %v", members, err)
	}
	if err := newer.stop(); err != nil {
		t.Error(err)
	}
}

// TestADeadReplicaDoesNotHoldUpTheFormat leaves the record of an old replica that is dead.
func TestADeadReplicaDoesNotHoldUpTheFormat(t *testing.T) {
	t.Parallel()
	at := onServer(t)
	old := joined(t, at, 1)
	<-old.lease
	err := View(t.Context(), at, func(s *Store) error {
		_, err := s.Put(t.Context(), "replicas/member/dead", fmt.Appendf(nil, `{"id":"dead","format":%d}`, LowestFormat+1), storage.Absent)
		return err
	})
	if err = errors.Join(err, old.stop()); err != nil {
		t.Fatal(err)
	}
	farAhead, err := opened(t, at, 3, silentTTL)
	if err != nil || farAhead.Format() != LowestFormat+3 {
		t.Fatalf("beside a dead one: %v", err)
	}
	if err := farAhead.Close(); err != nil {
		t.Error(err)
	}
}

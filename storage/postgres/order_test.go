package postgres_test

import (
	"errors"
	"testing"

	"oneclaw/storage"
	"oneclaw/storage/postgres"
	"oneclaw/storage/storetest"
)

// TestKilledServerIsLinearizable has one order explain what calls have returned before,
// while and after the server was killed, and so with a standby in its place.
func TestKilledServerIsLinearizable(t *testing.T) {
	t.Parallel()
	t.Run("restart", func(t *testing.T) {
		own := ownServer(t)
		s := open(t, postgres.Config{URL: own.Database(t)})
		storetest.LinearizableOver(t, s, func() error {
			err := errors.Join(own.Kill(), own.Restart())
			soonWrites(t, s)
			return err
		})
	})
	t.Run("failover", func(t *testing.T) {
		own := ownServer(t)
		at := own.Database(t)
		standby := own.Standby(t)
		s := open(t, postgres.Config{URL: own.BothURL(at, standby)})
		storetest.LinearizableOver(t, s, func() error {
			err := errors.Join(own.Kill(), standby.Promote())
			soonWrites(t, s)
			return err
		})
	})
}

// soonWrites repeats a write until it succeeds.
func soonWrites(t *testing.T, s storage.Store) {
	t.Helper()
	var err error
	for range 100 {
		if _, err = s.Put(t.Context(), "it works again", nil, storage.Any); err == nil {
			return
		}
	}
	t.Errorf("Put: %v", err)
}

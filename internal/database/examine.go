package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"oneclaw/storage"
	"oneclaw/storage/postgres"
	"oneclaw/storage/replicas"
)

// Health is the state of a database on a server.
type Health struct {
	postgres.Server

	// Format is the format of the data, NewestKnown the newest that this program knows.
	Format, NewestKnown int
	// WriteTime is the median time of a few writes.
	WriteTime time.Duration
	// ClockAhead is how far the server's clock is ahead of this machine's. Nothing depends on it.
	ClockAhead time.Duration
	// Replicas are the replicas that serve the database.
	Replicas []replicas.Member
}

// probeWrites is how many writes [ReadHealth] times.
const probeWrites = 5

// probeKey is the key that is written and deleted again.
const probeKey = "doctor/probe"

// ReadHealth reads the state of a database on a server, which bots may serve meanwhile. If it does
// not exist, the error is storage.ErrNotFound.
func ReadHealth(ctx context.Context, at Place, steps []Migration) (h Health, err error) {
	store, err := at.connect(ctx, true, nil)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := checkFinished(ctx, store); err != nil {
		return h, err
	}
	asked := time.Now()
	if h.Server, err = store.Server(ctx); err != nil {
		return h, err
	}
	h.ClockAhead = h.Time.Sub(asked.Add(time.Since(asked) / 2)).Round(time.Millisecond)
	f, err := readFormat(ctx, store)
	if h.Format, h.NewestKnown = f.Version, NewestFormat(steps); err == nil {
		err = checkFormat(f, h.NewestKnown)
	}
	if err == nil {
		h.Replicas, err = replicas.List(ctx, store)
	}
	if err == nil {
		h.WriteTime, err = timeWrites(ctx, store)
	}
	return h, err
}

func timeWrites(ctx context.Context, store storage.KV) (time.Duration, error) {
	var took []time.Duration
	for range probeWrites {
		begun := time.Now()
		if _, err := store.Put(ctx, probeKey, nil, storage.Any); err != nil {
			return 0, fmt.Errorf("try to write: %w", err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2], store.Delete(ctx, probeKey, storage.Any)
}

// Size returns the size of the database on the disk, in bytes.
func (s *Store) Size(ctx context.Context) (int64, error) {
	if s.shared != nil {
		return s.shared.Size(ctx)
	}
	info, err := os.Stat(s.path())
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

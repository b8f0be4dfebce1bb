package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"oneclaw/storage"
)

// maxSwept bounds the chunks of one sweep; the next continues after them.
const maxSwept = 100_000

// Sweep deletes chunks that no manifest refers to, and returns their number. Any number of
// processes may sweep, and write files meanwhile, at any pace:
//
// It first records the revisions of the chunks' hash keys, then changes sweepKey, then reads the
// manifests, and deletes each unreferenced chunk whose hash key still has the recorded revision.
// It reads every manifest written before sweepKey changed. A later one either began after the
// change, and then each of its new chunks got a new revision since; or it began before that, and
// is a conflict.
// predecessor lacks got a new revision since; or it began before that, and is a conflict.
func (s *Store) Sweep(ctx context.Context) (removed int, err error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	removed, s.swept, err = s.sweep(ctx, s.swept)
	return removed, err
}

// SweepAll sweeps all chunks: when it returns nil, everything is deleted that no manifest
// referred to when it was called.
func (s *Store) SweepAll(ctx context.Context) error {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	for after, more := "", true; more; more = after != "" {
		var err error
		_, after, err = s.sweep(ctx, after)
		if errors.Is(err, errManifest) { // the sweep does not wait until it is repaired
			s.log.Error("what files held that are gone stays: a folder in the store cannot be read", "err", err)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweep checks the chunks after a hash, and returns the last one checked; empty at the end.
// After an error it returns its start.
func (s *Store) sweep(ctx context.Context, after string) (removed int, last string, err error) {
	unused := make(map[string]storage.Revision)
	for entry, err := range s.cfg.Store.List(ctx, storage.Range{Prefix: namePrefix, After: after, Limit: maxSwept}) {
		if err != nil {
			return 0, after, fmt.Errorf("workspace: list parts of files: %w", err)
		}
		last = entry.Key
		unused[strings.TrimPrefix(entry.Key, namePrefix)] = entry.Revision
	}
	if len(unused) < maxSwept {
		last = "" // from the beginning next time
	}
	if len(unused) == 0 {
		return 0, last, nil
	}
	if _, err := s.write(ctx, storage.Put(sweepKey, nil, storage.Any)); err != nil {
		return 0, after, fmt.Errorf("workspace: begin a sweep: %w", err)
	}
	for entry, err := range s.cfg.Store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return 0, after, fmt.Errorf("workspace: list manifests: %w", err)
		}
		t, err := decode(entry.Value)
		if err != nil {
			return 0, after, fmt.Errorf("%s: %w", entry.Key, err) // its chunks are unknown
		}
		for name := range t.chunks() {
			delete(unused, name)
		}
	}
	for name, rev := range unused {
		_, err := s.write(ctx, storage.Delete(namePrefix+name, rev), storage.Delete(dataPrefix+name, storage.Any))
		switch {
		case err == nil:
			removed++
		case !errors.Is(err, storage.ErrConflict): // otherwise it was written again
			return removed, after, fmt.Errorf("workspace: remove parts of files: %w", err)
		}
	}
	return removed, last, nil
}

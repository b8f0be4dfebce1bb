package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"oneclaw/storage"
)

// maxSwept is how many chunks one sweep looks at; the next goes on behind them.
const maxSwept = 100_000

// Sweep removes chunks that no manifest names, and returns how many. Any number of processes
// may sweep, and write files meanwhile, at any pace:
//
// It first notes the revisions of the names of chunks, then changes sweepKey, then reads the
// manifests, and removes each chunk that none of them names where its name still has the
// revision that was noted. A manifest that was written before sweepKey changed is read. One
// that is written later either has begun with the change, and then each chunk that its
// predecessor lacks got a new revision since; or it began before that, and is a conflict.
func (s *Store) Sweep(ctx context.Context) (removed int, err error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	removed, s.swept, err = s.sweep(ctx, s.swept)
	return removed, err
}

// SweepAll looks at all chunks, as [Store.Sweep] does at some: what no manifest named when it was
// called is gone when it returns nil.
func (s *Store) SweepAll(ctx context.Context) error {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	for after, more := "", true; more; more = after != "" {
		var err error
		_, after, err = s.sweep(ctx, after)
		if errors.Is(err, errManifest) { // the sweep does not wait until it is mended
			s.log.Error("what files held that are gone stays: a folder in the store cannot be read", "err", err)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweep looks at the chunks behind a name, and returns that of the last; empty where it came to
// the end. After an error that is where it began.
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
			return 0, after, fmt.Errorf("%s: %w", entry.Key, err) // what it names is unknown
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
		case !errors.Is(err, storage.ErrConflict): // else it was written again
			return removed, after, fmt.Errorf("workspace: remove parts of files: %w", err)
		}
	}
	return removed, last, nil
}

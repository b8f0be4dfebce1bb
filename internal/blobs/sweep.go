package blobs

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
func (s *Store) Sweep(ctx context.Context) (int, error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	unused := make(map[string]storage.Revision)
	last := ""
	for entry, err := range s.cfg.Store.List(ctx, storage.Range{Prefix: namePrefix, After: s.swept, Limit: maxSwept}) {
		if err != nil {
			return 0, fmt.Errorf("blobs: list parts of files: %w", err)
		}
		last = entry.Key
		unused[strings.TrimPrefix(entry.Key, namePrefix)] = entry.Revision
	}
	if len(unused) < maxSwept {
		last = "" // from the beginning next time
	}
	if len(unused) == 0 {
		s.swept = last
		return 0, nil
	}
	if _, err := s.write(ctx, storage.Put(sweepKey, nil, storage.Any)); err != nil {
		return 0, fmt.Errorf("blobs: begin a sweep: %w", err)
	}
	for entry, err := range s.cfg.Store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return 0, fmt.Errorf("blobs: list manifests: %w", err)
		}
		t, err := decode(entry.Value)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", entry.Key, err) // nobody knows what it names
		}
		for name := range t.chunks() {
			delete(unused, name)
		}
	}
	removed := 0
	for name, rev := range unused {
		_, err := s.write(ctx, storage.Delete(namePrefix+name, rev), storage.Delete(dataPrefix+name, storage.Any))
		switch {
		case err == nil:
			removed++
		case !errors.Is(err, storage.ErrConflict): // else it was written again
			return removed, fmt.Errorf("blobs: remove parts of files: %w", err)
		}
	}
	s.swept = last
	return removed, nil
}

package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"oneclaw/storage"
)

// maxSwept bounds the chunks that one sweep checks. The next sweep continues after them.
const maxSwept = 100_000

// Sweep deletes chunks that no manifest refers to, and returns their number. Any number of
// processes may sweep and write files at the same time.
//
// Sweep first records the revisions of the chunks' name keys, then changes sweepKey, then reads the
// manifests, and deletes each unreferenced chunk whose name key still has the recorded revision.
// It thus reads every manifest that was written before sweepKey changed. A manifest that is written
// later is safe too. If its write began after the change of sweepKey, each chunk that the previous
// manifest lacks has got a new revision since. If it began before, it fails with a conflict, because
// it is conditional on the revision of sweepKey.
func (s *Store) Sweep(ctx context.Context) (removed int, err error) {
	s.sweepMu.Lock()
	defer s.sweepMu.Unlock()
	removed, s.sweptUpTo, err = s.sweepFrom(ctx, s.sweptUpTo)
	return removed, err
}

// SweepAll sweeps all chunks. When it returns nil, it has deleted all chunks to which no manifest
// referred at the time of the call, unless a manifest cannot be decoded.
func (s *Store) SweepAll(ctx context.Context) error {
	s.sweepMu.Lock()
	defer s.sweepMu.Unlock()
	for after, more := "", true; more; more = after != "" {
		var err error
		_, after, err = s.sweepFrom(ctx, after)
		if errors.Is(err, errManifest) { // trying again does not help
			s.log.Error("data of deleted files is kept: a manifest in the store cannot be decoded", "err", err)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepFrom checks the chunks after a key, and returns the key of the last one checked, "" at the end.
// If it fails, it returns after.
func (s *Store) sweepFrom(ctx context.Context, after string) (removed int, last string, err error) {
	unused := make(map[string]storage.Revision)
	for entry, err := range s.cfg.Store.List(ctx, storage.Range{Prefix: namePrefix, After: after, Limit: maxSwept}) {
		if err != nil {
			return 0, after, fmt.Errorf("workspace: list chunks of files: %w", err)
		}
		last = entry.Key
		unused[strings.TrimPrefix(entry.Key, namePrefix)] = entry.Revision
	}
	if len(unused) < maxSwept {
		last = "" // the next sweep starts from the beginning
	}
	if len(unused) == 0 {
		return 0, last, nil
	}
	if _, err := s.writeOps(ctx, storage.Put(sweepKey, nil, storage.Any)); err != nil {
		return 0, after, fmt.Errorf("workspace: begin a sweep: %w", err)
	}
	for entry, err := range s.cfg.Store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return 0, after, fmt.Errorf("workspace: list manifests: %w", err)
		}
		t, err := decodeTree(entry.Value)
		if err != nil {
			return 0, after, fmt.Errorf("%s: %w", entry.Key, err) // it may refer to any chunk
		}
		for name := range t.chunkHashes() {
			delete(unused, name)
		}
	}
	for name, rev := range unused {
		_, err := s.writeOps(ctx, storage.Delete(namePrefix+name, rev), storage.Delete(dataPrefix+name, storage.Any))
		switch {
		case err == nil:
			removed++
		case !errors.Is(err, storage.ErrConflict): // after a conflict the chunk stays: it was written again
			return removed, after, fmt.Errorf("workspace: remove chunks of files: %w", err)
		}
	}
	return removed, last, nil
}

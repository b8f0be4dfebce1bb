package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"oneclaw/storage"
)

const (
	// maxBatchChunks bounds the chunks of one write, which have at most [ChunkSize] bytes together.
	maxBatchChunks = 64
	// maxAttempts bounds the attempts of a write that conflicts with sweeps.
	maxAttempts = 5
)

// Keep stores the changes in the folder of an owner since [Store.Prepare]. Without changes it
// writes nothing. The conditions are part of the write: if one does not hold, or another process
// has changed the files, the error is [storage.ErrConflict] and the store is unchanged. If the
// owner has too many files, the error is [ErrFull], [ErrTooMany] or [ErrUncounted], and the store
// is unchanged too. It ignores the cancellation of ctx.
func (s *Store) Keep(ctx context.Context, owner string, conditions ...storage.Op) error {
	f := s.owner(owner)
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.keep(context.WithoutCancel(ctx), f, conditions)
}

func (s *Store) keep(ctx context.Context, f *localFolder, conditions []storage.Op) (err error) {
	if !f.checkedOut {
		return fmt.Errorf("workspace: the files are not checked out: %w", storage.ErrConflict)
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return fmt.Errorf("workspace: %w", Cause(err))
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for range maxAttempts {
		base, err := s.currentDetails(ctx, f)
		if err != nil {
			return err
		}
		again, err := s.tryKeep(ctx, f, root, base, conditions)
		if !again {
			return err
		}
	}
	return fmt.Errorf("workspace: too many conflicts with sweeps: %w", storage.ErrConflict)
}

// tryKeep makes one attempt of Keep. It reports whether to try again: after a conflict with a sweep,
// or if an earlier write of this process has made the stored version.
func (s *Store) tryKeep(ctx context.Context, f *localFolder, root *os.Root, base folderDetails, conditions []storage.Op) (again bool, err error) {
	now, err := s.scan(root, true)
	if err != nil {
		return false, err
	}
	if now.usedBytes > s.cfg.Quota {
		return false, ErrFull
	}
	w, err := s.newChunkWriter(ctx, base.tree)
	if err != nil {
		return false, err
	}
	if err := now.readChunks(ctx, root, base, w.putChunk); err != nil {
		return false, err
	}
	if now.tree.equal(base.tree) {
		if len(f.triedHashes) > 0 { // one of the earlier writes may have succeeded
			entry, err := s.getEntry(ctx, f.key)
			if err != nil {
				return false, err
			}
			if entry.Revision != f.revision {
				return s.checkConflict(f, entry, storage.ErrConflict)
			}
		}
		s.setDetails(f, f.revision, folderDetails{base.tree, now.stamps})
		return false, nil
	}
	again, err = s.commitManifest(ctx, f, w, now.tree, conditions)
	if err == nil && !again {
		s.setDetails(f, f.revision, folderDetails{now.tree, now.stamps})
	}
	return again, err
}

// commitManifest replaces the manifest, if the stored one still has the folder's revision.
func (s *Store) commitManifest(ctx context.Context, f *localFolder, w *chunkWriter, t tree, conditions []storage.Op) (again bool, err error) {
	value, err := t.encode()
	if err != nil {
		return false, err
	}
	if err := w.flush(ctx); err != nil {
		return false, err
	}
	if f.triedHashes == nil {
		f.triedHashes = make(map[[sha256.Size]byte]bool)
	}
	f.triedHashes[sha256.Sum256(value)] = true
	rev, err := s.writeOps(ctx, append([]storage.Op{storage.Put(f.key, value, f.revision), w.noSweepSince()}, conditions...)...)
	if err == nil {
		f.revision = rev
		return false, nil
	}
	if !errors.Is(err, storage.ErrConflict) {
		return false, fmt.Errorf("workspace: store the files: %w", err)
	}
	entry, getErr := s.getEntry(ctx, f.key)
	swept, sweptErr := s.getEntry(ctx, sweepKey)
	switch {
	case getErr != nil || sweptErr != nil:
		return false, errors.Join(getErr, sweptErr)
	case entry.Revision == f.revision:
		return swept.Revision != w.sweepRevision, err // otherwise a condition does not hold
	case entry.Revision != storage.Absent && bytes.Equal(entry.Value, value):
		f.revision = entry.Revision
		return false, nil
	}
	return s.checkConflict(f, entry, err)
}

// checkConflict checks a manifest whose revision is not that of the folder. It returns true if an
// earlier write of this process has made the manifest, although that write returned an error.
func (s *Store) checkConflict(f *localFolder, entry storage.Entry, err error) (own bool, _ error) {
	if entry.Revision != storage.Absent && f.triedHashes[sha256.Sum256(entry.Value)] {
		before, err := decodeTree(entry.Value)
		s.setDetails(f, entry.Revision, folderDetails{tree: before})
		return true, err
	}
	f.checkedOut = false
	return false, fmt.Errorf("workspace: another process has changed the files: %w", err)
}

// chunkWriter writes the chunks of a manifest, before the manifest is written.
type chunkWriter struct {
	store         *Store
	stored        map[string]bool  // chunks that need not be written
	sweepRevision storage.Revision // of sweepKey, before the first chunk is written
	pending       []storage.Op
	size          int
}

func (s *Store) newChunkWriter(ctx context.Context, base tree) (*chunkWriter, error) {
	sweep, err := s.getEntry(ctx, sweepKey)
	return &chunkWriter{store: s, stored: base.chunkHashes(), sweepRevision: sweep.Revision}, err
}

// noSweepSince returns a condition that fails if a sweep has begun since the writer was made.
func (w *chunkWriter) noSweepSince() storage.Op { return storage.Check(sweepKey, w.sweepRevision) }

// putChunk writes a chunk, at once or in a batch. It also writes a chunk that is already stored,
// because the new revision keeps a sweep from deleting it.
func (w *chunkWriter) putChunk(ctx context.Context, hash [sha256.Size]byte, data []byte) error {
	name := hex.EncodeToString(hash[:])
	if w.stored[name] {
		return nil
	}
	w.stored[name] = true
	if w.size+len(data) > ChunkSize || len(w.pending) >= 2*maxBatchChunks {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.size += len(data)
	w.pending = append(w.pending,
		storage.Put(namePrefix+name, nil, storage.Any), storage.Put(dataPrefix+name, bytes.Clone(data), storage.Any))
	return nil
}

func (w *chunkWriter) flush(ctx context.Context) error {
	if len(w.pending) == 0 {
		return nil
	}
	if _, err := w.store.writeOps(ctx, w.pending...); err != nil {
		return fmt.Errorf("workspace: store chunks of files: %w", err)
	}
	w.pending, w.size = nil, 0
	return nil
}

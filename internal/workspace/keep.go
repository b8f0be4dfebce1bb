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
	// batchBlobs bounds the chunks of one write, which have at most [ChunkSize] bytes together.
	batchBlobs = 64
	// maxTries bounds the tries of a write that conflicts with sweeps.
	maxTries = 5
)

// Keep stores what has changed in the folder of an owner since [Store.Prepare]; without changes
// it writes nothing. The conditions are part of the write: if one does not hold, or another
// process has changed the files, the error is [storage.ErrConflict] and the store is unchanged.
// If the owner has too many files, the error is [ErrFull], [ErrTooMany] or [ErrUncounted], and
// nothing is stored either. It ignores the end of ctx.
func (s *Store) Keep(ctx context.Context, owner string, conditions ...storage.Op) error {
	f := s.owner(owner)
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.keep(context.WithoutCancel(ctx), f, conditions)
}

func (s *Store) keep(ctx context.Context, f *localFolder, conditions []storage.Op) (err error) {
	if !f.ready {
		return fmt.Errorf("workspace: the files are not checked out: %w", storage.ErrConflict)
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return fmt.Errorf("workspace: %w", Cause(err))
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for range maxTries {
		base, err := s.known(ctx, f)
		if err != nil {
			return err
		}
		again, err := s.tryKeep(ctx, f, root, base, conditions)
		if !again {
			return err
		}
	}
	return fmt.Errorf("workspace: sweeps come between: %w", storage.ErrConflict)
}

// tryKeep reports whether to try again: after a conflict with a sweep, or if the stored version
// is this process's own.
func (s *Store) tryKeep(ctx context.Context, f *localFolder, root *os.Root, base folderDetails, conditions []storage.Op) (again bool, err error) {
	now, err := s.scan(root, true)
	if err != nil {
		return false, err
	}
	if now.used > s.cfg.Quota {
		return false, ErrFull
	}
	w, err := s.writer(ctx, base.tree)
	if err != nil {
		return false, err
	}
	if err := now.read(ctx, root, base, w.put); err != nil {
		return false, err
	}
	if now.tree.equal(base.tree) {
		if len(f.tried) > 0 { // one of these writes may have succeeded
			entry, err := s.get(ctx, f.key)
			if err != nil {
				return false, err
			}
			if entry.Revision != f.rev {
				return s.checkOther(f, entry, storage.ErrConflict)
			}
		}
		s.know(f, f.rev, folderDetails{base.tree, now.stamps})
		return false, nil
	}
	again, err = s.commit(ctx, f, w, now.tree, conditions)
	if err == nil && !again {
		s.know(f, f.rev, folderDetails{now.tree, now.stamps})
	}
	return again, err
}

// commit replaces the manifest with the folder's revision.
func (s *Store) commit(ctx context.Context, f *localFolder, w *writer, t tree, conditions []storage.Op) (again bool, err error) {
	value, err := t.encode()
	if err != nil {
		return false, err
	}
	if err := w.flush(ctx); err != nil {
		return false, err
	}
	if f.tried == nil {
		f.tried = make(map[[sha256.Size]byte]bool)
	}
	f.tried[sha256.Sum256(value)] = true
	rev, err := s.write(ctx, append([]storage.Op{storage.Put(f.key, value, f.rev), w.unswept()}, conditions...)...)
	if err == nil {
		f.rev = rev
		return false, nil
	}
	if !errors.Is(err, storage.ErrConflict) {
		return false, fmt.Errorf("workspace: store the files: %w", err)
	}
	entry, getErr := s.get(ctx, f.key)
	swept, sweptErr := s.get(ctx, sweepKey)
	switch {
	case getErr != nil || sweptErr != nil:
		return false, errors.Join(getErr, sweptErr)
	case entry.Revision == f.rev:
		return swept.Revision != w.sweep, err // otherwise a condition does not hold
	case entry.Revision != storage.Absent && bytes.Equal(entry.Value, value):
		f.rev = entry.Revision
		return false, nil
	}
	return s.checkOther(f, entry, err)
}

// checkOther checks a manifest with another revision than the folder's. It returns true if an
// earlier write of this process made it, although it returned an error.
func (s *Store) checkOther(f *localFolder, entry storage.Entry, err error) (own bool, _ error) {
	if entry.Revision != storage.Absent && f.tried[sha256.Sum256(entry.Value)] {
		before, err := decode(entry.Value)
		s.know(f, entry.Revision, folderDetails{tree: before})
		return true, err
	}
	f.ready = false
	return false, fmt.Errorf("workspace: another process has changed the files: %w", err)
}

// writer writes the chunks of a manifest before the manifest.
type writer struct {
	s       *Store
	have    map[string]bool  // chunks that need not be written
	sweep   storage.Revision // before the first chunk was written
	waiting []storage.Op
	size    int
}

func (s *Store) writer(ctx context.Context, base tree) (*writer, error) {
	sweep, err := s.get(ctx, sweepKey)
	return &writer{s: s, have: base.chunks(), sweep: sweep.Revision}, err
}

// unswept makes a write conflict if a sweep has begun since the first chunk was written.
func (w *writer) unswept() storage.Op { return storage.Check(sweepKey, w.sweep) }

// put writes a chunk, now or in a batch. It writes stored ones too: the new revision keeps a
// sweep from deleting them.
func (w *writer) put(ctx context.Context, hash [sha256.Size]byte, data []byte) error {
	name := hex.EncodeToString(hash[:])
	if w.have[name] {
		return nil
	}
	w.have[name] = true
	if w.size+len(data) > ChunkSize || len(w.waiting) >= 2*batchBlobs {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.size += len(data)
	w.waiting = append(w.waiting,
		storage.Put(namePrefix+name, nil, storage.Any), storage.Put(dataPrefix+name, bytes.Clone(data), storage.Any))
	return nil
}

func (w *writer) flush(ctx context.Context) error {
	if len(w.waiting) == 0 {
		return nil
	}
	if _, err := w.s.write(ctx, w.waiting...); err != nil {
		return fmt.Errorf("workspace: store parts of files: %w", err)
	}
	w.waiting, w.size = nil, 0
	return nil
}

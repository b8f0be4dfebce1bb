package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"oneclaw/storage"
)

// Bounds of the chunks of one write.
const (
	maxUploadBytes  = 2 * ChunkSize
	maxUploadChunks = 256
)

// Keep stores the changes in the folder of an owner since [Store.Prepare]. Without changes it
// writes nothing. The conditions are part of the write: if one does not hold, or another process
// has changed the files, the error is [storage.ErrConflict] and the files in the store are unchanged. If
// the owner has too many files, the error is [ErrFull], [ErrTooMany] or [ErrUncounted], and they are
// unchanged too. It ignores the cancellation of ctx.
func (s *Store) Keep(ctx context.Context, owner string, conditions ...storage.Op) error {
	f := s.owner(owner)
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.keep(context.WithoutCancel(ctx), f, conditions)
}

func (s *Store) keep(ctx context.Context, f *localFolder, conditions []storage.Op) (err error) {
	base, known := s.details.Get(f.key)
	if !known || !f.checkedOut {
		stored, err := s.load(ctx, f)
		if err == nil {
			base.tree, err = decodeTree(stored.Value)
		}
		if err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return fmt.Errorf("workspace: %w", Cause(err))
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	u := s.newUpload(f, base.tree)
	here, err := s.read(ctx, root, true, base, u.put)
	if err == nil && !here.tree.equal(u.stored) {
		err = u.write(ctx, here.tree, conditions)
	}
	if errors.Is(err, storage.ErrConflict) {
		before := f.revision
		if _, other := s.load(ctx, f); other != nil {
			return other
		}
		if f.revision != before { // the write succeeded, or an earlier one
			return s.keep(ctx, f, conditions)
		}
	}
	if err == nil {
		s.setDetails(f, f.revision, folderDetails{here.tree, here.stamps})
	}
	return err
}

// upload writes a new version of a folder to the store.
type upload struct {
	store  *Store
	folder *localFolder
	// stored is the content of the manifest in the store, and have the hashes of its chunks.
	stored tree
	have   map[string]bool
	// pending are the chunks to write with the next manifest, by hash.
	pending map[string][]byte
	size    int
}

func (s *Store) newUpload(f *localFolder, stored tree) *upload {
	return &upload{store: s, folder: f, stored: stored, have: stored.chunkHashes(), pending: make(map[string][]byte)}
}

// put takes a chunk of the new version, and writes those that it has if they are many.
func (u *upload) put(ctx context.Context, hash string, data []byte) error {
	if u.have[hash] || u.pending[hash] != nil {
		return nil
	}
	u.pending[hash] = bytes.Clone(data)
	if u.size += len(data); u.size < maxUploadBytes && len(u.pending) < maxUploadChunks {
		return nil
	}
	t := maps.Clone(u.stored)
	loose := slices.Clone(t[looseChunks].Chunks)
	for hash := range u.pending {
		loose = append(loose, hash...)
	}
	t[looseChunks] = entry{Chunks: loose}
	return u.write(ctx, t, nil)
}

// write replaces the manifest, if the stored one still has the folder's revision, adds its pending chunks,
// and deletes the chunks that it does not list.
func (u *upload) write(ctx context.Context, t tree, conditions []storage.Op) error {
	f := u.folder
	value, err := t.encode()
	if err != nil {
		return err
	}
	ops, used := append([]storage.Op{storage.Put(f.key, value, f.revision)}, conditions...), t.chunkHashes()
	for hash, data := range u.pending {
		if used[hash] {
			ops = append(ops, storage.Put(f.chunkKey(hash), data, storage.Any))
		}
	}
	for hash := range u.have {
		if !used[hash] {
			ops = append(ops, storage.Delete(f.chunkKey(hash), storage.Any))
		}
	}
	f.tried = sha256.Sum256(value)
	u.store.details.Forget(f.key)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rev, err := u.store.cfg.Store.Write(ctx, ops...)
	if err != nil {
		return fmt.Errorf("workspace: store the files: %w", err)
	}
	f.revision = rev
	u.stored, u.have, u.size = t, used, 0
	clear(u.pending)
	return nil
}

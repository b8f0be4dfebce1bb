package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"oneclaw/internal/cache"
	"oneclaw/storage"
)

// Keys of the store.
const (
	prefix       = "files/"
	ownerPrefix  = prefix + "owner/"
	folderPrefix = prefix + "folder/"
	chunkPrefix  = "blob/"
)

const (
	// ChunkSize bounds a chunk in bytes.
	ChunkSize = 1 << 20
	// defaultMaxEntries bounds the files and folders in a folder.
	defaultMaxEntries = 20_000
	// maxManifest bounds a manifest in bytes.
	maxManifest = storage.MaxValue - 1<<10
	// callTimeout bounds one call of the store.
	callTimeout = 30 * time.Second
	// maxCachedFolders bounds the folders whose file stamps are cached. In other folders all files are
	// read at the next change.
	maxCachedFolders = 256
	// maxAttempts bounds the attempts to read what others change meanwhile.
	maxAttempts = 5
)

// StoreConfig configures a [Store].
type StoreConfig struct {
	Store storage.Store
	// Dir contains the folders: those of owners as in [OwnerDir], shared ones under their names.
	Dir string
	// Quota bounds the bytes of one owner's files. Reserve is the number of bytes that stay free on
	// the disk. 0 means the defaults.
	Quota, Reserve int64
	// MaxEntries bounds the files and folders in a folder. 0 means [defaultMaxEntries].
	MaxEntries int
	// Logger may be nil.
	Logger *slog.Logger
}

// Store keeps folders in the store that several replicas share: workspaces, skills and user
// tools. It may be used concurrently and starts no goroutine.
//
// A folder is stored as a manifest, one value of the store, that lists each file with its chunks, and
// as chunks of at most [ChunkSize] bytes under their SHA-256 hashes. One write, conditional on the
// manifest's revision, replaces the manifest, adds new chunks and deletes those that no file has any
// more. What is too large for it is written before, with manifests that list these chunks beside the
// files. So a manifest always lists all chunks of its folder, wherever a write breaks off, and of two
// replicas that change a folder one wins with all its files.
type Store struct {
	cfg StoreConfig
	log *slog.Logger

	mu      sync.Mutex // guards the fields below
	folders map[string]*localFolder
	details *cache.Cache[string, folderDetails]
}

// NewStore makes a store.
func NewStore(cfg StoreConfig) *Store {
	cfg.Quota, cfg.Reserve = cmp.Or(cfg.Quota, DefaultQuota), cmp.Or(cfg.Reserve, DefaultReserve)
	cfg.MaxEntries = cmp.Or(cfg.MaxEntries, defaultMaxEntries)
	return &Store{
		cfg: cfg, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		folders: make(map[string]*localFolder), details: cache.New[string, folderDetails](maxCachedFolders),
	}
}

// localFolder is a folder on the local disk and its known state.
type localFolder struct {
	key, dir string

	mu sync.Mutex // held while the folder is compared, stored or checked out
	// checkedOut is set if the folder has the files of the revision, and possibly local changes.
	checkedOut bool
	revision   storage.Revision
	// tried is the hash of the manifest in the last write since the folder matched the store.
	tried [sha256.Size]byte
}

// folderDetails are the content of a folder at its revision, with the stamps of its files when they
// were read. They are cached, and can be missing.
type folderDetails struct {
	tree   tree
	stamps map[string]fileStamp
}

func (s *Store) owner(ownerFolder string) *localFolder {
	return s.folderAt(ownerPrefix+ownerFolder, OwnerDir(s.cfg.Dir, ownerFolder))
}

func (s *Store) folderAt(key, dir string) *localFolder {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.folders[key]
	if !ok {
		f = &localFolder{key: key, dir: dir}
		s.folders[key] = f
	}
	return f
}

// chunksOf returns the prefix of the chunks' keys of the folder with a manifest's key.
func chunksOf(key string) string {
	kind, name, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
	return chunkPrefix + kind + "/" + url.PathEscape(name) + "/"
}

func (f *localFolder) chunkKey(hash string) string {
	return chunksOf(f.key) + hex.EncodeToString([]byte(hash))
}

// setDetails records the revision and content of a folder that matches the store.
func (s *Store) setDetails(f *localFolder, rev storage.Revision, d folderDetails) {
	f.checkedOut, f.revision, f.tried = true, rev, [sha256.Size]byte{}
	s.details.Put(f.key, d, cache.Forever)
}

// load reads the manifest of a folder. If it is not that of the folder's revision, nor that of a write of
// this process that succeeded although it returned an error, the error is [storage.ErrConflict].
func (s *Store) load(ctx context.Context, f *localFolder) (storage.Entry, error) {
	entry, err := s.getEntry(ctx, f.key)
	switch {
	case err != nil, f.checkedOut && entry.Revision == f.revision:
	case f.checkedOut && entry.Revision != storage.Absent && sha256.Sum256(entry.Value) == f.tried:
		f.revision = entry.Revision
	default:
		f.checkedOut = false
		err = fmt.Errorf("workspace: another process has changed the files: %w", storage.ErrConflict)
	}
	return entry, err
}

// getEntry reads a key. It returns the zero value if the key does not exist.
func (s *Store) getEntry(ctx context.Context, key string) (storage.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	entry, err := s.cfg.Store.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return storage.Entry{}, nil
	}
	if err != nil {
		return storage.Entry{}, fmt.Errorf("workspace: read %s: %w", filepath.Base(key), err)
	}
	return entry, nil
}

package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
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
	// A chunk has two keys: one for its data, and one without data, so that chunks can be listed
	// without reading them. Both are written and deleted together.
	namePrefix = "blob/name/"
	dataPrefix = "blob/data/"
	// sweepKey changes with each sweep; see [Store.Sweep].
	sweepKey = "blob/sweep"
)

const (
	// ChunkSize bounds a chunk in bytes.
	ChunkSize = 1 << 20
	// DefaultMaxEntries bounds the files and folders in a folder.
	DefaultMaxEntries = 20_000
	// maxManifest bounds a manifest in bytes.
	maxManifest = storage.MaxValue - 1<<10
	// callTimeout bounds one call of the store.
	callTimeout = 30 * time.Second
	// maxCachedFolders bounds the folders whose file stamps are cached. In other folders all files are
	// read at the next change.
	maxCachedFolders = 256
)

// StoreConfig configures a [Store].
type StoreConfig struct {
	Store storage.Store
	// Dir contains the folders: those of owners as in [OwnerDir], shared ones under their names.
	Dir string
	// Quota bounds the bytes of one owner's files. Reserve is the number of bytes that stay free on
	// the disk. 0 means the defaults.
	Quota, Reserve int64
	// MaxEntries bounds the files and folders in a folder. 0 means [DefaultMaxEntries].
	MaxEntries int
	// Logger may be nil.
	Logger *slog.Logger
}

// Store keeps folders in the store that several replicas share: workspaces, skills and user
// tools. It may be used concurrently and starts no goroutine.
//
// A folder is stored as a manifest, one value of the store, that lists each file with its chunks. A
// chunk has at most [ChunkSize] bytes. Its key is its SHA-256 hash, so that equal chunks are stored
// once. Tools use a folder on the local disk: [Store.Prepare] checks out the stored files, and
// [Store.Keep] stores the changes. If two replicas change the files of one owner, the
// compare-and-set of the manifest lets one replica win with all its files. The other gets
// [storage.ErrConflict] and starts over from these files.
//
// The store is authoritative. If a process ends between a change and its Keep, the next Prepare
// undoes the change.
type Store struct {
	cfg StoreConfig
	log *slog.Logger

	mu      sync.Mutex // guards the next two fields
	folders map[string]*localFolder
	details *cache.Cache[string, folderDetails]

	sweepMu   sync.Mutex // guards the next field
	sweptUpTo string     // key of the last chunk that the last sweep checked
}

// NewStore makes a store.
func NewStore(cfg StoreConfig) *Store {
	cfg.Quota, cfg.Reserve = cmp.Or(cfg.Quota, DefaultQuota), cmp.Or(cfg.Reserve, DefaultReserve)
	cfg.MaxEntries = cmp.Or(cfg.MaxEntries, DefaultMaxEntries)
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
	// triedHashes are the hashes of the manifests whose writes were attempted, with or without success,
	// since the folder last matched the store.
	triedHashes map[[sha256.Size]byte]bool
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

// setDetails records the revision and content of a folder that matches the store.
func (s *Store) setDetails(f *localFolder, rev storage.Revision, d folderDetails) {
	f.checkedOut, f.revision, f.triedHashes = true, rev, nil
	s.details.Put(f.key, d, cache.Forever)
}

// currentDetails returns the content of a folder at its revision, from the cache or the store.
func (s *Store) currentDetails(ctx context.Context, f *localFolder) (folderDetails, error) {
	if d, ok := s.details.Get(f.key); ok {
		return d, nil
	}
	entry, err := s.getEntry(ctx, f.key)
	if err != nil {
		return folderDetails{}, err
	}
	if entry.Revision != f.revision {
		f.checkedOut = false
		return folderDetails{}, fmt.Errorf("workspace: another process has changed the files: %w", storage.ErrConflict)
	}
	t, err := decodeTree(entry.Value)
	return folderDetails{tree: t}, err
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

func (s *Store) writeOps(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.cfg.Store.Write(ctx, ops...)
}

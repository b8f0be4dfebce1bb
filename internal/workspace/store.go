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
	// A chunk has its bytes under one key and its hash under another, which can be listed without
	// reading the bytes. Both are written and deleted together.
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
	// maxDetailed bounds the folders of which file stamps are cached. Of others all files are read at
	// the next change.
	maxDetailed = 256
)

// StoreConfig configures a [Store].
type StoreConfig struct {
	Store storage.Store
	// Dir contains the folders: those of owners as in [Folder], the others under their names.
	Dir string
	// Quota bounds the bytes of one owner's files, Reserve is how many bytes of the disk stay free.
	// 0 means the defaults.
	Quota, Reserve int64
	// MaxEntries bounds the files and folders in a folder. 0 means [DefaultMaxEntries].
	MaxEntries int
	// Logger may be nil.
	Logger *slog.Logger
}

// Store keeps folders in the store that several replicas share: workspaces, skills and user
// tools. It may be used concurrently and starts no goroutine.
//
// A folder is a manifest, one value of the store, that names each file with its chunks. A chunk
// has at most [ChunkSize] bytes and its SHA-256 as key, so that equal ones are stored once.
// Tools use a folder on the local disk: [Store.Prepare] checks out what is stored, and
// [Store.Keep] stores what has changed. If two replicas change the files of one owner, the
// manifest's compare-and-set lets one win with all its files; the other gets
// [storage.ErrConflict] and starts from those.
//
// The store is authoritative. If a process ends between a change and its Keep, the next Prepare
// undoes the change.
type Store struct {
	cfg StoreConfig
	log *slog.Logger

	mu      sync.Mutex // guards what follows
	places  map[string]*localFolder
	details *cache.Cache[string, folderDetails]

	sweeping sync.Mutex // guards what follows
	swept    string     // the last hash that the last sweep has checked
}

// NewStore returns a store that is ready.
func NewStore(cfg StoreConfig) *Store {
	cfg.Quota, cfg.Reserve = cmp.Or(cfg.Quota, DefaultQuota), cmp.Or(cfg.Reserve, DefaultReserve)
	cfg.MaxEntries = cmp.Or(cfg.MaxEntries, DefaultMaxEntries)
	return &Store{
		cfg: cfg, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		places: make(map[string]*localFolder), details: cache.New[string, folderDetails](maxDetailed),
	}
}

// localFolder is a folder on the local disk and what is known about it.
type localFolder struct {
	key, dir string

	mu sync.Mutex // held while it is compared, stored or checked out
	// ready says that the folder holds revision rev, and possibly local changes.
	ready bool
	rev   storage.Revision
	// tried are the hashes of the manifests written since the folder was known to match the store,
	// whatever their outcome.
	tried map[[sha256.Size]byte]bool
}

// folderDetails are the content of a folder at its revision, with the stamps of its files when they
// were read. They are a cache.
type folderDetails struct {
	tree tree
	seen map[string]fileStamp
}

func (s *Store) owner(owner string) *localFolder {
	return s.place(ownerPrefix+owner, Folder(s.cfg.Dir, owner))
}

func (s *Store) place(key, dir string) *localFolder {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.places[key]
	if !ok {
		f = &localFolder{key: key, dir: dir}
		s.places[key] = f
	}
	return f
}

// know records the known content of a folder.
func (s *Store) know(f *localFolder, rev storage.Revision, d folderDetails) {
	f.ready, f.rev, f.tried = true, rev, nil
	s.details.Put(f.key, d, cache.Forever)
}

// known returns the content of a folder at its revision.
func (s *Store) known(ctx context.Context, f *localFolder) (folderDetails, error) {
	if d, ok := s.details.Get(f.key); ok {
		return d, nil
	}
	entry, err := s.get(ctx, f.key)
	if err != nil {
		return folderDetails{}, err
	}
	if entry.Revision != f.rev {
		f.ready = false
		return folderDetails{}, fmt.Errorf("workspace: another process has changed the files: %w", storage.ErrConflict)
	}
	t, err := decode(entry.Value)
	return folderDetails{tree: t}, err
}

// get reads a key; the zero value if it does not exist.
func (s *Store) get(ctx context.Context, key string) (storage.Entry, error) {
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

func (s *Store) write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.cfg.Store.Write(ctx, ops...)
}

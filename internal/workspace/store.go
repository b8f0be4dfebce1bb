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
	// A chunk has its bytes under one key and its name under another, which can be listed
	// without reading the bytes. Both are written and removed in one step.
	namePrefix = "blob/name/"
	dataPrefix = "blob/data/"
	// sweepKey changes with each sweep; see [Store.Sweep].
	sweepKey = "blob/sweep"
)

const (
	// ChunkSize is the largest chunk in bytes.
	ChunkSize = 1 << 20
	// DefaultMaxEntries is how many files and folders a folder may hold.
	DefaultMaxEntries = 20_000
	// maxManifest is how large a manifest may be in bytes.
	maxManifest = storage.MaxValue - 1<<10
	// callTimeout bounds one call of the store.
	callTimeout = 30 * time.Second
	// detailed is of how many folders it is known what was read when. Of others all files
	// are read at the next change.
	detailed = 256
)

// StoreConfig is what a [Store] is made of.
type StoreConfig struct {
	Store storage.Store
	// Dir holds the folders: those of the owners as [Folder] says, the others
	// under their names.
	Dir string
	// Quota is how many bytes the files of one owner may take, Reserve how many bytes of the
	// disk stay free. 0 means the defaults of internal/workspace.
	Quota, Reserve int64
	// MaxEntries is how many files and folders a folder may hold. 0 means
	// [DefaultMaxEntries].
	MaxEntries int
	// Logger, if nil, discards.
	Logger *slog.Logger
}

// Store keeps folders in the store that several replicas share: the workspaces of owners, and the
// folders of skills and user tools. It may be used concurrently and starts no goroutine.
//
// A folder is a manifest, one value of the store, that names each file with its chunks. A
// chunk is at most [ChunkSize] bytes under its SHA-256, so that what is the same is kept
// once. Tools know nothing of this: they work on a folder of the local disk.
// [Store.Prepare] makes that hold what is stored, and [Store.Keep] stores what has changed.
// Of two replicas that change the files of one owner the manifest's compare-and-set lets one
// win, whose files are whole; the other gets [storage.ErrConflict] and starts from those.
//
// What stands in the store counts. Where a process ends between a change and its Keep, the
// next Prepare undoes the change.
type Store struct {
	cfg StoreConfig
	log *slog.Logger

	mu      sync.Mutex // guards what follows
	places  map[string]*place
	details *cache.Cache[string, details]

	sweeping sync.Mutex // guards what follows
	swept    string     // the name up to which the last sweep came
}

// NewStore returns a store that is ready.
func NewStore(cfg StoreConfig) *Store {
	cfg.Quota, cfg.Reserve = cmp.Or(cfg.Quota, DefaultQuota), cmp.Or(cfg.Reserve, DefaultReserve)
	cfg.MaxEntries = cmp.Or(cfg.MaxEntries, DefaultMaxEntries)
	return &Store{
		cfg: cfg, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		places: make(map[string]*place), details: cache.New[string, details](detailed),
	}
}

// place is a folder on the local disk, as far as this process knows it.
type place struct {
	key, dir string

	mu sync.Mutex // held while it is compared, stored or checked out
	// ready says that what was stored with revision rev is here, and what was changed since.
	ready bool
	rev   storage.Revision
	// tried are the hashes of the manifests that were written since the folder was known to
	// hold what is stored, whatever became of them.
	tried map[[sha256.Size]byte]bool
}

// details are what a folder held at its revision, and what its files looked like when they
// were read. They can be found out again.
type details struct {
	tree tree
	seen map[string]stamp
}

func (s *Store) owner(owner string) *place {
	return s.place(ownerPrefix+owner, Folder(s.cfg.Dir, owner))
}

func (s *Store) place(key, dir string) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.places[key]
	if !ok {
		f = &place{key: key, dir: dir}
		s.places[key] = f
	}
	return f
}

// know takes in what a folder is known to hold.
func (s *Store) know(f *place, rev storage.Revision, d details) {
	f.ready, f.rev, f.tried = true, rev, nil
	s.details.Put(f.key, d, cache.Forever)
}

// known returns what a folder held at its revision.
func (s *Store) known(ctx context.Context, f *place) (details, error) {
	if d, ok := s.details.Get(f.key); ok {
		return d, nil
	}
	entry, err := s.get(ctx, f.key)
	if err != nil {
		return details{}, err
	}
	if entry.Revision != f.rev {
		f.ready = false
		return details{}, fmt.Errorf("workspace: another process has changed the files: %w", storage.ErrConflict)
	}
	t, err := decode(entry.Value)
	return details{tree: t}, err
}

// get reads a key; the zero value where there is none.
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

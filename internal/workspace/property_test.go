package workspace_test

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oneclaw/internal/workspace"
	"oneclaw/storage"
)

var errCut = errors.New("the connection was cut")

// cut is a store whose connection breaks at a write, before that is done or after.
type cut struct {
	storage.Store
	in    int // writes until then; 0 for never
	after bool
}

func (c *cut) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	if c.in > 0 {
		if c.in--; c.in == 0 {
			if c.after {
				_, _ = c.Store.Write(ctx, ops...) // nobody hears of it
			}
			return 0, errCut
		}
	}
	return c.Store.Write(ctx, ops...)
}

// side is a replica as the model sees it.
type side struct {
	*replica
	store *cut
	ready bool
	at    int   // the version that it has checked out
	base  files // what that holds
}

// world is two replicas, and what the store has to hold.
type world struct {
	t       *testing.T
	store   storage.Store
	sides   []*side
	version int // 0: nothing was stored yet
	rev     storage.Revision
	stored  files
}

func (w *world) restart(s *side) {
	s.store = &cut{Store: w.store}
	s.replica = replicaIn(w.t, s.store, s.dir)
	s.ready = false
}

// change does something to the files of a side. Times follow from contents, so that nothing
// can be told from them.
func (w *world) change(rt *rapid.T, s *side) {
	name := rapid.SampledFrom([]string{"a", "b", "a/b", "d/e", "d/e/f", "x\xff"}).Draw(rt, "name")
	path := s.path(name)
	switch kind := rapid.SampledFrom([]string{"file", "file", "file", "remove", "folder", "link", "mode"}).Draw(rt, "kind"); kind {
	case "file":
		size := rapid.SampledFrom([]int{0, 1, 5, 5, workspace.ChunkSize, workspace.ChunkSize + 3}).Draw(rt, "size")
		content := strings.Repeat(rapid.SampledFrom([]string{"1", "2", "3"}).Draw(rt, "content"), size)
		clearWay(path)
		must(w.t, os.RemoveAll(path))
		must(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(w.t, os.WriteFile(path, []byte(content), 0o600))
		h := fnv.New32()
		_, _ = h.Write([]byte(content[:min(size, 1)]))
		at := time.Unix(int64(h.Sum32()), 0)
		must(w.t, os.Chtimes(path, at, at))
	case "remove":
		clearWay(path)
		must(w.t, os.RemoveAll(path))
	case "folder":
		clearWay(path)
		must(w.t, os.MkdirAll(path, 0o700))
	case "link":
		clearWay(path)
		must(w.t, os.RemoveAll(path))
		must(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(w.t, os.Symlink(rapid.SampledFrom([]string{"a", "/etc", ".."}).Draw(rt, "to"), path))
	case "mode":
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			must(w.t, os.Chmod(path, rapid.SampledFrom([]os.FileMode{0o600, 0o755}).Draw(rt, "mode")))
		}
	}
}

// clearWay removes what stands in the way of a path, links among it: they must not be followed.
func clearWay(path string) {
	for dir := path; strings.Contains(dir, "workspaces"+string(filepath.Separator)); dir = filepath.Dir(dir) {
		if filepath.Base(filepath.Dir(dir)) == "workspaces" {
			return
		}
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			_ = os.Remove(dir)
		}
	}
}

func (w *world) prepare(s *side) {
	before := s.dump()
	s.prepare()
	switch {
	case s.ready && s.at == w.version, w.version == 0:
		wantSame(w.t, s.dump(), before)
	default:
		wantSame(w.t, s.dump(), w.stored)
	}
	if !s.ready || s.at != w.version {
		s.ready, s.at, s.base = true, w.version, maps.Clone(w.stored)
	}
}

func (w *world) keep(s *side) {
	here := s.dump()
	err := s.Keep(w.t.Context(), owner)
	switch {
	case !s.ready:
		if !errors.Is(err, storage.ErrConflict) {
			w.t.Fatalf("kept what was not checked out: %v", err)
		}
	case errors.Is(err, errCut):
		w.uncertain(s, here)
	case err == nil && s.at == w.version:
		w.wrote(s, here)
	case err == nil && maps.Equal(here, s.base):
	case err == nil && maps.Equal(here, w.stored):
		s.at, s.base = w.version, here // both have done the same
	case errors.Is(err, storage.ErrConflict) && s.at != w.version:
		s.ready = false
	default:
		w.t.Fatalf("keep: %v; version %d of %d", err, s.at, w.version)
	}
	w.check()
}

// uncertain finds out what became of a Keep that was cut off. The side goes on as if it had
// been told.
func (w *world) uncertain(s *side, here files) {
	s.store.in = 0
	fresh := newReplica(w.t, w.store)
	fresh.prepare()
	now := fresh.dump()
	if !maps.Equal(now, w.stored) {
		wantSame(w.t, now, here)
	}
	w.wrote(s, now)
}

// wrote notes what a side has stored, if that is a version: the first part of a large write is one that
// changes no file.
func (w *world) wrote(s *side, now files) {
	entry, err := w.store.Get(w.t.Context(), "files/owner/"+owner)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		w.t.Fatal(err)
	}
	if entry.Revision != w.rev {
		w.version++
		w.rev, w.stored, s.at, s.base = entry.Revision, now, w.version, now
	}
}

// end checks that no chunk is left when the last file is gone.
func (w *world) end(s *side) {
	w.restart(s)
	s.prepare()
	must(w.t, os.RemoveAll(s.path(".")))
	must(w.t, os.Mkdir(s.path("."), 0o700))
	s.keep()
	for e, err := range w.store.List(w.t.Context(), storage.Range{Prefix: "blob/"}) {
		w.t.Fatalf("left: %s, %v", e.Key, err)
	}
}

// check looks at the store with the eyes of a new replica.
func (w *world) check() {
	fresh := newReplica(w.t, w.store)
	fresh.prepare()
	wantSame(w.t, fresh.dump(), w.stored)
	must(w.t, os.RemoveAll(fresh.dir))
}

// TestPropertyTwoReplicasOnOneStore has two replicas change, store and check out the files of
// an owner in any order, with ends of processes and cut connections in between. What
// the store holds is always what the last Keep that succeeded has found, whole, and at the end nothing else.
func TestPropertyTwoReplicasOnOneStore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{t: t, store: openStore(t), stored: files{}}
		for range 2 {
			s := &side{replica: newReplica(t, w.store)}
			must(t, os.MkdirAll(workspace.OwnerDir(s.dir, owner), 0o700))
			w.restart(s)
			w.sides = append(w.sides, s)
		}
		pick := rapid.SampledFrom(w.sides)
		rt.Repeat(map[string]func(*rapid.T){
			"change":  func(rt *rapid.T) { w.change(rt, pick.Draw(rt, "side")) },
			"change2": func(rt *rapid.T) { w.change(rt, pick.Draw(rt, "side")) },
			"prepare": func(rt *rapid.T) { w.prepare(pick.Draw(rt, "side")) },
			"keep":    func(rt *rapid.T) { w.keep(pick.Draw(rt, "side")) },
			"keep cut off": func(rt *rapid.T) {
				s := pick.Draw(rt, "side")
				s.store.in, s.store.after = rapid.IntRange(1, 3).Draw(rt, "at"), rapid.Bool().Draw(rt, "after")
				w.keep(s)
				s.store.in = 0
			},
			"end": func(rt *rapid.T) { w.restart(pick.Draw(rt, "side")) },
		})
		w.end(w.sides[0])
	})
}

// paused lets somebody else act before each of the calls of a store.
type paused struct {
	storage.Store
	act func()
}

func (p *paused) Get(ctx context.Context, key string) (storage.Entry, error) {
	p.act()
	return p.Store.Get(ctx, key)
}

func (p *paused) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	p.act()
	return p.Store.Write(ctx, ops...)
}

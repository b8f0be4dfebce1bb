package workspace_test

import (
	"context"
	"errors"
	"fmt"
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
	case err == nil && maps.Equal(here, s.base):
	case err == nil && s.at == w.version:
		w.version++
		w.stored, s.at, s.base = here, w.version, here
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
		w.version++
		w.stored, s.at, s.base = here, w.version, here
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
// an owner in any order, with ends of processes, cut connections and sweeps in between. What
// the store holds is always what the last Keep that succeeded has found, whole.
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
			"sweep": func(rt *rapid.T) {
				if _, err := pick.Draw(rt, "side").Sweep(t.Context()); err != nil {
					rt.Fatal(err)
				}
				w.check()
			},
		})
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

// TestASweepAtEveryStep has another process sweep, whole or half, before each call that a Keep
// makes of the store, and one that was paused in a sweep go on at the next.
func TestASweepAtEveryStep(t *testing.T) {
	for step := 1; step <= 12; step++ {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			base := openStore(t)
			calls, resume := 0, make(chan struct{})
			reached, done := make(chan struct{}), make(chan struct{})
			// The other sweeper is paused when it has read the manifests.
			once := true
			slow := workspace.NewStore(workspace.StoreConfig{Dir: t.TempDir(), Store: &paused{base, func() {
				if calls++; calls == 2 && once {
					once = false
					close(reached)
					<-resume
				}
			}}})
			quick := workspace.NewStore(workspace.StoreConfig{Dir: t.TempDir(), Store: base})
			n := 0
			store := &paused{Store: base}
			a := newReplica(t, store)
			store.act = func() {
				n++
				switch n {
				case step:
					go func() {
						defer close(done)
						if _, err := slow.Sweep(context.WithoutCancel(t.Context())); err != nil {
							t.Error(err)
						}
					}()
					select {
					case <-reached:
					case <-done: // there was nothing to remove
					}
				case step + 1:
					if _, err := quick.Sweep(t.Context()); err != nil {
						t.Error(err)
					}
				case step + 2:
					close(resume)
					<-done
				}
			}
			a.prepare()
			a.write("one", "1")
			a.keep()
			a.write("two", "2")
			must(t, os.Remove(a.path("one")))
			a.keep()
			a.write("one", "1")
			a.keep()
			if n < step { // it was not reached
				close(done)
			}
			if n < step+2 {
				close(resume)
			}
			<-done
			b := newReplica(t, base)
			b.prepare()
			wantSame(t, b.dump(), a.dump())
		})
	}
}

func TestASweepRemovesWhatNobodyHas(t *testing.T) {
	store := openStore(t)
	a := newReplica(t, store)
	a.prepare()
	a.write("one", "1")
	a.write("two", "2")
	a.keep()
	must(t, os.Remove(a.path("one")))
	a.keep()
	for _, want := range []int{1, 0} {
		if n, err := a.Sweep(t.Context()); n != want || err != nil {
			t.Fatalf("removed %d, %v; want %d", n, err, want)
		}
	}
	left := 0
	for _, err := range store.List(t.Context(), storage.Range{Prefix: "blob/data/"}) {
		must(t, err)
		left++
	}
	if left != 1 {
		t.Errorf("%d chunks are left, want 1", left)
	}
	// What nobody can read names nobody knows what.
	_, err := store.Put(t.Context(), "files/owner/broken", []byte("{"), storage.Absent)
	must(t, err)
	must(t, os.Remove(a.path("two")))
	a.keep()
	if n, err := a.Sweep(t.Context()); n != 0 || err == nil {
		t.Errorf("beside a manifest that does not decode %d were removed, %v", n, err)
	}
}

package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/storage/replicas"
)

const ttl = 10 * time.Second

// line is the way of one replica to the store. It can be cut, and it can hang: then nothing
// that the replica does comes to an end, as if its process were paused.
type line struct {
	storage.Store
	mu  sync.Mutex
	cut bool
	// paused is closed when the pause ends; nil for none.
	paused chan struct{}
}

var errCut = errors.New("the line is cut")

func (l *line) pass() error {
	l.mu.Lock()
	paused := l.paused
	l.mu.Unlock()
	if paused != nil {
		<-paused
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return errCut
	}
	return nil
}

func (l *line) set(cut bool, paused chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.paused = cut, paused
}

func (l *line) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	if err := l.pass(); err != nil {
		return 0, err
	}
	return l.Store.Put(ctx, key, value, rev)
}

func (l *line) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	if err := l.pass(); err != nil {
		return 0, err
	}
	return l.Store.Write(ctx, ops...)
}

func (l *line) Delete(ctx context.Context, key string, rev storage.Revision) error {
	if err := l.pass(); err != nil {
		return err
	}
	return l.Store.Delete(ctx, key, rev)
}

func (l *line) Get(ctx context.Context, key string) (storage.Entry, error) {
	if err := l.pass(); err != nil {
		return storage.Entry{}, err
	}
	return l.Store.Get(ctx, key)
}

// cluster is some replicas on one store.
type cluster struct {
	t      interface{ Fatal(args ...any) }
	store  storage.Store
	leases []string
	nodes  []*node
	busy   func(string) bool
}

type node struct {
	*replicas.Replica
	line *line
	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	begun  int
	active map[string]bool
}

func newCluster(t interface {
	Fatal(args ...any)
}, dir string, leases int,
) *cluster {
	s, err := bolt.Open(bolt.Config{Path: filepath.Join(dir, fmt.Sprint(time.Now().UnixNano())), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, store: s}
	for i := range leases {
		c.leases = append(c.leases, fmt.Sprintf("share/%02d", i))
	}
	return c
}

// close ends all replicas and the store.
func (c *cluster) close() {
	for _, n := range c.nodes {
		n.end()
	}
	_ = c.store.Close()
}

func (n *node) end() {
	n.line.mu.Lock()
	paused := n.line.paused
	n.line.paused = nil
	n.line.mu.Unlock()
	if paused != nil {
		close(paused)
	}
	n.stop()
	<-n.done
}

func (c *cluster) join() *node {
	n := &node{line: &line{Store: c.store}, done: make(chan struct{}), active: map[string]bool{}}
	n.Replica = replicas.New(replicas.Config{
		Store: n.line, Leases: c.leases, TTL: ttl, Host: fmt.Sprint("host ", len(c.nodes)), IsBusy: c.busy,
		OnJoin: func(string) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.begun++
		},
		OnTaken: func(_ context.Context, names map[string]storage.Op) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			for name := range names {
				n.active[name] = true
			}
			return nil
		},
		OnLost: func(name string) {
			n.mu.Lock()
			defer n.mu.Unlock()
			if !n.active[name] {
				c.t.Fatal("a lease is lost that was never taken: " + name)
			}
			delete(n.active, name)
		},
	})
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	go func() {
		defer close(n.done)
		if err := n.Run(ctx); err != nil {
			c.t.Fatal(err)
		}
	}()
	c.nodes = append(c.nodes, n)
	return n
}

// holders are how many leases each replica holds. No lease has two holders.
func (c *cluster) holders() []int {
	counts := make([]int, len(c.nodes))
	for _, lease := range c.leases {
		holders := 0
		for i, n := range c.nodes {
			if n.Holds(lease) {
				counts[i]++
				holders++
			}
		}
		if holders > 1 {
			c.t.Fatal(lease + " has two holders")
		}
	}
	return counts
}

// after lets time pass and looks at the holders all the while.
func (c *cluster) after(d time.Duration) []int {
	const step = 100 * time.Millisecond
	for ; d > 0; d -= step {
		time.Sleep(step) // of the bubble
		synctest.Wait()
		c.holders()
	}
	return c.holders()
}

func (c *cluster) want(what string, got []int, want ...int) {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.t.Fatal(fmt.Sprintf("%s: the leases are held %v, want %v", what, got, want))
	}
}

func TestOneReplicaHoldsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, t.TempDir(), 8)
		defer c.close()
		c.join()
		c.want("alone", c.after(time.Second), 8)
	})
}

func TestReplicasShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, t.TempDir(), 8)
		defer c.close()
		c.join()
		c.after(time.Second)
		b := c.join()
		c.want("a second has joined", c.after(2*ttl), 4, 4)
		c.join()
		c.want("a third has joined", slices.Sorted(slices.Values(c.after(2*ttl))), 2, 3, 3)
		members, err := replicas.List(t.Context(), c.store)
		if err != nil || len(members) != 3 || len(members[0].Leases)+len(members[1].Leases)+len(members[2].Leases) != 8 {
			t.Errorf("people see %+v, %v", members, err)
		}
		b.end()
		if got := c.after(time.Second); got[0]+got[2] != 8 {
			t.Errorf("a second after one has left: %v", got)
		}
	})
}

func TestABusyLeaseIsNotGivenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, t.TempDir(), 4)
		defer c.close()
		busy := true
		var mu sync.Mutex
		c.busy = func(string) bool { mu.Lock(); defer mu.Unlock(); return busy }
		c.join()
		c.after(time.Second)
		c.join()
		c.want("all are busy", c.after(2*ttl), 4, 0)
		mu.Lock()
		busy = false
		mu.Unlock()
		c.want("none is busy", c.after(ttl), 2, 2)
	})
}

// What a dead replica held is another's after the time to live and a moment.
func TestADeadReplicaIsReplaced(t *testing.T) {
	for _, how := range []string{"cut off", "paused"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, t.TempDir(), 6)
				defer c.close()
				c.join()
				b := c.join()
				c.want("both", c.after(2*ttl), 3, 3)
				paused := make(chan struct{})
				if how == "paused" {
					b.line.set(false, paused)
				} else {
					b.line.set(true, nil)
				}
				c.want("one is dead", c.after(ttl+300*time.Millisecond), 6, 0)
				b.line.set(false, nil)
				close(paused)
				c.want("it is back", c.after(2*ttl), 3, 3)
				b.mu.Lock()
				defer b.mu.Unlock()
				if b.begun != 2 {
					t.Errorf("it joined %d times", b.begun)
				}
			})
		})
	}
}

// A lease whose work cannot begin is somebody else's to try.
func TestALeaseThatCannotBeUsedIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCluster(t, t.TempDir(), 1)
		defer func() { _ = s.store.Close() }()
		tries := 0
		r := replicas.New(replicas.Config{
			Store: s.store, Leases: s.leases, TTL: ttl, OnLost: func(string) {},
			OnTaken: func(context.Context, map[string]storage.Op) error {
				if tries++; tries < 3 {
					return errors.New("not yet")
				}
				return nil
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(2 * ttl) // of the bubble
		if !r.Holds(s.leases[0]) || tries != 3 {
			t.Errorf("held: %v, after %d tries", r.Holds(s.leases[0]), tries)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// However replicas come, go, hang and lose the store: no lease has two holders at any
// moment, and when all is well again each has one.
func TestNoLeaseHasTwoHolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [3]int {
			return [3]int{rapid.IntRange(0, 5).Draw(t, "what"), rapid.IntRange(0, 3).Draw(t, "who"), rapid.IntRange(1, 300).Draw(t, "for tenths")}
		}), 1, 8).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, dir, 5)
			defer c.close()
			c.join()
			for _, step := range steps {
				n := c.nodes[step[1]%len(c.nodes)]
				switch step[0] {
				case 0, 1:
					if len(c.nodes) < 4 {
						c.join()
					}
				case 2:
					n.line.set(true, nil)
				case 3:
					paused := make(chan struct{})
					n.line.set(false, paused)
					c.after(time.Duration(step[2]) * 100 * time.Millisecond)
					n.line.set(false, nil)
					close(paused)
				case 4:
					n.line.set(false, nil)
				}
				c.after(time.Duration(step[2]) * 100 * time.Millisecond)
			}
			for _, n := range c.nodes {
				n.line.set(false, nil)
			}
			total := 0
			for _, n := range c.after(3 * ttl) {
				total += n
			}
			if total != len(c.leases) {
				t.Fatalf("%d of %d leases have a holder", total, len(c.leases))
			}
		})
	})
}

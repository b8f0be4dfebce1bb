package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sync/errgroup"

	"oneclaw/storage"
)

// call is one call for a key, for both keys, or for a log. For a log, rev is a position.
type call struct {
	method string
	name   string
	value  string
	rev    storage.Revision
	second storage.Revision // expected revision of the second key
}

// answer is the result of a call.
type answer struct {
	value string
	rev   storage.Revision
	err   error
}

// unknown reports whether the outcome of the call is unknown.
func (a answer) unknown() bool {
	return a.err != nil && !errors.Is(a.err, storage.ErrConflict) && !errors.Is(a.err, storage.ErrNotFound)
}

// modelState is the state of a key or a log between two calls.
type modelState struct {
	value   string
	rev     storage.Revision // Absent if there is none
	highest storage.Revision // highest so far
	// hidden is set if no client knows rev, because the result of the write was lost.
	hidden bool
}

// twoKeys are the keys in calls.
var twoKeys = []string{"one", "two"}

// bothKeys is the state of the two keys. For the log, only the first element is used.
type bothKeys [2]modelState

func testLinearizable(t testing.TB, s storage.Store) {
	LinearizableOver(t, s, nil)
}

// LinearizableOver calls a store concurrently, calls fault after half of the calls, and checks that some
// order of the calls explains their results. A call that returned an error other than ErrConflict and
// ErrNotFound may have taken effect or not. fault returns when the store works again; if it is nil, such
// an error fails the test.
func LinearizableOver(t testing.TB, s storage.Store, fault func() error) {
	const clients, calls = 4, 60
	ctx, cancel := withPatience(t)
	defer cancel()
	var clock, count atomic.Int64
	var mu sync.Mutex // guards history
	var history []porcupine.Operation
	var g errgroup.Group
	over := make(chan struct{})
	if fault == nil {
		close(over)
	}
	for client := range clients {
		g.Go(func() error {
			random := rand.New(rand.NewPCG(1, uint64(client)))
			seen := map[string]storage.Revision{}
			for n := range calls {
				in := drawCall(random, seen, fmt.Sprint(client, "/", n))
				op := porcupine.Operation{ClientId: client, Input: in, Call: clock.Add(1)}
				out := in.run(ctx, s)
				if op.Output, op.Return = out, clock.Add(1); out.unknown() {
					if fault == nil {
						return out.err
					}
					op.Return = math.MaxInt64 // it may take effect at any time
				}
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
				if count.Add(1) == clients*calls/2 && fault != nil {
					if err := fault(); err != nil {
						return err
					}
					close(over)
				}
				if out.unknown() {
					select { // no more calls with an unknown outcome
					case <-over:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				for _, name := range in.names() {
					seen[name] = max(seen[name], out.rev)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, history)
}

// wantOrder checks that some order of the calls explains a history.
func wantOrder(t testing.TB, history []porcupine.Operation) {
	model := porcupine.Model{
		Partition: partitionByState,
		Init:      func() any { return bothKeys{} },
		Step: func(state, in, out any) (bool, any) {
			return state.(bothKeys).step(in.(call), out.(answer))
		},
	}
	if !porcupine.CheckOperations(model, history) {
		t.Fatalf("no order of %d calls explains what they returned", len(history))
	}
}

// drawCall draws a random call. A write expects the highest revision that its client has seen, Any or
// Absent.
func drawCall(random *rand.Rand, seen map[string]storage.Revision, value string) call {
	c := call{name: []string{"one", "two", "log"}[random.IntN(3)], value: value}
	c.rev = seen[c.name]
	if c.name == "log" {
		c.method = []string{"Last", "Append"}[random.IntN(2)]
		return c
	}
	c.method = []string{"Get", "Put", "Delete", "Both"}[random.IntN(4)]
	if random.IntN(3) == 0 {
		c.rev = []storage.Revision{storage.Any, storage.Absent}[random.IntN(2)]
	}
	if c.method == "Both" {
		c.name, c.rev, c.second = twoKeys[0], seen[twoKeys[0]], seen[twoKeys[1]]
		if random.IntN(2) == 0 {
			c.second = storage.Any
		}
	}
	return c
}

// names returns the keys or the log that a call names.
func (c call) names() []string {
	if c.method == "Both" {
		return twoKeys
	}
	return []string{c.name}
}

func (c call) run(ctx context.Context, s storage.Store) (a answer) {
	switch c.method {
	case "Get":
		var e storage.Entry
		e, a.err = s.Get(ctx, c.name)
		a.value, a.rev = string(e.Value), e.Revision
	case "Put":
		a.rev, a.err = s.Put(ctx, c.name, []byte(c.value), c.rev)
	case "Delete":
		a.err = s.Delete(ctx, c.name, c.rev)
	case "Both":
		a.rev, a.err = s.Write(ctx, storage.Put(twoKeys[0], []byte(c.value), c.rev), storage.Put(twoKeys[1], []byte(c.value), c.second))
	case "Last":
		a.err = storage.ErrNotFound
		for r, err := range s.Records(ctx, c.name, storage.Query{Backward: true, Limit: 1}) {
			a = answer{value: string(r.Data), rev: storage.Revision(r.Pos), err: err}
		}
	case "Append":
		var pos storage.Position
		pos, a.err = s.Append(ctx, c.name, storage.Position(c.rev), record("", c.value))
		a.rev = storage.Revision(pos)
	}
	return a
}

// step reports whether a call in this state can have this result, and returns the state after the call.
func (b bothKeys) step(c call, a answer) (bool, bothKeys) {
	if c.method != "Both" {
		n := slices.Index(twoKeys[1:], c.name) + 1 // the log has its state to itself
		ok, v := b[n].step(c, a)
		b[n] = v
		return ok, b
	}
	first, second := c, c
	first.method, second.method, second.rev = "Put", "Put", c.second
	if !first.matchesState(b[0]) || !second.matchesState(b[1]) {
		return a.unknown() || errors.Is(a.err, storage.ErrConflict), b
	}
	one, v := b[0].step(first, a)
	two, w := b[1].step(second, a)
	return one && two, bothKeys{v, w}
}

// matchesState reports whether a write expects this state.
func (c call) matchesState(v modelState) bool {
	return c.rev == storage.Any || c.rev == v.rev && !v.hidden && (c.method != "Delete" || v.rev != storage.Absent)
}

func (v modelState) step(c call, a answer) (bool, modelState) {
	if c.method == "Get" || c.method == "Last" {
		return v.checkRead(a)
	}
	if !c.matchesState(v) {
		return a.unknown() || errors.Is(a.err, storage.ErrConflict), v
	}
	if a.err != nil && !a.unknown() {
		return false, v
	}
	switch {
	case c.method == "Delete":
		return true, modelState{highest: v.highest}
	case c.method == "Append":
		return a.unknown() || a.rev == c.rev+1, modelState{value: c.value, rev: c.rev + 1}
	case a.unknown():
		// Its revision is unknown until a read returns it, so that only a call after that read can
		// expect it.
		return true, modelState{value: c.value, rev: v.highest + 1, highest: v.highest, hidden: true}
	}
	return a.rev > v.highest, modelState{value: c.value, rev: a.rev, highest: a.rev}
}

func (v modelState) checkRead(a answer) (bool, modelState) {
	switch {
	case a.unknown():
		return true, v
	case v.rev == storage.Absent:
		return errors.Is(a.err, storage.ErrNotFound), v
	case v.hidden:
		return a.err == nil && a.rev > v.highest && a.value == v.value, modelState{value: v.value, rev: a.rev, highest: a.rev}
	}
	return a.err == nil && a.rev == v.rev && a.value == v.value, v
}

// partitionByState divides a history into the calls for keys and those for the log, which are
// independent.
func partitionByState(history []porcupine.Operation) [][]porcupine.Operation {
	var parts [2][]porcupine.Operation
	for _, op := range history {
		part := 0
		if op.Input.(call).name == "log" {
			part = 1
		}
		parts[part] = append(parts[part], op)
	}
	return parts[:]
}

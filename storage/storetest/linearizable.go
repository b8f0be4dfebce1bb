package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sync/errgroup"

	"oneclaw/storage"
)

// call is one call for a key or a log. For a log rev is a position.
type call struct {
	method string
	name   string
	value  string
	rev    storage.Revision
}

// answer is what a call returned.
type answer struct {
	value string
	rev   storage.Revision
	err   error
}

// version is the state of a key or a log between two calls.
type version struct {
	value   string
	rev     storage.Revision // Absent where there is none
	highest storage.Revision // that this key has had
}

func linearizable(t testing.TB, s storage.Store) {
	const clients, calls = 4, 60
	ctx, cancel := within(t)
	defer cancel()
	var clock atomic.Int64
	var mu sync.Mutex // guards history
	var history []porcupine.Operation
	var g errgroup.Group
	for client := range clients {
		g.Go(func() error {
			random := rand.New(rand.NewPCG(1, uint64(client)))
			seen := map[string]storage.Revision{}
			for n := range calls {
				in := drawCall(random, seen, fmt.Sprint(client, "/", n))
				op := porcupine.Operation{ClientId: client, Input: in, Call: clock.Add(1)}
				out := in.do(ctx, s)
				op.Output, op.Return = out, clock.Add(1)
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
				if out.err != nil && !errors.Is(out.err, storage.ErrConflict) && !errors.Is(out.err, storage.ErrNotFound) {
					return out.err
				}
				seen[in.name] = max(seen[in.name], out.rev)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	model := porcupine.Model{
		Partition: byName,
		Init:      func() any { return version{} },
		Step: func(state, in, out any) (bool, any) {
			return state.(version).step(in.(call), out.(answer))
		},
	}
	if !porcupine.CheckOperations(model, history) {
		t.Fatalf("no order of %d calls explains what they returned", len(history))
	}
}

// drawCall draws a call. A write expects what its client has seen last, or else.
func drawCall(random *rand.Rand, seen map[string]storage.Revision, value string) call {
	c := call{name: []string{"one", "two", "log"}[random.IntN(3)], value: value}
	c.rev = seen[c.name]
	if c.name == "log" {
		c.method = []string{"Last", "Append"}[random.IntN(2)]
		return c
	}
	c.method = []string{"Get", "Put", "Delete"}[random.IntN(3)]
	if random.IntN(3) == 0 {
		c.rev = []storage.Revision{storage.Any, storage.Absent}[random.IntN(2)]
	}
	return c
}

func (c call) do(ctx context.Context, s storage.Store) (a answer) {
	switch c.method {
	case "Get":
		var e storage.Entry
		e, a.err = s.Get(ctx, c.name)
		a.value, a.rev = string(e.Value), e.Revision
	case "Put":
		a.rev, a.err = s.Put(ctx, c.name, []byte(c.value), c.rev)
	case "Delete":
		a.err = s.Delete(ctx, c.name, c.rev)
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

// step reports whether a call in this state can return an answer, and the state behind
// it.
func (v version) step(c call, a answer) (bool, version) {
	if c.method == "Get" || c.method == "Last" {
		if v.rev == storage.Absent {
			return errors.Is(a.err, storage.ErrNotFound), v
		}
		return a.err == nil && a.rev == v.rev && a.value == v.value, v
	}
	fits := c.rev == v.rev && (c.method != "Delete" || v.rev != storage.Absent) || c.rev == storage.Any
	if !fits || a.err != nil {
		return !fits && errors.Is(a.err, storage.ErrConflict), v
	}
	switch c.method {
	case "Put":
		return a.rev > v.highest, version{value: c.value, rev: a.rev, highest: a.rev}
	case "Append":
		return a.rev == v.rev+1, version{value: c.value, rev: a.rev}
	}
	return true, version{highest: v.highest}
}

// byName divides a history into those of each key and log, which do not touch each other.
func byName(history []porcupine.Operation) [][]porcupine.Operation {
	parts := map[string][]porcupine.Operation{}
	for _, op := range history {
		name := op.Input.(call).name
		parts[name] = append(parts[name], op)
	}
	var all [][]porcupine.Operation
	for _, part := range parts {
		all = append(all, part)
	}
	return all
}

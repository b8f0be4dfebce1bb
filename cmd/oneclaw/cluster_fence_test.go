package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"

	"oneclaw/bridge/platformtest"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/storage"
)

// unfencedVariable makes the program one that writes jobs, and says that it is alive, over
// whatever others have written meanwhile.
const unfencedVariable = "TEST_UNFENCED"

// unfenced is a store that forgets what the writer of a job expects.
type unfenced struct{ storage.Store }

// fenced reports whether a key is one that a replica loses when it is taken for dead. Leases
// stay what they are: who starts beside others must find out which are taken.
func fenced(key string) bool {
	return strings.HasPrefix(key, "replicas/member/") || strings.HasPrefix(key, queue.OpenPrefix) || strings.HasPrefix(key, receipts.Prefix)
}

// holds reports whether an operation checks that a lease is held.
func holds(op storage.Op) bool {
	return op.Kind == storage.KindCheck && strings.HasPrefix(op.Key, "replicas/lease/")
}

func (u unfenced) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	got, err := u.Store.Put(ctx, key, value, rev)
	if errors.Is(err, storage.ErrConflict) && fenced(key) && rev != storage.Absent {
		return u.Store.Put(ctx, key, value, storage.Any)
	}
	return got, err
}

func (u unfenced) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	ops = slices.DeleteFunc(slices.Clone(ops), holds)
	rev, err := u.Store.Write(ctx, ops...)
	if !errors.Is(err, storage.ErrConflict) || !slices.ContainsFunc(ops, func(op storage.Op) bool { return fenced(op.Key) && op.Rev != storage.Absent }) {
		return rev, err
	}
	var forced []storage.Op
	for _, op := range ops {
		switch {
		case op.Kind == storage.KindCheck && fenced(op.Key):
			continue
		case op.Kind == storage.KindAppend:
			op.After = u.end(ctx, op.Log)
		case fenced(op.Key):
			op.Rev = storage.Any
		}
		forced = append(forced, op)
	}
	return u.Store.Write(ctx, forced...)
}

// end is where a log ends now.
func (u unfenced) end(ctx context.Context, log string) (last storage.Position) {
	for r, err := range u.Records(ctx, log, storage.Query{Backward: true, Limit: 1, Before: math.MaxInt64}) {
		if err == nil {
			last = r.Pos
		}
	}
	return last
}

// complaints is what a check has found.
type complaints []string

func (c *complaints) Helper() {}

func (c *complaints) Errorf(format string, args ...any) {
	*c = append(*c, fmt.Sprintf(format, args...))
}

// TestClusterWithoutFencesIsCaught is the control: programs without fences are paused for
// longer than the time-out in the flood, until the checks of the flood complain.
func TestClusterWithoutFencesIsCaught(t *testing.T) {
	platformtest.OnlyNightly(t)
	c := newCluster(t, 3, ttlOfTest, unfencedVariable+"=1")
	defer c.explain()
	c.begin()
	var found complaints
	for n := range 10 {
		victim := c.replicas[n%len(c.replicas)]
		sent := 0
		c.telegram.View(func(s telegram.State) { sent = s.CallCount("sendmessage") })
		c.say(3)
		c.until(nil, "an answer before the pause", func(s telegram.State) bool { return s.CallCount("sendmessage") > sent })
		victim.signal(syscall.SIGSTOP)
		c.say(1)
		lost := c.answeredWithin(10 * ttlOfTest)
		victim.signal(syscall.SIGCONT)
		c.say(1)
		if lost = cmp.Or(lost, c.answeredWithin(10*ttlOfTest)); lost != nil {
			found = complaints{lost.Error()}
			break
		}
		found = nil
		if c.check(&found); len(found) > 0 {
			break
		}
	}
	if len(found) == 0 {
		t.Error("ten pauses of programs without fences are not noticed")
	}
	t.Logf("found:\n%s", strings.Join(found, "\n"))
}

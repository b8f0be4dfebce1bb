package bridge_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"oneclaw/storage"
)

// waits notes each write of a store, as the names that it writes to.
type waits struct {
	storage.Store

	mu    sync.Mutex
	names [][]string
}

func (w *waits) note(names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = append(w.names, names)
}

func (w *waits) Append(ctx context.Context, log string, after storage.Position, records ...storage.Record) (storage.Position, error) {
	w.note(log)
	return w.Store.Append(ctx, log, after, records...)
}

func (w *waits) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	w.note(key)
	return w.Store.Put(ctx, key, value, rev)
}

func (w *waits) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	var names []string
	for _, op := range ops {
		if op.Kind != storage.KindCheck { // writes nothing
			names = append(names, op.Key+op.Log)
		}
	}
	w.note(names...)
	return w.Store.Write(ctx, ops...)
}

// TestAPlainAnswerWaitsForTwoWrites: the job, then the answer together with the record
// that it is being sent. The receipt of the message before is nobody's wait.
func TestAPlainAnswerWaitsForTwoWrites(t *testing.T) {
	r := newHarness(t, echo)
	r.stop()
	store := &waits{Store: r.cfg.Store}
	r.cfg.Store = store
	r.start()
	r.accept(direct("1", "first")) // enters the conversation into a list, too
	r.platform.wait(t, 1)
	r.restart() // and with it the receipt is written
	store.mu.Lock()
	store.names = nil
	store.mu.Unlock()
	r.platform.fail = func(_ int, arrived bool) error {
		if !arrived {
			store.note("the request")
		}
		return nil
	}
	r.accept(direct("2", "second"))
	r.platform.wait(t, 2)
	r.stop()
	request := slices.IndexFunc(store.names, func(names []string) bool { return names[0] == "the request" })
	before := slices.DeleteFunc(store.names[:max(request, 0)], func(names []string) bool {
		return names[0] == "sweep" // the housekeeping, beside it
	})
	if len(before) != 2 || len(before[0]) != 1 || len(before[1]) != 2 || !strings.HasPrefix(before[0][0], "job/open/") || !slices.Contains(before[1], before[0][0]) {
		t.Errorf("written before the request: %q", before)
	}
}

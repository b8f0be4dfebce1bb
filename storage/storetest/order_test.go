package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"oneclaw/storage"
)

// lossy is a store that loses the answers of two puts before its fault: the second of those
// has happened.
type lossy struct {
	storage.Store
	puts  atomic.Int32
	whole atomic.Bool
}

func (l *lossy) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	n := l.puts.Add(1)
	if l.whole.Load() || n != 5 && n != 10 {
		return l.Store.Put(ctx, key, value, rev)
	}
	if n == 10 {
		_, _ = l.Store.Put(ctx, key, value, rev)
	}
	return 0, errors.New("the answer is lost")
}

// changed is a store whose keys have another value after its fault.
type changed struct{ *lossy }

func (c changed) Get(ctx context.Context, key string) (storage.Entry, error) {
	entry, err := c.lossy.Get(ctx, key)
	if c.whole.Load() {
		entry.Value = []byte("what nobody wrote")
	}
	return entry, err
}

// TestOrderOverAFault wants lost answers to be explained, and lost writes to be found.
func TestOrderOverAFault(t *testing.T) {
	for name, c := range map[string]struct {
		changes, drops, wrong bool
	}{
		"only answers are lost": {},
		"values are changed":    {changes: true, wrong: true},
		"a log is lost":         {drops: true, wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			found := failure(t, memoryConfig(""), property{name: name, check: func(t testing.TB, s storage.Store) {
				l := &lossy{Store: s}
				s = l
				if c.changes {
					s = changed{l}
				}
				LinearizableOver(t, s, func() error {
					l.whole.Store(true)
					if c.drops {
						return l.Drop(context.Background(), "log")
					}
					return nil
				})
			}}, patience)
			if (found != "") != c.wrong {
				t.Errorf("found %q", found)
			}
		})
	}
}

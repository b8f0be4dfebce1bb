package storage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"oneclaw/storage"
)

func TestRetry(t *testing.T) {
	other := errors.New("another error")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx   context.Context //nolint:containedctx // one of the cases
		errs  []error         // the last one again and again
		want  error
		tries int
	}{
		"written":       {t.Context(), []error{nil}, nil, 1},
		"conflicts":     {t.Context(), []error{storage.ErrConflict, fmt.Errorf("store: %w", storage.ErrConflict), nil}, nil, 3},
		"unchanged":     {t.Context(), []error{storage.ErrConflict, storage.ErrUnchanged}, nil, 2},
		"another error": {t.Context(), []error{storage.ErrConflict, other}, other, 2},
		"cancelled":     {cancelled, []error{storage.ErrConflict}, context.Canceled, 1},
		"no end":        {t.Context(), []error{storage.ErrConflict}, storage.ErrConflict, 1000},
	} {
		tries := 0
		err := storage.Retry(c.ctx, func() error {
			tries++
			return c.errs[min(tries, len(c.errs))-1]
		})
		if !errors.Is(err, c.want) || tries != c.tries {
			t.Errorf("%s: %v after %d tries, want %v after %d", name, err, tries, c.want, c.tries)
		}
	}
}

type oneValue struct {
	storage.KV
	entry storage.Entry
	err   error
}

func (o oneValue) Get(context.Context, string) (storage.Entry, error) { return o.entry, o.err }

func TestLoad(t *testing.T) {
	for name, c := range map[string]struct {
		kv    oneValue
		value []int
		rev   storage.Revision
		fails bool
	}{
		"stored":       {oneValue{entry: storage.Entry{Value: []byte("[1,2]"), Revision: 7}}, []int{1, 2}, 7, false},
		"missing":      {oneValue{err: storage.ErrNotFound}, nil, storage.Absent, false},
		"damaged":      {oneValue{entry: storage.Entry{Value: []byte("[1,{}]"), Revision: 7}}, nil, 7, true},
		"not readable": {oneValue{err: storage.ErrClosed}, nil, storage.Absent, true},
	} {
		value, rev, err := storage.Load[[]int](t.Context(), c.kv, "k")
		if fmt.Sprint(value) != fmt.Sprint(c.value) || rev != c.rev || (err != nil) != c.fails {
			t.Errorf("%s: %v at %d, %v", name, value, rev, err)
		}
	}
}

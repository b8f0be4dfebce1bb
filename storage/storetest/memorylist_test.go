package storetest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"oneclaw/storage"
)

func (m *memory) List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error] {
	return m.list(ctx, r, func() map[string]storage.Entry { return m.kv })
}

func (m *memory) Logs(ctx context.Context, r storage.Range) iter.Seq2[string, error] {
	entries := m.list(ctx, r, func() map[string]storage.Entry {
		names := map[string]storage.Entry{}
		for name, l := range m.logs {
			if len(l.records) > 0 || m.is("lists dropped logs") {
				names[name] = storage.Entry{Key: name}
			}
		}
		if m.is("lists keys as logs") {
			maps.Copy(names, m.kv)
		}
		return names
	})
	return func(yield func(string, error) bool) {
		for e, err := range entries {
			if !yield(e.Key, err) {
				return
			}
		}
	}
}

// list yields the part of what there is that a range names.
func (m *memory) list(ctx context.Context, r storage.Range, all func() map[string]storage.Entry) iter.Seq2[storage.Entry, error] {
	return func(yield func(storage.Entry, error) bool) {
		entries, err := m.listNow(ctx, r, all)
		if err != nil {
			yield(storage.Entry{}, err)
			return
		}
		for _, e := range entries {
			if err := ctx.Err(); err != nil && !m.is("ignores contexts") {
				yield(storage.Entry{}, err)
				return
			}
			e.Value = m.bytes(e.Value, "lists its own values")
			if m.is("lists without values") {
				e.Value = nil
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (m *memory) listNow(ctx context.Context, r storage.Range, all func() map[string]storage.Entry) ([]storage.Entry, error) {
	if r.Limit < 0 {
		return nil, storage.ErrInvalid
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if r.Limit > 0 && m.is("lists one less than the limit") {
		r.Limit--
	}
	if m.is("finds nothing below the prefix 0xff") && strings.HasPrefix(r.Prefix, "\xff") {
		return nil, nil
	}
	entries := listModel(all(), r)
	if e, ok := all()[r.After]; ok && m.is("lists After itself") && strings.HasPrefix(r.After, r.Prefix) {
		entries = slices.Insert(entries, 0, e)
	}
	if len(entries) > 1 && m.is("lists in another order") {
		slices.SortFunc(entries, func(a, b storage.Entry) int {
			return strings.Compare(fmt.Sprintf("%q", b.Key), fmt.Sprintf("%q", a.Key))
		})
	}
	return entries, nil
}

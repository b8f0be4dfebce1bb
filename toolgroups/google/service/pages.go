package service

import (
	"context"

	"golang.org/x/sync/errgroup"
	"google.golang.org/api/googleapi"

	"oneclaw/internal/rescue"
)

// Parallel bounds the concurrent requests of one call.
const Parallel = 10

// maxPages bounds the pages fetched for a list, in case it never ends.
const maxPages = 100

// ClampLimit returns the maximum that the model asked for, or def if it asked for none, up to limit.
func ClampLimit(n, def, limit int) int {
	if n <= 0 {
		n = def
	}
	return min(n, limit)
}

// OrEmpty returns a list, or an empty one instead of nil, which would be null in JSON.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Page returns the result of a list operation: items under a name, and the token of the next page.
func Page[T any](name string, items []T, next string) any {
	page := map[string]any{name: OrEmpty(items)}
	if next != "" {
		page["nextPageToken"] = next
	}
	return page
}

// Pager is a call of the client library that returns one page of a list.
type Pager[C, P any] interface {
	// PageToken selects a page.
	PageToken(token string) C
	// Do fetches the page.
	Do(options ...googleapi.CallOption) (P, error)
}

// Collect fetches pages until there are limit items or no more pages. It returns the items and the
// token of the next page, if any. size sets how many items the next page may have; of returns the
// items and the next token of a page.
func Collect[C Pager[C, P], P, T any](limit int, call C, size func(int64) C, of func(P) ([]T, string)) ([]T, string, error) {
	items := []T{}
	token := ""
	for pages := 1; ; pages++ {
		size(int64(limit - len(items)))
		page, err := call.Do()
		if err != nil {
			return nil, "", err
		}
		more, next := of(page)
		items = append(items, more...)
		if next == "" || next == token || len(items) >= limit || pages == maxPages {
			return items[:min(len(items), limit)], next, nil
		}
		token = next
		call.PageToken(token)
	}
}

// MapConcurrent calls fn for all items, a few at a time, and returns the results in the order of the
// items. It stops at the first error.
func MapConcurrent[T, R any](ctx context.Context, items []T, fn func(context.Context, T) (R, error)) ([]R, error) {
	out := make([]R, len(items))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(Parallel)
	for i, item := range items {
		group.Go(func() error {
			return rescue.Do(func() (err error) { out[i], err = fn(ctx, item); return err })
		})
	}
	return out, group.Wait()
}

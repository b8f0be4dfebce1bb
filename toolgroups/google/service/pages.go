package service

import (
	"context"

	"golang.org/x/sync/errgroup"
	"google.golang.org/api/googleapi"

	"oneclaw/internal/rescue"
)

// Parallel is how many requests one call has open at a time.
const Parallel = 10

// maxPages ends a list that does not end by itself.
const maxPages = 100

// Bounded is a maximum that the model asked for, def where it did not, up to limit.
func Bounded(n, def, limit int) int {
	if n <= 0 {
		n = def
	}
	return min(n, limit)
}

// OrEmpty is a list that is never null in JSON.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Page is the result of a list: items under a name, and the token of the next page.
func Page[T any](name string, items []T, next string) any {
	page := map[string]any{name: OrEmpty(items)}
	if next != "" {
		page["nextPageToken"] = next
	}
	return page
}

// Pager is a call of the client library that answers with one page of a list.
type Pager[C, P any] interface {
	// PageToken asks for the page of a token.
	PageToken(token string) C
	// Do fetches the page.
	Do(options ...googleapi.CallOption) (P, error)
}

// Collect follows the pages of a list until there are limit items or no more pages. It
// returns the token of the next page if it has not reached the last. size sets how
// many items the next page may have; of takes the items and the next token from a page.
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

// Each calls fn for all items side by side, a few at a time, and returns the results
// in the order of the items. The first error ends it.
func Each[T, R any](ctx context.Context, items []T, fn func(context.Context, T) (R, error)) ([]R, error) {
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

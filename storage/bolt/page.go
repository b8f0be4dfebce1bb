package bolt

import (
	"context"
	"os"

	"go.etcd.io/bbolt"
)

// Bounds of a page, which one read transaction copies. The last entry may exceed them.
const (
	pageEntries = 256
	pageBytes   = 1 << 20
)

// yieldPages yields the items that next reads page by page. It holds no transaction while it yields.
func yieldPages[T any](ctx context.Context, s *Store, next func(*bbolt.Tx) (page []T, done bool, err error), yield func(T, error) bool) {
	var zero T
	for done := false; !done; {
		var page []T
		err := s.view(ctx, func(tx *bbolt.Tx) (err error) {
			page, done, err = next(tx)
			s.touch(tx, len(page)*os.Getpagesize())
			return err
		})
		if err != nil {
			yield(zero, err)
			return
		}
		for _, item := range page {
			if err := ctx.Err(); err != nil {
				yield(zero, err)
				return
			}
			if !yield(item, nil) {
				return
			}
		}
	}
}

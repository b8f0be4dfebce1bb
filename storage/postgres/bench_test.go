package postgres_test

import (
	"testing"

	"oneclaw/storage"
	"oneclaw/storage/postgres"
	"oneclaw/storage/postgres/pgtest"
	"oneclaw/storage/storetest"
)

// BenchmarkStore waits for the disk, as a server does that keeps what it has confirmed.
func BenchmarkStore(b *testing.B) {
	durable := pgtest.Server{Settings: []string{"fsync=on"}}
	b.Cleanup(func() {
		if err := durable.Stop(); err != nil {
			b.Error(err)
		}
	})
	places := schemas{base: durable.Database(b)}
	storetest.Benchmark(b, func(b *testing.B) storage.Store {
		return open(b, postgres.Config{URL: places.next(b)})
	})
}

package postgres

import (
	"context"
	"time"
)

// Layout is the version of the tables.
const Layout = layoutVersion

// OpenPolling is Open with another time between two polls.
func OpenPolling(ctx context.Context, cfg Config, poll time.Duration) (*Store, error) {
	cfg.poll = poll
	return Open(ctx, cfg)
}

// Sweep removes the traces of deletions before a transaction, as the store does again
// and again.
func (s *Store) Sweep(ctx context.Context, before string) (string, error) {
	return s.sweep(ctx, before)
}

// Look looks for changes once.
func (s *Store) Look(ctx context.Context) error { return s.publishChanges(ctx, nil) }

// CheckServer is the judgement of a server by its version alone.
func CheckServer(number int, version, name string) error {
	return serverFacts{number: number, version: version, name: name, isolation: "read committed", commit: "on"}.check()
}

// MaxConns is how many connections are open at most.
func (s *Store) MaxConns() int { return int(s.pool.Config().MaxConns) }

// Explain is the text of an error for administrators.
func Explain(err error) string { return explain(err).Error() }

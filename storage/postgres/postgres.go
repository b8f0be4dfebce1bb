// Package postgres implements a [storage.Store] in a PostgreSQL database, which any number of processes
// share.
//
// A few goroutines write. Each takes the waiting writes, as long as no two name the same key or log, and
// the server applies them in one call of a database function (schema.sql): one round trip and one wait
// for the disk. A single write does not wait for more. Reads take pages of a bounded size, and no
// transaction is open while a consumer processes a page.
//
// A watch looks for changes that have become visible since it last looked: when this process has
// written, when another one notifies it, and every second in any case. Notifications only make it
// faster.
package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"oneclaw/storage"
)

// Defaults of [Config].
const (
	// DefaultMaxConns bounds the connections, except the listening one: two for writes, one for finding
	// changes, and one for reads. A server accepts a hundred by default.
	DefaultMaxConns = 4
	// minConns is one for [Store.RunAlone] or [Store.Snapshot], and one for what runs meanwhile.
	minConns = 2
	// defaultTimeout bounds a request to the server.
	defaultTimeout = 15 * time.Second
)

// Config configures a [Store].
type Config struct {
	// URL names the database, for example postgres://user@host:port/database?sslmode=verify-full.
	// Missing parts come from the usual variables (PGHOST, PGSSLROOTCERT, …). The tables are created in
	// the first schema of search_path. The parameters pooler=true and pool_max_conns=N set Pooler and
	// MaxConns.
	URL string
	// Password, if not empty, replaces the password in the URL.
	Password string
	// PasswordFile, if not empty, names a file with the password. It is read for each new connection.
	PasswordFile string
	// Existing makes Open change nothing, and reject a database without tables with storage.ErrNotFound.
	Existing bool
	// MaxConns bounds the connections; 0 means DefaultMaxConns. At least two are needed.
	MaxConns int
	// Timeout bounds each request; 0 means defaultTimeout.
	Timeout time.Duration
	// Pooler is set if a transaction pooler is in front of the server: no statements are prepared, no
	// session settings are used, and changes are found only by polling.
	Pooler bool
	// Channel returns the name of the channel on which stores notify each other of changes of a key, or
	// of keys with a prefix; empty for none, then changes are found by polling. A store gets the
	// notifications of the channels of its watches. It must be the same for all stores. Nil means one
	// channel for all keys.
	Channel func(key string) string
	// Logger receives messages for administrators; nil discards them.
	Logger *slog.Logger
	// poll is the interval at which changes are polled; 0 means pollEvery.
	poll time.Duration
}

// Store is an open database. Close ends its goroutines.
type Store struct {
	reader

	pool    *pgxpool.Pool
	timeout time.Duration
	log     *slog.Logger
	id      string // distinguishes this store's notifications from others
	channel func(key string) string
	close   func()

	writes  chan *write
	writers sync.WaitGroup
	notices notices
	hub     hub

	cancel     context.CancelFunc // ends background
	background sync.WaitGroup

	mu      sync.Mutex // guards closed, and running against an Add after closed
	closed  bool
	running sync.WaitGroup
}

var (
	_ storage.Store      = (*Store)(nil)
	_ storage.ManyGetter = (*Store)(nil)
)

// Open connects to the database named by cfg, and creates or upgrades the tables. For obstacles (a wrong
// password, a missing database or right, a standby, an old server, tables of a newer version of the
// program) it returns errors of one line.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s, err := open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("postgres: open: %w", err)
	}
	return s, nil
}

func open(ctx context.Context, cfg Config) (*Store, error) {
	pc, err := poolConfig(&cfg)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, explain(err)
	}
	s := &Store{
		pool:    pool,
		timeout: cmp.Or(cfg.Timeout, defaultTimeout),
		log:     cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		id:      newID(),
		channel: cfg.Channel,
		writes:  make(chan *write),
		notices: notices{channels: map[string]bool{}, needed: make(chan struct{}, 1)},
		hub:     newHub(),
	}
	if s.channel == nil {
		s.channel = func(string) string { return defaultChannel }
	}
	s.reader = reader{db: pool, request: s.read}
	s.close = sync.OnceFunc(s.shutdown)
	if err := s.withTimeout(ctx, func(ctx context.Context) error { return s.prepare(ctx, cfg.Existing) }); err != nil {
		pool.Close()
		return nil, err
	}
	for range writers {
		s.writers.Go(s.writeAll)
	}
	background, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.background.Go(func() { s.pollChanges(background, cmp.Or(cfg.poll, pollEvery)) })
	s.background.Go(func() { s.sweepLoop(background) })
	s.background.Go(func() { s.notify(background) })
	if !cfg.Pooler {
		s.background.Go(func() { s.listen(background, pc) })
	}
	return s, nil
}

// Close waits for running calls, ends every Watch with storage.ErrClosed, and closes the connections. An
// iteration that is between two pages is not a running call: it ends with storage.ErrClosed.
func (s *Store) Close() error {
	s.close()
	return nil
}

func (s *Store) shutdown() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
	close(s.writes)
	s.writers.Wait()
	s.cancel()
	s.background.Wait()
	s.hub.watchers.End(storage.ErrClosed)
	s.pool.Close()
}

// enter begins a call, which the caller ends with leave.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return storage.ErrClosed
	}
	s.running.Add(1)
	return nil
}

func (s *Store) leave() { s.running.Done() }

// read calls f, which sends a request to the server.
func (s *Store) read(ctx context.Context, f func(context.Context) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.withTimeout(ctx, f)
}

// withTimeout calls f with a timeout, and explains its error. After a timeout, a lost connection or an
// answer that affects all connections, it also makes the pool replace its connections.
func (s *Store) withTimeout(ctx context.Context, f func(context.Context) error) error {
	bounded, cancel := context.WithTimeoutCause(ctx, s.timeout, errTimeout)
	defer cancel()
	err := f(bounded)
	if err == nil || errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if cause := context.Cause(bounded); cause != nil {
		s.pool.Reset()
		return cause
	}
	if affectsAll(err) {
		s.pool.Reset()
	}
	return explain(err)
}

package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/privacy"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
	"oneclaw/storage"
	"oneclaw/storage/replicas"
)

// Bridge carries messages from platforms to the agent and answers back. It has a goroutine for each
// chat whose message is being answered, for each chat whose command is answered, for each platform, for
// pruning, and for expiring cards; [Bridge.Run] waits for all.
type Bridge struct {
	cfg     Config
	log     *slog.Logger
	begun   time.Time
	resumed chan struct{} // closed when the jobs of a former run are queued
	// maxRetry bounds the pauses between attempts at a failed write.
	maxRetry time.Duration

	// See wire.
	store       *trackedStore
	platforms   map[string]chats.Platform
	deadLetters queue.DeadLetters
	leases      *queue.Leases
	jobs        queue.Store
	queue       *queue.Queue
	sender      *outbox.Sender
	reactions   *outbox.Reactions
	previews    *outbox.Previews
	cards       *interact.Cards
	handlers    map[string]interact.Handler // of cards, by their kinds
	gate        *interact.Gate
	elicitation *interact.Elicitation
	panel       interact.Panel
	people      *access.Registry
	observer    *privacy.Observer
	eraser      *privacy.Eraser
	turns       *turn.Runner
	turnHost    turnHost

	admins    *admins
	scopes    *scopes
	inserter  *inserter
	intake    *intake
	claimer   *claimer
	takeover  *takeover
	limiter   *limiter
	delays    *delays
	edits     *edits
	feedback  *feedback
	stops     *stops
	mover     *mover
	executor  *executor
	suspender *suspender
	completer *completer
	mender    *mender
	pruner    *pruner
	loader    *loadWorker
	cardHost  *cardHost
	commands  *commands
	workers   *workers
}

// New checks the configuration and returns a bridge.
func New(cfg Config) (*Bridge, error) {
	switch err := cfg.Access.Validate(); {
	case err != nil:
		return nil, err
	case cfg.Store == nil || cfg.Turns.Agent == nil || cfg.Turns.Tools == nil:
		return nil, errors.New("bridge: a store, an agent and a registry are needed")
	case cfg.DataDir == "":
		return nil, errors.New("bridge: a data directory is needed")
	}
	cfg = cfg.complete()
	store := &trackedStore{Store: cfg.Store}
	cfg.Store = store
	b := &Bridge{
		cfg: cfg, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)), begun: cfg.Now(), resumed: make(chan struct{}),
		store: store, platforms: make(map[string]chats.Platform), maxRetry: cfg.Limits.RetryFor,
	}
	if cfg.Sharing.On {
		b.maxRetry = min(b.maxRetry, sharedRetry)
	}
	for _, p := range cfg.Platforms {
		if _, twice := b.platforms[p.Name()]; twice {
			return nil, fmt.Errorf("bridge: two platforms are named %s", p.Name())
		}
		b.platforms[p.Name()] = p
	}
	b.wire()
	return b, nil
}

// Moved implements [chats.Inbox]. It waits as Accept does.
func (b *Bridge) Moved(ctx context.Context, from, to chats.Chat) error {
	if err := b.ready(ctx); err != nil {
		return fmt.Errorf("moved: %w", err)
	}
	return rescue.Do(func() error { return b.mover.accept(ctx, from, to) })
}

func (b *Bridge) ready(ctx context.Context) error {
	select {
	case <-b.resumed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// NoMoreReceived is the log line of a bridge that has stopped receiving and drains its running turns.
const NoMoreReceived = "nothing is received any more; what runs is ended"

// Run continues what an earlier run left open, then receives and answers until ctx ends. It then stops
// receiving, drains running turns for a bounded time, and returns when everything it started has ended.
// It is called once. If processes share the store, it does this for the chats that this one owns.
//
// A platform that gives up (a wrong token) is logged and does not affect the others; when the last one
// has given up, Run returns its error.
func (b *Bridge) Run(ctx context.Context) error {
	defer b.queue.Close(0)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	leave, err := b.begin(ctx, stop)
	if err == nil {
		defer leave()
	}
	if ctx.Err() != nil {
		return refusal(ctx)
	} else if err != nil {
		return err
	}
	close(b.resumed)
	receiving, stopReceiving := context.WithCancel(ctx)
	defer stopReceiving()
	var background sync.WaitGroup
	background.Go(func() {
		_ = b.leases.WhileHeld(receiving, queue.Leader, func(ctx context.Context) error {
			b.keepRunning(ctx, "what is too old", b.pruner.prune)
			return nil
		})
	})
	background.Go(func() {
		rescue.Go(b.log, "what a former process was fetching", func() { b.pruner.sweepParts(receiving) })
	})
	background.Go(func() { b.keepRunning(receiving, "the ends of cards", b.cards.Run) })
	for _, p := range b.platforms {
		background.Go(func() { rescue.Go(b.log, "the list of commands", func() { announce(receiving, b, p) }) })
	}
	err = b.receive(receiving)
	stopReceiving()
	background.Wait()
	b.log.Info(NoMoreReceived)
	b.leases.Retire()
	if !b.queue.Close(b.cfg.Limits.DrainTimeout) {
		b.log.Info("turns still running at the end of the drain go on after the next start")
	}
	return cmp.Or(err, refusal(ctx))
}

// refusal returns why this process may not use the store; nil if ctx ended for another reason.
func refusal(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, replicas.ErrRefused) {
		return err
	}
	return nil
}

// begin loads the state and takes over chats. If the store is shared, taking over continues until
// leave; stop is called if this process may not continue.
func (b *Bridge) begin(ctx context.Context, stop context.CancelCauseFunc) (leave func(), err error) {
	loadCards := func(ctx context.Context) error { return b.cards.Load(ctx, b.mender.mendQuietly) }
	for _, load := range []func(context.Context) error{b.people.Load, b.observer.Load, b.mover.load, loadCards, b.number} {
		if err := load(ctx); err != nil {
			return nil, err
		}
	}
	if !b.leases.Shared() {
		return func() {}, b.leases.Run(ctx)
	}
	joined, end := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, run := range []func(context.Context){
		func(ctx context.Context) {
			if err := b.leases.Run(ctx); err != nil {
				stop(err)
			}
		},
		func(ctx context.Context) { b.keepRunning(ctx, "what other replicas accept", b.claimer.follow) }, b.keepWatching("moved chats", b.mover.watch), b.keepWatching("people", b.people.Watch), b.keepWatching("cards", b.cards.Watch),
		b.keepWatching("groups it listens in", b.observer.Watch),
	} {
		running.Go(func() { run(joined) })
	}
	return func() { end(); running.Wait() }, nil
}

// number makes the numbers of new jobs higher than all on record: a message with a lower number than
// the /clear before it would count as older.
func (b *Bridge) number(ctx context.Context) error {
	open, _, err := b.jobs.Open(ctx, "", queue.AllChats)
	if err != nil {
		return err
	}
	var newest int64
	var seen storage.Revision
	for _, j := range open {
		newest, seen = max(newest, j.Seq), max(seen, j.Rev)
	}
	for entry, err := range b.store.List(ctx, storage.Range{Prefix: conversation.SessionPrefix}) {
		if err != nil {
			return fmt.Errorf("list sessions: %w", err)
		}
		var s conversation.Session
		if err := json.Unmarshal(entry.Value, &s); err != nil {
			b.log.Error("session cannot be read and is left alone", "key", entry.Key, "err", err)
			continue
		}
		newest, seen = max(newest, s.ClearedAt, s.StoppedAt), max(seen, entry.Revision)
	}
	return b.jobs.Begin(ctx, newest, seen)
}

// keepRunning runs something until ctx ends, again after a panic.
func (b *Bridge) keepRunning(ctx context.Context, what string, run func(context.Context)) {
	_ = rescue.Loop(ctx, b.log, what, func(ctx context.Context) error { run(ctx); return nil }) // there is none
}

// keepWatching applies the changes of other processes, again after a failure.
func (b *Bridge) keepWatching(of string, watch func(context.Context) error) func(context.Context) {
	return func(ctx context.Context) {
		for pauses := retry.New(minRetry, b.maxRetry); ctx.Err() == nil; {
			watching, end := context.WithCancel(ctx) // an abandoned watch would collect events
			err := rescue.Do(func() error { return watch(watching) })
			end()
			if ctx.Err() == nil {
				b.log.Warn("what other replicas change cannot be read, trying again", "of", of, "err", err)
				_ = retry.Wait(ctx, pauses.Next(0))
			}
		}
	}
}

// receive runs the platforms until ctx ends or none is left.
func (b *Bridge) receive(ctx context.Context) error {
	var group sync.WaitGroup
	errs := make(chan error, len(b.platforms))
	for name, p := range b.platforms {
		group.Go(func() {
			if err := b.runPlatform(ctx, p); err != nil && ctx.Err() == nil {
				b.log.Error("platform has given up", "platform", name, "err", err)
				errs <- fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	group.Wait()
	close(errs)
	if ctx.Err() != nil {
		return nil
	}
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}

// runPlatform receives from a platform; if only one process may at a time, while this one holds its
// lease.
func (b *Bridge) runPlatform(ctx context.Context, p chats.Platform) error {
	run := func(ctx context.Context) error {
		return rescue.Loop(ctx, b.log, "receiving from "+p.Name(), func(ctx context.Context) error { return p.Run(ctx, b) })
	}
	if isSingle(p) {
		return b.leases.WhileHeld(ctx, singleLease(p), run)
	}
	return run(ctx)
}

func isSingle(p chats.Platform) bool {
	s, ok := p.(chats.ExclusiveReceiver)
	return ok && s.ReceivesExclusively()
}

func singleLease(p chats.Platform) string { return "platform/" + p.Name() }

// singles returns the leases of exclusive platforms.
func (b *Bridge) singles() (leases []string) {
	for _, p := range b.cfg.Platforms {
		if isSingle(p) {
			leases = append(leases, singleLease(p))
		}
	}
	return leases
}

// IsLeader reports whether this process is the leader, which does the work that is done once.
func (b *Bridge) IsLeader() bool { return b.leases.Holds(queue.Leader) }

func announce(ctx context.Context, b *Bridge, p chats.Platform) {
	announcer, ok := p.(chats.CommandLister)
	if !ok {
		return
	}
	if err := announcer.ListCommands(ctx, b.commands.infos(), b.people.Administrators(p.Name())); err != nil && ctx.Err() == nil {
		b.log.Warn("commands could not be announced", "platform", p.Name(), "err", err)
	}
}

// Load returns the numbers of open jobs.
func (b *Bridge) Load() queue.Load { return b.queue.Load() }

// Ready returns for each platform nil if it receives, or what is wrong.
func (b *Bridge) Ready() map[string]error {
	ready := make(map[string]error, len(b.platforms))
	for name, p := range b.platforms {
		ready[name] = nil
		if m, ok := p.(chats.HealthReporter); ok && (!isSingle(p) || b.leases.Holds(singleLease(p))) {
			ready[name] = m.Health()
		}
	}
	return ready
}

// Health returns nil if every platform receives, or an error that says what is wrong.
func (b *Bridge) Health() error {
	var all error
	for name, err := range b.Ready() {
		if err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", name, err))
		}
	}
	return all
}

var _ chats.Inbox = (*Bridge)(nil)

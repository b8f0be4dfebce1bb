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

// Bridge passes messages from the platforms to the agent, and the answers back. It has goroutines for
// the jobs that run or are being closed, for each platform, for pruning, for expiring cards, and, if the
// store is shared, for leases and for changes by other processes. [Bridge.Run] waits for all of them.
type Bridge struct {
	cfg       Config
	log       *slog.Logger
	startedAt time.Time
	resumed   chan struct{} // closed when the jobs of an earlier run are queued
	// maxRetry bounds the pauses between attempts at a failed write.
	maxRetry time.Duration

	// Set by wire.
	store       *trackedStore
	platforms   map[string]chats.Platform
	deadLetters queue.DeadLetterStore
	leases      *queue.LeaseHolder
	jobs        queue.Store
	queue       *queue.Queue
	sender      *outbox.Sender
	reactions   *outbox.ReactionTracker
	previews    *outbox.PreviewTracker
	cards       *interact.Cards
	handlers    map[string]interact.Handler // by card kind
	gate        *interact.Gate
	elicitation *interact.Elicitation
	panel       interact.Panel
	lasting     interact.LastingList
	people      *access.Registry
	observer    *privacy.Observer
	eraser      *privacy.Eraser
	turns       *turn.Runner
	turnHost    turnHost

	adminChecker  *adminChecker
	scopeResolver *scopeResolver
	inserter      *inserter
	intake        *intake
	claimer       *claimer
	takeover      *takeover
	limiter       *limiter
	delayTracker  *delayTracker
	editHandler   *editHandler
	feedback      *feedbackRecorder
	background    *background
	announcer     *announcer
	unattended    *unattended
	interrupter   *interrupter
	mover         *mover
	reach         *reach
	executor      *executor
	suspender     *suspender
	completer     *completer
	damageHandler *damageHandler
	pruner        *pruner
	loader        *loadWorker
	cardHost      *cardHost
	commands      *commandRegistry
	workers       *workerRegistry
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
	cfg = cfg.withDefaults()
	store := &trackedStore{Store: cfg.Store}
	cfg.Store = store
	b := &Bridge{
		cfg: cfg, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)), startedAt: cfg.Now(), resumed: make(chan struct{}),
		store: store, platforms: make(map[string]chats.Platform), maxRetry: cfg.Limits.RetryFor,
	}
	if cfg.Sharing.Enabled {
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

// Moved implements [chats.Inbox]. Like Accept, it waits until the jobs of an earlier run are queued.
func (b *Bridge) Moved(ctx context.Context, from, to chats.Chat) error {
	if err := b.AwaitReady(ctx); err != nil {
		return fmt.Errorf("moved: %w", err)
	}
	return rescue.Do(func() error { return b.mover.enqueueMove(ctx, from, to) })
}

// CurrentChat returns the chat to which a chat has moved, or the chat itself.
func (b *Bridge) CurrentChat(chat chats.Chat) chats.Chat { return b.queue.CurrentChat(chat) }

// AwaitReady waits until Run has loaded who may talk to the bot, and has queued the jobs of an earlier run.
func (b *Bridge) AwaitReady(ctx context.Context) error {
	select {
	case <-b.resumed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// NoMoreReceived is the log line of a bridge that has stopped receiving and drains its running turns.
const NoMoreReceived = "receiving has stopped; draining running turns"

// Run continues the open jobs of an earlier run, then receives and answers messages until ctx ends. It
// then stops receiving, drains running turns for a bounded time, and returns when all its goroutines
// have ended. Call it only once. If processes share the store, Run serves only the chats that it owns.
//
// A platform that fails permanently (say, with a wrong token) is logged and does not affect the others.
// When all have failed, Run returns their errors.
func (b *Bridge) Run(ctx context.Context) error {
	defer b.queue.Close(0)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	leave, err := b.begin(ctx, stop)
	if err == nil {
		defer leave()
	}
	if ctx.Err() != nil {
		return refusalError(ctx)
	} else if err != nil {
		return err
	}
	close(b.resumed)
	receiving, stopReceiving := context.WithCancel(ctx)
	defer stopReceiving()
	var background sync.WaitGroup
	background.Go(func() {
		_ = b.leases.WhileHeld(receiving, queue.Leader, func(ctx context.Context) error {
			b.keepRunning(ctx, "pruning of old records", b.pruner.prune)
			return nil
		})
	})
	background.Go(func() {
		rescue.Go(b.log, "removal of partial files", func() { b.pruner.sweepPartialFiles(receiving) })
	})
	background.Go(func() { b.keepRunning(receiving, "expiry of cards", b.cards.Run) })
	for _, p := range b.platforms {
		background.Go(func() { rescue.Go(b.log, "the list of commands", func() { announceCommands(receiving, b, p) }) })
	}
	err = b.receive(receiving)
	stopReceiving()
	background.Wait()
	b.log.Info(NoMoreReceived)
	b.leases.Retire()
	if !b.queue.Close(b.cfg.Limits.DrainTimeout) {
		b.log.Info("drain timed out: unfinished turns continue after the next start")
	}
	return cmp.Or(err, refusalError(ctx))
}

// refusalError returns the error with which the store refused this process, nil if there is none.
func refusalError(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, replicas.ErrRefused) {
		return err
	}
	return nil
}

// begin loads the state and takes over chats. If the store is shared, it goes on taking over chats until
// leave is called. It calls stop with an error if this process may not continue.
func (b *Bridge) begin(ctx context.Context, stop context.CancelCauseFunc) (leave func(), err error) {
	loadCards := func(ctx context.Context) error { return b.cards.Load(ctx, b.damageHandler.deadLetterQuietly) }
	for _, load := range []func(context.Context) error{b.people.Load, b.observer.Load, b.mover.loadMoves, loadCards, b.raiseJobNumbers} {
		if err := load(ctx); err != nil {
			return nil, err
		}
	}
	if !b.leases.Shared() {
		return func() {}, b.leases.Run(ctx)
	}
	joined, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, run := range []func(context.Context){
		func(ctx context.Context) {
			if err := b.leases.Run(ctx); err != nil {
				stop(err)
			}
		},
		func(ctx context.Context) { b.keepRunning(ctx, "claiming of jobs", b.claimer.follow) }, b.keepWatching("moved chats", b.mover.watch), b.keepWatching("people", b.people.Watch), b.keepWatching("cards", b.cards.Watch),
		b.keepWatching("observed groups", b.observer.Watch), b.keepWatching("whom to forget", b.eraser.Watch),
	} {
		running.Go(func() { run(joined) })
	}
	return func() { cancel(); running.Wait() }, nil
}

// raiseJobNumbers makes the numbers of new jobs higher than every stored number. Otherwise a message
// could get a lower number than the /clear before it, and would count as older.
func (b *Bridge) raiseJobNumbers(ctx context.Context) error {
	open, _, err := b.jobs.ListOpen(ctx, "", queue.AllChats)
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
			b.log.Error("session cannot be decoded and is skipped", "key", entry.Key, "err", err)
			continue
		}
		newest, seen = max(newest, s.ClearedAt, s.StoppedAt), max(seen, entry.Revision)
	}
	return b.jobs.RaiseNumbers(ctx, newest, seen)
}

// keepRunning calls run until ctx ends, and restarts it after a panic.
func (b *Bridge) keepRunning(ctx context.Context, what string, run func(context.Context)) {
	_ = rescue.Loop(ctx, b.log, what, func(ctx context.Context) error { run(ctx); return nil }) // run returns no error
}

// keepWatching returns a function that calls watch until ctx ends, and retries it after a failure.
func (b *Bridge) keepWatching(of string, watch func(context.Context) error) func(context.Context) {
	return func(ctx context.Context) {
		for pauses := retry.New(minRetry, b.maxRetry); ctx.Err() == nil; {
			watching, cancel := context.WithCancel(ctx) // an abandoned watch would buffer events
			err := rescue.Do(func() error { return watch(watching) })
			cancel()
			if ctx.Err() == nil {
				b.log.Warn("changes by other replicas cannot be read, trying again", "of", of, "err", err)
				_ = retry.Wait(ctx, pauses.Next(0))
			}
		}
	}
}

// receive runs the platforms until ctx ends or all have failed, and then returns their errors.
func (b *Bridge) receive(ctx context.Context) error {
	var group sync.WaitGroup
	errs := make(chan error, len(b.platforms))
	for name, p := range b.platforms {
		group.Go(func() {
			if err := b.runPlatform(ctx, p); err != nil && ctx.Err() == nil {
				b.log.Error("platform failed permanently", "platform", name, "err", err)
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

// runPlatform receives messages from a platform. If only one process at a time may do that, it receives
// only while this process holds the platform's lease.
func (b *Bridge) runPlatform(ctx context.Context, p chats.Platform) error {
	run := func(ctx context.Context) error {
		return rescue.Loop(ctx, b.log, "receiving from "+p.Name(), func(ctx context.Context) error { return p.Run(ctx, b) })
	}
	if isExclusive(p) {
		return b.leases.WhileHeld(ctx, platformLease(p), run)
	}
	return run(ctx)
}

func isExclusive(p chats.Platform) bool {
	s, ok := p.(chats.ExclusiveReceiver)
	return ok && s.ReceivesExclusively()
}

func platformLease(p chats.Platform) string { return "platform/" + p.Name() }

// platformLeases returns the leases of the platforms from which only one process may receive.
func (b *Bridge) platformLeases() (leases []string) {
	for _, p := range b.cfg.Platforms {
		if isExclusive(p) {
			leases = append(leases, platformLease(p))
		}
	}
	return leases
}

// IsLeader reports whether this process is the leader, which does the work that only one replica may do.
func (b *Bridge) IsLeader() bool { return b.leases.Holds(queue.Leader) }

func announceCommands(ctx context.Context, b *Bridge, p chats.Platform) {
	announcer, ok := p.(chats.CommandLister)
	if !ok {
		return
	}
	if err := announcer.ListCommands(ctx, b.commands.infos(), b.people.Administrators(p.Name())); err != nil && ctx.Err() == nil {
		b.log.Warn("commands cannot be announced", "platform", p.Name(), "err", err)
	}
}

// QueueStats returns the numbers of open jobs.
func (b *Bridge) QueueStats() queue.Stats { return b.queue.Stats() }

// PlatformErrors returns the health of each platform: its error if it does not receive messages. It is
// nil for a platform that is no [chats.HealthReporter], or from which another process receives.
func (b *Bridge) PlatformErrors() map[string]error {
	ready := make(map[string]error, len(b.platforms))
	for name, p := range b.platforms {
		ready[name] = nil
		if m, ok := p.(chats.HealthReporter); ok && (!isExclusive(p) || b.leases.Holds(platformLease(p))) {
			ready[name] = m.Health()
		}
	}
	return ready
}

// Ping returns nil if a platform answers now, or cannot be asked. PlatformErrors tells of an outage only after a while.
func (b *Bridge) Ping(ctx context.Context, platform string) error {
	if pinger, ok := b.platforms[platform].(chats.Pinger); ok {
		return pinger.Ping(ctx)
	}
	return nil
}

// ChatName returns the name of a shared chat as its platform has it, or "" if it is not available before ctx ends.
func (b *Bridge) ChatName(ctx context.Context, chat chats.Chat) string {
	namer, ok := b.platforms[chat.Platform].(chats.ChatNamer)
	if !ok {
		return ""
	}
	return namer.ChatName(ctx, chat)
}

// Health returns nil if every platform receives messages, otherwise the errors of those that do not.
func (b *Bridge) Health() error {
	var all error
	for name, err := range b.PlatformErrors() {
		if err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", name, err))
		}
	}
	return all
}

// errStarting is returned by Readiness before the bridge can accept messages.
var errStarting = errors.New("the bot is starting")

// Readiness returns nil if Run accepts messages and any platform receives them, otherwise why not. A proxy
// must not cut one platform off because of the outage of another.
func (b *Bridge) Readiness() error {
	select {
	case <-b.resumed:
	default:
		return errStarting // without the lease of a platform, PlatformErrors has no error
	}
	for _, err := range b.PlatformErrors() {
		if err == nil {
			return nil
		}
	}
	return b.Health()
}

var (
	_ chats.Inbox           = (*Bridge)(nil)
	_ chats.MembershipInbox = (*Bridge)(nil)
)

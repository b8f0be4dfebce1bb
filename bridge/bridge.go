package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/privacy"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
	"oneclaw/internal/cache"
	"oneclaw/internal/named"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
	"oneclaw/storage/replicas"
)

// Bridge carries messages from platforms to the agent and answers back. It has one
// goroutine for each chat whose message is being answered, one for each whose command is
// answered, one for each platform, one that prunes, and one that ends cards; [Bridge.Run] waits for all.
type Bridge struct {
	*services
	begun   time.Time
	resumed chan struct{} // closed when the jobs of a former run are queued
}

// services are the parts of a bridge; those of this package use the others.
type services struct {
	cfg        Config
	log        *slog.Logger
	audit      queue.Audit
	store      *noted
	jobs       queue.Store
	asides     queue.DeadLetters
	platforms  map[string]chats.Platform
	commands   *commands
	workers    *workers
	lanes      *queue.Queue
	owners     *queue.Leases
	sender     *outbox.Sender
	cards      *interact.Cards
	people     *access.Registry
	gate       *interact.Gate
	asking     *interact.Elicitation
	observer   *privacy.Observer
	signs      *outbox.Reactions
	turns      *turn.Runner
	previews   *outbox.Previews
	panel      interact.Panel
	forgetting *privacy.Eraser
	maxRetry   time.Duration // bounds the pauses between tries of what the store did not take

	inserter  *inserter
	intake    *intake
	stops     *stops
	completer *completer
	suspender *suspender
	executor  *executor
	notices   notices
	failures  failures
	keeper    *keeper
	mover     *mover
}

// New checks the configuration and returns a bridge that is ready to run.
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
	store := &noted{Store: cfg.Store}
	cfg.Store = store
	r := &services{
		cfg: cfg, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)), store: store, platforms: make(map[string]chats.Platform),
		jobs: queue.Store{Store: cfg.Store, Base: new(atomic.Int64)},
	}
	if r.maxRetry = cfg.Limits.RetryFor; cfg.Sharing.On {
		r.maxRetry = min(r.maxRetry, sharedRetry)
	}
	b := &Bridge{services: r, begun: cfg.Now(), resumed: make(chan struct{})}
	for _, p := range cfg.Platforms {
		if _, twice := b.platforms[p.Name()]; twice {
			return nil, fmt.Errorf("bridge: two platforms are named %s", p.Name())
		}
		b.platforms[p.Name()] = p
	}
	b.wire()
	return b, nil
}

// wire makes the parts, each from those below it.
func (b *Bridge) wire() {
	cfg, r := b.cfg, b.services
	b.intake = &intake{
		services: r, accepting: named.New(1), late: cache.New[chats.Chat, time.Time](maxTold), full: cache.New[string, time.Time](maxTold), vain: cache.New[string, attempts](maxTold),
		taking: make(map[chats.Chat]bool), places: make(chan struct{}, acceptWrites),
	}
	b.stops, b.keeper, b.mover = &stops{r}, &keeper{services: r}, &mover{r}
	b.asides, b.commands = queue.DeadLetters{KV: cfg.Store, Log: b.log, Now: cfg.Now}, &commands{platforms: b.platforms, isAdmin: b.isAdmin}
	b.workers = &workers{commands: b.commands}
	b.owners = queue.NewLeases(queue.LeasesConfig{
		Sharing: cfg.Sharing, Store: cfg.Store, Leases: b.singles(), Chats: leasedChats{b}, Logger: b.log,
	})
	b.jobs.LeaseToken, b.jobs.Fence, b.jobs.Types = b.owners.Token, b.owners.Fence, b.workers.types
	b.observer = privacy.NewObserver(privacy.ObserverConfig{Store: cfg.Store, Log: b.log, Now: cfg.Now})
	b.audit, b.lanes = keepDeed(cfg.Store), queue.New(queue.Config{Workers: b.workers, MaxTurns: cfg.Limits.MaxTurns, Log: b.log, Now: cfg.Now})
	b.sender = outbox.NewSender(outbox.SenderConfig{
		Platforms: b.platforms, Safe: b.owners.OwnsSafely, Redact: cfg.Redact, Files: cfg.Hooks.Files, Trace: cfg.Hooks.Trace, Measure: cfg.Hooks.Measure,
		Log: b.log, Now: cfg.Now, Jobs: b.jobs, Asides: b.asides, DataDir: cfg.DataDir,
		MaxParts: cfg.Limits.MaxParts, MaxSends: cfg.Limits.MaxTurns, MaxRetry: cfg.Limits.RetryFor, Secrets: b.commands, Queue: b.lanes,
	})
	b.inserter = &inserter{
		platforms: b.platforms, workers: b.workers, leases: b.owners, jobs: b.jobs, queue: b.lanes, sender: b.sender,
		tracer: cfg.Hooks.Trace, redact: cfg.Redact, now: cfg.Now, log: b.log,
	}
	b.signs = outbox.NewReactions(outbox.ReactionsConfig{Platforms: b.platforms, Owns: b.owners.Owns, Log: b.log, Store: b.store, Jobs: b.jobs, Sender: b.sender, Queue: b.lanes})
	b.completer = &completer{
		workers: b.workers, jobs: b.jobs, queue: b.lanes, leases: b.owners, intake: b.intake, inserter: b.inserter, reactions: b.signs,
		tracer: cfg.Hooks.Trace, retryFor: cfg.Limits.RetryFor, maxRetry: b.maxRetry, now: cfg.Now, log: b.log,
	}
	handlers := make(map[string]interact.Handler)
	b.cards = interact.NewCards(interact.CardsConfig{
		Platforms: b.platforms, Owns: b.owners.Owns, Redact: cfg.Redact, Spell: b.commands.spelled, Audit: b.audit, Log: b.log, Now: cfg.Now, Store: b.store, Handlers: handlers, Jobs: b.inserter, Sender: b.sender, RedactCards: cfg.RedactCards,
		Host: cardHost{r},
	})
	b.people = access.New(access.Config{
		Platforms: b.platforms, Alone: !cfg.Sharing.On, Audit: b.audit, Log: b.log, Now: cfg.Now, Store: cfg.Store, Access: cfg.Access, Cards: b.cards, Allowance: cfg.Limits.Allowance,
		Jobs: b.inserter,
	})
	b.gate = interact.NewGate(interact.GateConfig{
		Redact: cfg.Redact, Audit: b.audit, Measure: cfg.Hooks.Measure, Log: b.log, Now: cfg.Now, Policy: cfg.Approve, Timeout: cfg.Limits.ApprovalTimeout, Cards: b.cards, Roles: b.people, Queue: b.lanes,
	})
	b.suspender = &suspender{
		platforms: b.platforms, workers: b.workers, store: b.store, jobs: b.jobs, queue: b.lanes, inserter: b.inserter, sender: b.sender,
		cards: b.cards, gate: b.gate, now: cfg.Now, log: b.log,
	}
	b.asking = interact.NewElicitation(interact.ElicitationConfig{
		Platforms: b.platforms, Log: b.log, Now: cfg.Now, Cards: b.cards, Timeout: cfg.Limits.ApprovalTimeout, Turns: b.suspender, Queue: b.lanes,
	})
	b.previews = outbox.NewPreviews(outbox.PreviewsConfig{
		Platforms: b.platforms, Safe: b.owners.OwnsSafely, Redact: cfg.Redact, Log: b.log, Now: cfg.Now, Jobs: b.jobs, Growing: cfg.Turns.RedactPartial, Sender: b.sender, Queue: b.lanes,
	})
	b.turns = turn.New(turn.Config{
		Settings: cfg.Turns, Platforms: b.platforms, Safe: b.owners.OwnsSafely, Redact: cfg.Redact, Spell: b.commands.spelled, Files: cfg.Hooks.Files, Log: b.log, Now: cfg.Now, Store: cfg.Store, Jobs: b.jobs, Queue: b.lanes, Sender: b.sender,
		Gate: b.gate, Asker: b.asking, Host: turnHost{r}, Keeper: b.keeper, Watcher: turnWatcher{r},
	})
	b.notices, b.failures = notices{b.workers, b.commands, b.people}, failures{b.lanes, b.turns, b.cards}
	b.executor = &executor{
		workers: b.workers, store: b.store, jobs: b.jobs, queue: b.lanes, leases: b.owners, people: b.people, turns: b.turns, cards: b.cards, sender: b.sender,
		notices: b.notices, completer: b.completer, suspender: b.suspender, mender: b.keeper,
		tracer: cfg.Hooks.Trace, measure: cfg.Hooks.Measure, redact: cfg.Redact, now: cfg.Now, log: b.log, suspects: make(chan struct{}, 1),
	}
	b.forgetting, b.panel = newForgetting(r), interact.Panel{
		Runner: b.turns, Tools: cfg.Turns.Tools, Savings: cfg.Hooks.Savings, Scope: b.scopeOf, Answer: b.cards.Answer, Load: b.loadLater, Log: b.log,
	}
	maps.Copy(handlers, cfg.Cards)
	maps.Copy(handlers, b.people.Handlers())
	handlers[interact.ElicitationKind] = b.asking.Pressed
	handlers[interact.ApprovalKind], handlers[interact.PanelKind], handlers[undoKind], handlers[failedKind], handlers[privacy.ForgetCommand] = interact.ApprovalHandler(cfg.Now), b.panel.Pressed, b.stops.pressedUndo, turnHost{r}.pressedFailed, b.forgetting.Pressed
	*b.workers = *newWorkers(b)
	b.commands.add(b.commandTable())
}

func newForgetting(r *services) *privacy.Eraser {
	return privacy.NewEraser(privacy.EraserConfig{
		Audit: r.audit, Now: r.cfg.Now, Store: r.store, Cards: r.cards, Observer: r.observer, Cache: r.turns.Cache, Rest: r.cfg.Hooks.Forget, Erased: r.cfg.Hooks.Erased,
		Jobs: r.inserter,
	})
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

// NoMoreReceived is what the log says when a bridge has stopped receiving and its running
// turns get the time of the drain.
const NoMoreReceived = "nothing is received any more; what runs is ended"

// Run continues what an earlier run left open, then receives and answers until ctx
// ends. It then stops receiving, gives running turns the time of the drain, and
// returns when everything it started has ended. It is called once. Where processes share
// the store, it does so in the chats that are this one's.
//
// A platform that gives up (a wrong token) is logged and does not touch the others;
// when the last one has given up, Run returns its error.
func (b *Bridge) Run(ctx context.Context) error {
	defer b.lanes.Close(0)
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
		_ = b.owners.WhileHeld(receiving, queue.Leader, func(ctx context.Context) error {
			b.steadily(ctx, "what is too old", b.keeper.prune)
			return nil
		})
	})
	background.Go(func() {
		rescue.Go(b.log, "what a former process was fetching", func() { b.keeper.sweepParts(receiving) })
	})
	background.Go(func() { b.steadily(receiving, "the ends of cards", b.cards.Run) })
	for _, p := range b.platforms {
		background.Go(func() { rescue.Go(b.log, "the list of commands", func() { announce(receiving, b, p) }) })
	}
	err = b.receive(receiving)
	stopReceiving()
	background.Wait()
	b.log.Info(NoMoreReceived)
	b.owners.Retire()
	if !b.lanes.Close(b.cfg.Limits.DrainTimeout) {
		b.log.Info("turns still running at the end of the drain go on after the next start")
	}
	return cmp.Or(err, refusal(ctx))
}

// refusal is why this process may not work with the store; nil where ctx ended otherwise.
func refusal(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, replicas.ErrRefused) {
		return err
	}
	return nil
}

// begin reads what has to be known and takes chats over. Where the store is shared, that goes
// on until leave; stop is told where this process may not do that any more.
func (b *Bridge) begin(ctx context.Context, stop context.CancelCauseFunc) (leave func(), err error) {
	loadCards := func(ctx context.Context) error { return b.cards.Load(ctx, b.keeper.mendQuietly) }
	for _, load := range []func(context.Context) error{b.people.Load, b.observer.Load, b.mover.load, loadCards, b.number} {
		if err := load(ctx); err != nil {
			return nil, err
		}
	}
	if !b.owners.Shared() {
		return func() {}, b.owners.Run(ctx)
	}
	joined, end := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, run := range []func(context.Context){
		func(ctx context.Context) {
			if err := b.owners.Run(ctx); err != nil {
				stop(err)
			}
		},
		func(ctx context.Context) { b.steadily(ctx, "what other replicas accept", b.intake.follow) }, b.learning("moved chats", b.mover.watch), b.learning("people", b.people.Watch), b.learning("cards", b.cards.Watch),
		b.learning("groups it listens in", b.observer.Watch),
	} {
		running.Go(func() { run(joined) })
	}
	return func() { end(); running.Wait() }, nil
}

// steadily does what goes on until ctx ends, again where it panics.
func (b *Bridge) steadily(ctx context.Context, what string, run func(context.Context)) {
	_ = rescue.Loop(ctx, b.log, what, func(ctx context.Context) error { run(ctx); return nil }) // there is none
}

// learning lets a part learn what other processes change, again where that fails.
func (b *Bridge) learning(of string, watch func(context.Context) error) func(context.Context) {
	return func(ctx context.Context) {
		for pauses := retry.New(minRetry, b.maxRetry); ctx.Err() == nil; {
			watching, end := context.WithCancel(ctx) // a watch that has no reader any more would collect events
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

// runPlatform receives from a platform; where only one process at a time may, when it is this
// one's turn.
func (b *Bridge) runPlatform(ctx context.Context, p chats.Platform) error {
	run := func(ctx context.Context) error {
		return rescue.Loop(ctx, b.log, "receiving from "+p.Name(), func(ctx context.Context) error { return p.Run(ctx, b) })
	}
	if isSingle(p) {
		return b.owners.WhileHeld(ctx, singleLease(p), run)
	}
	return run(ctx)
}

func isSingle(p chats.Platform) bool {
	s, ok := p.(chats.ExclusiveReceiver)
	return ok && s.ReceivesExclusively()
}

func singleLease(p chats.Platform) string { return "platform/" + p.Name() }

// singles are the leases of the platforms that have one.
func (b *Bridge) singles() (leases []string) {
	for _, p := range b.cfg.Platforms {
		if isSingle(p) {
			leases = append(leases, singleLease(p))
		}
	}
	return leases
}

// IsLeader reports whether this process is the one of several that does what is done once.
func (b *Bridge) IsLeader() bool { return b.owners.Holds(queue.Leader) }

func announce(ctx context.Context, b *Bridge, p chats.Platform) {
	announcer, ok := p.(chats.CommandLister)
	if !ok {
		return
	}
	if err := announcer.ListCommands(ctx, b.commands.infos(), b.people.Administrators(p.Name())); err != nil && ctx.Err() == nil {
		b.log.Warn("commands could not be announced", "platform", p.Name(), "err", err)
	}
}

// Load counts the open jobs.
func (b *Bridge) Load() queue.Load { return b.lanes.Load() }

// Ready returns for each platform nil where it receives, or what is wrong.
func (b *Bridge) Ready() map[string]error {
	ready := make(map[string]error, len(b.platforms))
	for name, p := range b.platforms {
		ready[name] = nil
		if m, ok := p.(chats.HealthReporter); ok && (!isSingle(p) || b.owners.Holds(singleLease(p))) {
			ready[name] = m.Health()
		}
	}
	return ready
}

// Health returns nil when every platform receives, or what is wrong with which.
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

package bridge

import (
	"maps"
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
)

// wire creates the parts. Those of this package refer to each other, so they exist before they are
// filled; those of other packages are created from their dependencies.
func (b *Bridge) wire() {
	b.admins, b.scopes, b.cardHost = new(admins), new(scopes), new(cardHost)
	b.inserter, b.intake, b.claimer, b.takeover = new(inserter), new(intake), new(claimer), new(takeover)
	b.limiter, b.delays, b.edits, b.feedback = new(limiter), new(delays), new(edits), new(feedback)
	b.stops, b.mover, b.loader = new(stops), new(mover), new(loadWorker)
	b.executor, b.suspender, b.completer = new(executor), new(suspender), new(completer)
	b.mender, b.pruner, b.commands, b.workers = new(mender), new(pruner), new(commands), new(workers)

	b.wireQueue()
	b.wireCards()
	b.wireTurns()
	b.fillIntake()
	b.fillExecutor()
	b.fillHandlers()
	b.fillRest()
}

// wireQueue creates the parts that store and send jobs.
func (b *Bridge) wireQueue() {
	cfg := b.cfg
	b.deadLetters = queue.DeadLetters{KV: cfg.Store, Log: b.log, Now: cfg.Now}
	b.leases = queue.NewLeases(queue.LeasesConfig{
		Sharing: cfg.Sharing, Store: cfg.Store, Leases: b.singles(), Chats: b.takeover, Logger: b.log,
	})
	b.jobs = queue.Store{Store: cfg.Store, Base: new(atomic.Int64), LeaseToken: b.leases.Token, Fence: b.leases.Fence, Types: b.workers.types}
	b.queue = queue.New(queue.Config{Workers: b.workers, MaxTurns: cfg.Limits.MaxTurns, Log: b.log, Now: cfg.Now})
	b.sender = outbox.NewSender(outbox.SenderConfig{
		Platforms: b.platforms, Safe: b.leases.OwnsSafely, Redact: cfg.Redact, Files: cfg.Hooks.Files, Trace: cfg.Hooks.Trace, Measure: cfg.Hooks.Measure,
		Log: b.log, Now: cfg.Now, Jobs: b.jobs, DeadLetters: b.deadLetters, DataDir: cfg.DataDir,
		AnswerLimits: cfg.Limits.AnswerLimits, MaxSends: cfg.Limits.MaxTurns, MaxRetry: cfg.Limits.RetryFor, Secrets: b.commands, Queue: b.queue,
	})
	b.reactions = outbox.NewReactions(outbox.ReactionsConfig{
		Platforms: b.platforms, Owns: b.leases.Owns, Log: b.log, Store: b.store, Jobs: b.jobs, Sender: b.sender, Queue: b.queue,
	})
	b.previews = outbox.NewPreviews(outbox.PreviewsConfig{
		Platforms: b.platforms, Safe: b.leases.OwnsSafely, Redact: cfg.Redact, Log: b.log, Now: cfg.Now, Jobs: b.jobs,
		Growing: cfg.Turns.RedactPartial, Sender: b.sender, Queue: b.queue,
	})
}

// wireCards creates the parts that ask users.
func (b *Bridge) wireCards() {
	cfg := b.cfg
	b.handlers = make(map[string]interact.Handler)
	b.cards = interact.NewCards(interact.CardsConfig{
		Platforms: b.platforms, Owns: b.leases.Owns, Redact: cfg.Redact, RedactCards: cfg.RedactCards, FormatCommands: b.commands.formatCommands, Log: b.log, Now: cfg.Now,
		Store: b.store, Handlers: b.handlers, Jobs: b.inserter, Sender: b.sender, Host: b.cardHost,
	})
	b.people = access.New(access.Config{
		Platforms: b.platforms, Alone: !cfg.Sharing.On, Log: b.log, Now: cfg.Now, Store: cfg.Store, Access: cfg.Access, Cards: b.cards,
		Allowance: cfg.Limits.Allowance, Jobs: b.inserter,
	})
	b.observer = privacy.NewObserver(privacy.ObserverConfig{Store: cfg.Store, Log: b.log, Now: cfg.Now})
	b.gate = interact.NewGate(interact.GateConfig{
		Store: b.store, Redact: cfg.Redact, Measure: cfg.Hooks.Measure, Log: b.log, Now: cfg.Now, Policy: cfg.Approve, Timeout: cfg.Limits.ApprovalTimeout,
		Cards: b.cards, Roles: b.people, Queue: b.queue,
	})
	b.elicitation = interact.NewElicitation(interact.ElicitationConfig{
		Platforms: b.platforms, Log: b.log, Now: cfg.Now, Cards: b.cards, Timeout: cfg.Limits.ApprovalTimeout, Turns: b.suspender, Queue: b.queue,
	})
}

// wireTurns creates the parts that answer messages.
func (b *Bridge) wireTurns() {
	cfg := b.cfg
	*b.scopes = scopes{
		store: b.store, people: b.people, dataDir: cfg.DataDir, quota: cfg.Limits.WorkspaceQuota, reserve: cfg.Limits.DiskReserve,
	}
	b.turnHost = turnHost{
		platforms: b.platforms, store: b.store, inserter: b.inserter, scopes: b.scopes, people: b.people, observer: b.observer, cards: b.cards,
		refused: cfg.Hooks.Refused, report: cfg.Hooks.Report, now: cfg.Now, log: b.log,
	}
	b.turns = turn.New(turn.Config{
		Settings: cfg.Turns, Platforms: b.platforms, Safe: b.leases.OwnsSafely, Redact: cfg.Redact, FormatCommands: b.commands.formatCommands, Files: cfg.Hooks.Files,
		Log: b.log, Now: cfg.Now, Store: cfg.Store, Jobs: b.jobs, Queue: b.queue, Sender: b.sender, Gate: b.gate, Asker: b.elicitation, Keeper: b.mender, Host: b.turnHost,
		Watcher: turnWatcher{
			platforms: b.platforms, previews: b.previews, growing: cfg.Turns.RedactPartial != nil, observe: cfg.Turns.Observe, tracer: cfg.Hooks.Trace,
		},
	})
	b.eraser = privacy.NewEraser(privacy.EraserConfig{
		Now: cfg.Now, Store: b.store, Cards: b.cards, Observer: b.observer, Cache: b.turns.Cache, Rest: cfg.Hooks.Forget, Erased: cfg.Hooks.Erased,
		Jobs: b.inserter,
	})
	b.panel = interact.Panel{
		Rounds: b.turns, Tools: cfg.Turns.Tools, Savings: cfg.Hooks.Savings, Scope: b.scopes.current, Answer: b.cards.Answer, Load: b.loader.later, Log: b.log,
	}
}

// fillIntake fills the parts that accept messages and jobs.
func (b *Bridge) fillIntake() {
	cfg := b.cfg
	*b.inserter = inserter{
		platforms: b.platforms, workers: b.workers, leases: b.leases, jobs: b.jobs, queue: b.queue, sender: b.sender,
		tracer: cfg.Hooks.Trace, redact: cfg.Redact, now: cfg.Now, log: b.log,
	}
	*b.intake = intake{
		workers: b.workers, jobs: b.jobs, queue: b.queue, inserter: b.inserter, claimer: b.claimer, suspender: b.suspender,
		limiter: b.limiter, delays: b.delays, edits: b.edits, feedback: b.feedback, people: b.people, observer: b.observer, elicitation: b.elicitation, cards: b.cards,
		deadLetters: b.deadLetters, measure: cfg.Hooks.Measure, retryFor: cfg.Limits.RetryFor, now: cfg.Now, log: b.log,
		failed: cache.New[string, attempts](maxTold),
	}
	*b.claimer = claimer{
		workers: b.workers, store: b.store, jobs: b.jobs, queue: b.queue, leases: b.leases, inserter: b.inserter, intake: b.intake, mender: b.mender,
		maxRetry: b.maxRetry, log: b.log,
		accepting: named.New(1), taking: make(map[chats.Chat]bool), takes: make(chan struct{}, acceptWrites),
	}
	*b.takeover = takeover{
		workers: b.workers, jobs: b.jobs, queue: b.queue, claimer: b.claimer, mender: b.mender, sender: b.sender, reactions: b.reactions,
		delays: b.delays, cache: b.turns.Cache, log: b.log,
	}
	*b.limiter = limiter{
		workers: b.workers, store: b.store, jobs: b.jobs, queue: b.queue, inserter: b.inserter, cards: b.cards,
		limits: cfg.Limits.Concurrency, now: cfg.Now, log: b.log,
		told: cache.New[string, time.Time](maxTold),
	}
	*b.delays = delays{workers: b.workers, now: cfg.Now, told: cache.New[chats.Chat, time.Time](maxTold)}
	*b.edits = edits{workers: b.workers, jobs: b.jobs, queue: b.queue, inserter: b.inserter, cards: b.cards, log: b.log}
	*b.feedback = feedback{workers: b.workers, jobs: b.jobs, people: b.people, cards: b.cards, judged: cfg.Hooks.Judged, measure: cfg.Hooks.Measure}
}

// fillExecutor fills the parts that run jobs.
func (b *Bridge) fillExecutor() {
	cfg := b.cfg
	*b.executor = executor{
		workers: b.workers, store: b.store, jobs: b.jobs, queue: b.queue, leases: b.leases, people: b.people, turns: b.turns, cards: b.cards, sender: b.sender,
		notices: b.notices(), completer: b.completer, suspender: b.suspender, mender: b.mender,
		tracer: cfg.Hooks.Trace, measure: cfg.Hooks.Measure, redact: cfg.Redact, now: cfg.Now, log: b.log,
		suspects: make(chan struct{}, 1),
	}
	*b.suspender = suspender{
		platforms: b.platforms, workers: b.workers, store: b.store, jobs: b.jobs, queue: b.queue, inserter: b.inserter, sender: b.sender,
		cards: b.cards, gate: b.gate, now: cfg.Now, log: b.log,
	}
	*b.completer = completer{
		workers: b.workers, jobs: b.jobs, queue: b.queue, leases: b.leases, claimer: b.claimer, inserter: b.inserter, reactions: b.reactions,
		tracer: cfg.Hooks.Trace, retryFor: cfg.Limits.RetryFor, maxRetry: b.maxRetry, now: cfg.Now, log: b.log,
	}
	*b.stops = stops{
		platforms: b.platforms, workers: b.workers, store: b.store, jobs: b.jobs, queue: b.queue, inserter: b.inserter, completer: b.completer,
		admins: b.admins, observer: b.observer, cards: b.cards, now: cfg.Now, log: b.log,
	}
	*b.mover = mover{
		store: b.store, jobs: b.jobs, queue: b.queue, leases: b.leases, inserter: b.inserter, claimer: b.claimer, completer: b.completer,
		failures: b.failures(), observer: b.observer, cards: b.cards, moved: cfg.Hooks.Moved, now: cfg.Now, log: b.log,
	}
	*b.loader = loadWorker{
		failures: b.failures(), store: b.store, inserter: b.inserter, intake: b.intake, completer: b.completer, scopes: b.scopes,
		panel: b.panel, tools: cfg.Turns.Tools, maxWaiting: cfg.Limits.MaxWaiting, now: cfg.Now,
	}
}

// fillRest fills the shared parts, the commands and the workers.
func (b *Bridge) fillRest() {
	cfg := b.cfg
	*b.admins = admins{platforms: b.platforms, people: b.people, log: b.log}
	*b.cardHost = cardHost{
		inserter: b.inserter, people: b.people, scopes: b.scopes, suspender: b.suspender, elicitation: b.elicitation, queue: b.queue,
	}
	*b.mender = mender{platforms: b.platforms, store: b.store, deadLetters: b.deadLetters, cards: b.cards, now: cfg.Now}
	*b.pruner = pruner{
		store: b.store, cards: b.cards, people: b.people, observer: b.observer, deadLetters: b.deadLetters, mender: b.mender, cache: b.turns.Cache,
		files: cfg.Hooks.Files, erased: cfg.Hooks.Erased, dataDir: cfg.DataDir, ages: cfg.Limits.Retention,
		now: cfg.Now, log: b.log,
	}
	*b.commands = commands{
		platforms: b.platforms, store: b.store, jobs: b.jobs, scopes: b.scopes, admins: b.admins, cards: b.cards, files: cfg.Hooks.Files,
	}
	b.commands.add(b.commandTable())
	*b.workers = workers{
		commands: b.commands, executor: b.executor, suspender: b.suspender, completer: b.completer, reactions: b.reactions, acknowledges: cfg.Turns.Acknowledge,
	}
	b.workers.byKind, b.workers.unknown = b.kinds()
}

// fillHandlers fills the handlers of cards.
func (b *Bridge) fillHandlers() {
	maps.Copy(b.handlers, b.cfg.Cards)
	maps.Copy(b.handlers, b.people.Handlers())
	maps.Copy(b.handlers, map[string]interact.Handler{
		interact.ApprovalKind:    interact.ApprovalHandler(b.cfg.Now),
		interact.ElicitationKind: b.elicitation.Pressed,
		interact.PanelKind:       b.panel.Pressed,
		privacy.ForgetCommand:    b.eraser.Pressed,
		undoKind:                 b.stops.pressedUndo,
		failedKind:               b.turnHost.pressedFailed,
	})
}

func (b *Bridge) notices() notices { return notices{b.workers, b.commands, b.people} }

func (b *Bridge) failures() failures { return failures{b.queue, b.turns, b.cards} }

package bridge

import (
	"cmp"
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
	"oneclaw/toolgroups"
)

// wire creates the components of the bridge. Those of this package refer to each other, so all are
// allocated before they are filled. Those of other packages are created from their dependencies.
func (b *Bridge) wire() {
	b.adminChecker, b.scopeResolver, b.cardHost = new(adminChecker), new(scopeResolver), new(cardHost)
	b.inserter, b.intake, b.claimer, b.takeover = new(inserter), new(intake), new(claimer), new(takeover)
	b.limiter, b.delayTracker, b.editHandler, b.feedback = new(limiter), new(delayTracker), new(editHandler), new(feedbackRecorder)
	b.interrupter, b.mover, b.loader = new(interrupter), new(mover), new(loadWorker)
	b.executor, b.suspender, b.completer = new(executor), new(suspender), new(completer)
	b.background, b.announcer = new(background), new(announcer)
	b.unattended = new(unattended)
	b.damageHandler, b.pruner, b.commands, b.workers = new(damageHandler), new(pruner), new(commandRegistry), new(workerRegistry)

	b.wireQueue()
	b.wireCards()
	b.wireTurns()
	b.fillIntake()
	b.fillExecutor()
	b.fillHandlers()
	b.fillRest()
}

// wireQueue creates the components that store jobs and send answers.
func (b *Bridge) wireQueue() {
	cfg := b.cfg
	b.deadLetters = queue.DeadLetterStore{KV: cfg.Store, Log: b.log, Now: cfg.Now}
	b.leases = queue.NewLeaseHolder(queue.LeaseHolderConfig{
		Sharing: cfg.Sharing, Store: cfg.Store, Leases: b.platformLeases(), Takeover: b.takeover, Logger: b.log,
	})
	b.jobs = queue.Store{Store: cfg.Store, Base: new(atomic.Int64), LeaseToken: b.leases.Token, Fence: b.leases.Fence, NewData: b.workers.newData}
	b.queue = queue.New(queue.Config{Workers: b.workers, MaxTurns: cfg.Limits.MaxTurns, Log: b.log, Now: cfg.Now})
	b.reach = &reach{store: b.store, report: cfg.Hooks.Report, now: cfg.Now, log: b.log, silent: cache.New[string, bool](maxSilent), heard: cache.New[string, bool](maxSilent)}
	b.sender = outbox.NewSender(outbox.SenderConfig{
		Platforms: b.platforms, OwnsSafely: b.leases.OwnsSafely, Redact: cfg.Redact, Files: cfg.Hooks.Files, Tracer: cfg.Hooks.Tracer, Measure: cfg.Hooks.Measure,
		Log: b.log, Now: cfg.Now, Jobs: b.jobs, DeadLetters: b.deadLetters, DataDir: cfg.DataDir,
		AnswerLimits: cfg.Limits.AnswerLimits, MaxSends: cfg.Limits.MaxTurns, MaxRetry: cfg.Limits.RetryFor, Secrets: b.commands, Queue: b.queue, OnUnreachable: b.reach.onRefused,
	})
	b.reactions = outbox.NewReactionTracker(outbox.ReactionTrackerConfig{
		Platforms: b.platforms, Owns: b.leases.Owns, Log: b.log, Store: b.store, Jobs: b.jobs, Sender: b.sender, Queue: b.queue,
	})
	b.previews = outbox.NewPreviewTracker(outbox.PreviewTrackerConfig{
		Platforms: b.platforms, OwnsSafely: b.leases.OwnsSafely, Redact: cfg.Redact, Log: b.log, Now: cfg.Now, Jobs: b.jobs,
		RedactPartial: cfg.Turns.RedactPartial, Sender: b.sender, Queue: b.queue,
	})
}

// wireCards creates the components that ask users for decisions and answers.
func (b *Bridge) wireCards() {
	cfg := b.cfg
	b.handlers = make(map[string]interact.Handler)
	b.cards = interact.NewCards(interact.CardsConfig{
		Platforms: b.platforms, Owns: b.leases.Owns, Redact: cfg.Redact, RedactCards: cfg.RedactCards, FormatCommands: b.commands.formatCommands, Log: b.log, Now: cfg.Now,
		Store: b.store, Handlers: b.handlers, Jobs: b.inserter, Sender: b.sender, Host: b.cardHost,
	})
	b.people = access.New(access.Config{
		Platforms: b.platforms, Log: b.log, Now: cfg.Now, Store: cfg.Store, Access: cfg.Access, Cards: b.cards,
		Allowance: cfg.Limits.AllowanceText, Jobs: b.inserter, OnRemoved: cfg.Hooks.OnRemoved,
	})
	b.lasting = interact.LastingList{Store: b.store, Cards: b.cards, Roles: b.people, Now: cfg.Now}
	b.observer = privacy.NewObserver(privacy.ObserverConfig{Store: cfg.Store, Log: b.log, Now: cfg.Now})
	b.gate = interact.NewGate(interact.GateConfig{
		Store: b.store, Redact: cfg.Redact, Measure: cfg.Hooks.Measure, Log: b.log, Now: cfg.Now, Policy: cfg.ApprovalPolicy, Timeout: cfg.Limits.ApprovalTimeout,
		Cards: b.cards, Roles: b.people, Queue: b.queue, Hosts: cfg.ApprovalHosts,
		Tool: func(name string) (toolgroups.Tool, bool) { return cfg.Turns.Tools().Tool(name) },
	})
	b.elicitation = interact.NewElicitation(interact.ElicitationConfig{
		Platforms: b.platforms, Log: b.log, Now: cfg.Now, Cards: b.cards, Timeout: cfg.Limits.ApprovalTimeout, Turns: b.suspender, Queue: b.queue,
	})
}

// wireTurns creates the components that answer messages with the model.
func (b *Bridge) wireTurns() {
	cfg := b.cfg
	*b.scopeResolver = scopeResolver{
		store: b.store, people: b.people, dataDir: cfg.DataDir, quota: cfg.Limits.WorkspaceQuota, reserve: cfg.Limits.DiskReserve,
	}
	b.turnHost = turnHost{
		platforms: b.platforms, store: b.store, inserter: b.inserter, scopeResolver: b.scopeResolver, people: b.people, observer: b.observer, cards: b.cards,
		refusalCard: cfg.Hooks.RefusalCard, report: cfg.Hooks.Report, now: cfg.Now, log: b.log,
	}
	b.turns = turn.New(turn.Config{
		Settings: cfg.Turns, Platforms: b.platforms, OwnsSafely: b.leases.OwnsSafely, Redact: cfg.Redact, RedactLines: cfg.RedactCards, FormatCommands: b.commands.formatCommands, Files: cfg.Hooks.Files,
		Log: b.log, Now: cfg.Now, Store: cfg.Store, Jobs: b.jobs, Queue: b.queue, Sender: b.sender, Gate: waitGate{b.gate, b.background}, Asker: b.elicitation, StoreMonitor: b.damageHandler, Host: b.turnHost,
		Watcher: turnWatcher{
			platforms: b.platforms, previews: b.previews, background: b.background, previewsEnabled: cfg.Turns.RedactPartial != nil, observe: cfg.Turns.Observe, tracer: cfg.Hooks.Tracer,
		},
	})
	b.eraser = privacy.NewEraser(privacy.EraserConfig{
		Now: cfg.Now, Store: b.store, OpenJobs: b.jobs, CurrentChat: b.queue.CurrentChat, MaxWait: cmp.Or(cfg.Turns.Timeout, turn.DefaultTimeout) + cfg.Limits.ApprovalTimeout,
		Cards: b.cards, Observer: b.observer, Insert: b.inserter.Put, EndJobs: b.completer.endForgotten, EraseRest: cfg.Hooks.Forget, OnErased: cfg.Hooks.OnErased,
	})
	b.panel = interact.Panel{
		Rounds: b.turns, Tools: cfg.Turns.Tools, Savings: cfg.Hooks.Savings, Scope: b.scopeResolver.current, Answer: b.cards.Answer, Load: b.loader.enqueueLoad, Log: b.log,
	}
}

// fillIntake fills the components that accept messages and claim jobs.
func (b *Bridge) fillIntake() {
	cfg := b.cfg
	*b.inserter = inserter{
		platforms: b.platforms, workers: b.workers, leases: b.leases, jobs: b.jobs, queue: b.queue, sender: b.sender, suspender: b.suspender,
		claimer: b.claimer, completer: b.completer, redact: cfg.Redact, now: cfg.Now, log: b.log,
	}
	*b.intake = intake{
		workers: b.workers, jobs: b.jobs, queue: b.queue, inserter: b.inserter, claimer: b.claimer, suspender: b.suspender,
		limiter: b.limiter, delayTracker: b.delayTracker, editHandler: b.editHandler, feedback: b.feedback, people: b.people, observer: b.observer, elicitation: b.elicitation, cards: b.cards,
		deadLetters: b.deadLetters, measure: cfg.Hooks.Measure, retryFor: cfg.Limits.RetryFor, onErased: cfg.Hooks.OnErased, commandFor: cfg.Hooks.CommandFor, now: cfg.Now, log: b.log,
		failed: cache.New[string, attempts](maxTold), cutTexts: cache.New[string, cutText](maxTold),
	}
	*b.claimer = claimer{
		workers: b.workers, store: b.store, jobs: b.jobs, queue: b.queue, leases: b.leases, inserter: b.inserter, intake: b.intake, damageHandler: b.damageHandler,
		maxRetry: b.maxRetry, now: cfg.Now, log: b.log,
		accepting: named.New(1), claiming: make(map[chats.Chat]bool), claimSlots: make(chan struct{}, acceptWrites),
		handled: make(map[string]handledNotice), hasHandled: make(chan struct{}, 1), followed: make(map[string]time.Time),
	}
	b.store.onDoubt = b.claimer.followKey
	*b.takeover = takeover{
		workers: b.workers, jobs: b.jobs, queue: b.queue, claimer: b.claimer, damageHandler: b.damageHandler, sender: b.sender, reactions: b.reactions,
		delayTracker: b.delayTracker, cache: b.turns.Cache, log: b.log,
	}
	*b.limiter = limiter{
		workers: b.workers, store: b.store, jobs: b.jobs, queue: b.queue, inserter: b.inserter, cards: b.cards,
		limits: cfg.Limits.Concurrency, now: cfg.Now, log: b.log,
		lastNotice: cache.New[string, time.Time](maxTold),
	}
	*b.delayTracker = delayTracker{workers: b.workers, now: cfg.Now, lastNotice: cache.New[chats.Chat, time.Time](maxTold)}
	*b.editHandler = editHandler{platforms: b.platforms, workers: b.workers, jobs: b.jobs, queue: b.queue, inserter: b.inserter, observer: b.observer, cards: b.cards, log: b.log}
	*b.feedback = feedbackRecorder{workers: b.workers, jobs: b.jobs, people: b.people, measure: cfg.Hooks.Measure}
}

// fillExecutor fills the components that run jobs.
func (b *Bridge) fillExecutor() {
	cfg := b.cfg
	*b.executor = executor{
		workers: b.workers, store: b.store, jobs: b.jobs, queue: b.queue, leases: b.leases, people: b.people, turns: b.turns, cards: b.cards, sender: b.sender,
		noticeAnswerer: b.newNoticeAnswerer(), completer: b.completer, suspender: b.suspender, damageHandler: b.damageHandler,
		tracer: cfg.Hooks.Tracer, measure: cfg.Hooks.Measure, redact: cfg.Redact, now: cfg.Now, log: b.log,
		aloneSlot: make(chan struct{}, 1),
	}
	*b.suspender = suspender{
		platforms: b.platforms, workers: b.workers, store: b.store, jobs: b.jobs, queue: b.queue, inserter: b.inserter, sender: b.sender,
		cards: b.cards, gate: b.gate, announcer: b.announcer, now: cfg.Now, log: b.log,
	}
	*b.completer = completer{
		workers: b.workers, jobs: b.jobs, queue: b.queue, leases: b.leases, claimer: b.claimer, inserter: b.inserter, reactions: b.reactions,
		tracer: cfg.Hooks.Tracer, retryFor: cfg.Limits.RetryFor, maxRetry: b.maxRetry, now: cfg.Now, log: b.log,
	}
	*b.interrupter = interrupter{
		platforms: b.platforms, workers: b.workers, store: b.store, jobs: b.jobs, queue: b.queue, inserter: b.inserter, completer: b.completer,
		adminChecker: b.adminChecker, observer: b.observer, cards: b.cards, background: b.background, now: cfg.Now, log: b.log,
	}
	*b.announcer = announcer{turns: b.turns, cards: b.cards, tools: cfg.Turns.Tools, now: cfg.Now, zone: cfg.Zone}
	*b.unattended = unattended{
		store: b.store, jobs: b.jobs, inserter: b.inserter, cards: b.cards, limit: cfg.Limits.MaxUnattended, now: cfg.Now, zone: cfg.Zone,
	}
	*b.background = background{
		store: b.store, jobs: b.jobs, queue: b.queue, inserter: b.inserter, claimer: b.claimer, cards: b.cards, unattended: b.unattended, maxTurns: cfg.Limits.MaxTurns,
		maxRetry: b.maxRetry, redact: cfg.Redact, now: cfg.Now, log: b.log,
	}
	*b.mover = mover{
		store: b.store, jobs: b.jobs, queue: b.queue, leases: b.leases, inserter: b.inserter, claimer: b.claimer, completer: b.completer,
		failureReporter: b.newFailureReporter(), observer: b.observer, cards: b.cards, onMoved: cfg.Hooks.OnChatMoved, now: cfg.Now, log: b.log,
	}
	*b.loader = loadWorker{
		failureReporter: b.newFailureReporter(), store: b.store, inserter: b.inserter, intake: b.intake, completer: b.completer, scopeResolver: b.scopeResolver,
		panel: b.panel, tools: cfg.Turns.Tools, maxWaiting: cfg.Limits.MaxWaiting, now: cfg.Now,
	}
}

// fillRest fills the shared components, the commands and the workers.
func (b *Bridge) fillRest() {
	cfg := b.cfg
	*b.adminChecker = adminChecker{platforms: b.platforms, people: b.people, log: b.log}
	*b.cardHost = cardHost{
		inserter: b.inserter, people: b.people, scopes: b.scopeResolver, elicitation: b.elicitation, background: b.background, queue: b.queue,
	}
	*b.damageHandler = damageHandler{platforms: b.platforms, store: b.store, deadLetters: b.deadLetters, cards: b.cards, background: b.background, now: cfg.Now}
	*b.pruner = pruner{
		store: b.store, cards: b.cards, unattended: b.unattended, lasting: b.lasting, people: b.people, observer: b.observer, eraser: b.eraser, deadLetters: b.deadLetters, damageHandler: b.damageHandler, cache: b.turns.Cache,
		onErased: cfg.Hooks.OnErased, pruneRest: cfg.Hooks.Prune, dataDir: cfg.DataDir, retention: cfg.Limits.Retention,
		now: cfg.Now, log: b.log,
	}
	*b.commands = commandRegistry{
		platforms: b.platforms, store: b.store, jobs: b.jobs, scopeResolver: b.scopeResolver, adminChecker: b.adminChecker, observer: b.observer, cards: b.cards, gate: b.gate, files: cfg.Hooks.Files,
	}
	b.commands.setCommands(b.commandTable())
	*b.workers = workerRegistry{
		commands: b.commands, executor: b.executor, suspender: b.suspender, completer: b.completer, reactions: b.reactions, acknowledgeWaits: cfg.Turns.Acknowledge,
	}
	b.workers.byKind, b.workers.unknown = b.newWorkers()
}

// fillHandlers registers the handlers of cards.
func (b *Bridge) fillHandlers() {
	maps.Copy(b.handlers, b.cfg.CardHandlers)
	maps.Copy(b.handlers, b.people.Handlers())
	maps.Copy(b.handlers, map[string]interact.Handler{
		interact.ApprovalKind:    b.gate.HandlePress,
		interact.LastingKind:     b.lasting.HandlePress,
		interact.ElicitationKind: b.elicitation.HandlePress,
		interact.PanelKind:       b.panel.HandlePress,
		privacy.ForgetCommand:    b.eraser.HandlePress,
		backgroundCard:           b.background.handlePress,
		undoKind:                 b.interrupter.handleUndoPress,
		announcedKind:            b.announcer.handlePress,
		pausedKind:               b.unattended.handlePress,
		failedKind:               b.turnHost.handleFailurePress,
	})
}

func (b *Bridge) newNoticeAnswerer() noticeAnswerer {
	return noticeAnswerer{b.workers, b.commands, b.people}
}

func (b *Bridge) newFailureReporter() failureReporter {
	return failureReporter{b.queue, b.turns, b.cards}
}

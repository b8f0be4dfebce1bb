package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"oneclaw/bridge/approval"
	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/lanes"
	"oneclaw/bridge/panel"
	"oneclaw/bridge/people"
	"oneclaw/bridge/turns"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Config is what a [Bridge] is made of.
type Config struct {
	// Store keeps jobs, sessions and conversations.
	Store storage.Store
	// Turns say how messages are answered.
	Turns turns.Settings
	// Platforms deliver messages and take answers. Their names differ.
	Platforms []chats.Platform
	// Access says who may talk to the bot, besides those who were let in from a chat.
	// Its zero value lets nobody in.
	Access people.Access
	// Commands are understood besides the bridge's own.
	Commands []Command
	// Approve says whether a call needs the approval of a person. It is given the
	// arguments that the tool would be given. Nil means that none does.
	Approve func(call toolgroups.Call, tool toolgroups.Tool) approval.Policy
	// Cards handle the presses of cards, by [Card.Kind].
	Cards map[string]cards.Handler
	// DataDir holds the folder of workspaces.
	DataDir string
	// Redact, if not nil, masks secrets in everything that is sent to a chat, in what
	// tools return to the model, and in what the model says. What people write is left
	// as it is.
	Redact func(text string) string
	// RedactCards takes the place of Redact on cards. It must mask nothing but values
	// that the bot knows as secrets: whoever decides has to see everything else. Nil
	// means Redact.
	RedactCards func(text string) string
	// Hooks are what the rest of the program adds.
	Hooks Hooks
	// Limits bound what is done.
	Limits Limits
	// Measure counts.
	Measure jobs.Meter
	// Logger, if nil, discards.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Hooks are what the rest of the program adds. Each may be nil.
type Hooks struct {
	// Refused makes the card with which a turn is answered for which there is
	// no budget; its text has to say so. The error is that of the turn. Tasks and
	// platforms without buttons get the notice of the error alone.
	Refused func(ctx context.Context, scope toolgroups.Scope, failure error) (cards.Card, error)
	// Savings says in a sentence for /tools what loading tools when they are
	// needed has saved in a chat so far.
	Savings func(ctx context.Context, scope toolgroups.Scope) (string, error)
	// TaskDone is told what became of a submission before that is closed.
	// It may be told again after a crash or an error.
	TaskDone func(ctx context.Context, result TaskResult) error
	// Moved is told that a chat goes on under another id, before messages
	// from there are answered. It is told while no turn of either runs, and again after
	// an error or a crash.
	Moved func(ctx context.Context, from, to chats.Chat) error
}

// Limits bound what is done. The zero value of each means its default.
type Limits struct {
	// MaxWaiting bounds the messages of one chat that wait, and the commands. 0 means
	// [DefaultMaxWaiting].
	MaxWaiting int
	// MaxWaitingMember bounds the messages and commands of one user that wait in shared
	// chats. 0 means [DefaultMaxWaitingMember].
	MaxWaitingMember int
	// MaxTurns bounds the answers that are made at the same time, and the sends. 0 means
	// [DefaultMaxTurns].
	MaxTurns int
	// MaxParts bounds the messages of one answer. What is longer is sent as a file besides,
	// where the platform takes files. 0 means [DefaultMaxParts], a negative value no bound.
	MaxParts int
	// WorkspaceQuota is how many bytes the files of one owner may take, and DiskReserve how
	// many bytes of the disk tools leave free. 0 means the defaults of internal/workspace.
	WorkspaceQuota, DiskReserve int64
	// ApprovalTimeout is how long a call waits for a decision. 0 means
	// [approval.DefaultTimeout].
	ApprovalTimeout time.Duration
	// StaleAfter is how old a message may be when it arrives, by the time of its
	// platform, before its answer begins with a line that says how long it waited: once
	// for each chat. 0 means [DefaultStaleAfter], a negative value that none does.
	StaleAfter time.Duration
	// DrainTimeout is how long running turns may go on when the bridge is stopped.
	// What is not finished then goes on after the next start. 0 means
	// [DefaultDrainTimeout], a negative value no time at all.
	DrainTimeout time.Duration
}

// Defaults of [Limits].
const (
	DefaultMaxWaiting       = 100
	DefaultMaxWaitingMember = 20
	DefaultMaxTurns         = 1000
	DefaultMaxParts         = 10
	DefaultDrainTimeout     = 10 * time.Second
)

// Bridge carries messages from platforms to the agent and answers back. It has one
// goroutine for each chat with messages to answer, one for each chat with commands to
// answer, one for each platform, one that prunes, and one that ends cards; [Bridge.Run] waits for all.
type Bridge struct {
	cfg       Config
	log       *slog.Logger
	store     storage.Store
	jobs      jobs.Store
	asides    jobs.Asides
	desk      *cards.Desk
	gate      *approval.Gate
	platforms map[string]chats.Platform
	breakers  map[string]*breaker // one for each platform
	commands  []jobs.Command
	names     *regexp.Regexp // of the commands, in texts
	turns     *turns.Runner
	panel     panel.Panel
	begun     time.Time
	resumed   chan struct{} // closed when the jobs of a former run are queued

	lanes *lanes.Lanes
	kinds kinds
	// sends bounds the sends that are made at the same time.
	sends chan struct{}

	// mending is held while a damaged record is set aside.
	mending sync.Mutex

	mu      sync.Mutex
	lastSeq int64
	told    map[chats.Chat]time.Time // that their messages waited, and when
	full    map[string]time.Time     // who was told that too much waits, and when

	people *people.Desk
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
	b := &Bridge{
		cfg:       cfg,
		log:       cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		store:     cfg.Store,
		jobs:      jobs.Store{KV: cfg.Store},
		sends:     make(chan struct{}, cfg.Limits.MaxTurns),
		platforms: make(map[string]chats.Platform),
		breakers:  make(map[string]*breaker),
		begun:     cfg.Now(),
		resumed:   make(chan struct{}),
		told:      make(map[chats.Chat]time.Time),
		full:      make(map[string]time.Time),
	}
	b.asides = jobs.Asides{KV: cfg.Store, Log: b.log, Now: cfg.Now}
	b.lanes = lanes.New(lanes.Config{Place: b.place, Run: b.carry, Holds: b.holds, MaxTurns: cfg.Limits.MaxTurns})
	handlers := make(map[string]cards.Handler)
	b.desk = b.newDesk(handlers)
	b.people = people.New(people.Config{
		Store: cfg.Store, Access: cfg.Access, Platforms: b.platforms, Cards: b.desk, Log: b.log, Now: cfg.Now,
		Expel: func(user string) { b.lanes.Expel(user, errBarred) },
	})
	b.gate = approval.New(approval.Config{
		Policy: cfg.Approve, Timeout: cfg.Limits.ApprovalTimeout, Desk: b.desk, Role: b.people.Role, Measure: cfg.Measure, Log: b.log, Now: cfg.Now,
		Lane: func(j *jobs.Job) chats.Chat { return b.place(j).Lane },
	})
	b.turns = turns.New(turns.Config{
		Settings: cfg.Turns,
		Store:    cfg.Store, Jobs: b.jobs, Platforms: b.platforms, Redact: cfg.Redact, Spell: b.spelled, Log: b.log, Now: cfg.Now,
		House: turns.House{
			Scope: b.scope, Gate: b.gate.Of, Decided: b.gate.Decided, Refused: b.refused, Prepare: b.prepare, AwaitTurn: b.lanes.AwaitTurn,
			Mend: func(ctx context.Context, d *jobs.DamagedError, chat chats.Chat) (bool, error) {
				return b.mend(ctx, d, chat, "")
			},
		},
	})
	b.kinds = b.kindTable()
	b.panel = panel.Panel{
		Runner: b.turns, Tools: cfg.Turns.Tools, Savings: cfg.Hooks.Savings, Scope: b.scopeOf, Answer: b.desk.Answer, Load: b.loadLater, Log: b.log,
	}
	handlers[approval.Kind], handlers[panel.Kind] = approval.Handler(cfg.Now), b.panel.Pressed
	maps.Copy(handlers, b.people.Handlers())
	maps.Copy(handlers, cfg.Cards)
	b.commands = b.commandTable()
	b.names = namesOf(b.commands)
	for _, p := range cfg.Platforms {
		if _, twice := b.platforms[p.Name()]; twice {
			return nil, fmt.Errorf("bridge: two platforms are named %s", p.Name())
		}
		b.platforms[p.Name()], b.breakers[p.Name()] = p, newBreaker(p, b.log)
	}
	return b, nil
}

// complete fills in the defaults.
func (l Limits) complete() Limits {
	l.MaxWaiting = cmp.Or(l.MaxWaiting, DefaultMaxWaiting)
	l.MaxWaitingMember = cmp.Or(l.MaxWaitingMember, DefaultMaxWaitingMember)
	l.MaxTurns = cmp.Or(l.MaxTurns, DefaultMaxTurns)
	l.MaxParts = cmp.Or(l.MaxParts, DefaultMaxParts)
	l.ApprovalTimeout = cmp.Or(l.ApprovalTimeout, approval.DefaultTimeout)
	l.StaleAfter = cmp.Or(l.StaleAfter, DefaultStaleAfter)
	l.DrainTimeout = cmp.Or(l.DrainTimeout, DefaultDrainTimeout)
	return l
}

// complete fills in the defaults.
func (cfg Config) complete() Config {
	cfg.Limits = cfg.Limits.complete()
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Redact == nil {
		cfg.Redact = func(text string) string { return text }
	}
	if cfg.RedactCards == nil {
		cfg.RedactCards = cfg.Redact
	}
	return cfg
}

// Run continues what an earlier run left open, then receives and answers until ctx
// ends. It then stops receiving, gives running turns the time of the drain, and
// returns when everything it started has ended. It is called once.
//
// A platform that gives up (a wrong token) is logged and does not touch the others;
// when the last one has given up, Run returns its error.
func (b *Bridge) Run(ctx context.Context) error {
	defer b.lanes.Close(0)
	err := b.people.Load(ctx)
	if err == nil {
		err = b.loadMoves(ctx)
	}
	if err == nil {
		err = b.desk.Load(ctx)
	}
	if err == nil {
		err = b.resume(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	close(b.resumed)
	receiving, stopReceiving := context.WithCancel(ctx)
	defer stopReceiving()
	var background sync.WaitGroup
	background.Go(func() { b.prune(receiving) })
	background.Go(func() { b.desk.Run(receiving) })
	for _, p := range b.platforms {
		background.Go(func() { b.announce(receiving, p) })
	}
	err = b.receive(receiving)
	stopReceiving()
	background.Wait()
	if !b.lanes.Close(b.cfg.Limits.DrainTimeout) {
		b.log.Info("turns still running at the end of the drain go on after the next start")
	}
	return err
}

// receive runs the platforms until ctx ends or none is left.
func (b *Bridge) receive(ctx context.Context) error {
	var group errgroup.Group
	errs := make(chan error, len(b.platforms))
	for name, p := range b.platforms {
		group.Go(func() error {
			err := p.Run(ctx, b)
			if err != nil && ctx.Err() == nil {
				b.log.Error("platform has given up", "platform", name, "err", err)
				errs <- fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	_ = group.Wait()
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

func (b *Bridge) announce(ctx context.Context, p chats.Platform) {
	announcer, ok := p.(chats.Announcer)
	if !ok {
		return
	}
	if err := announcer.Announce(ctx, b.commandInfos()); err != nil && ctx.Err() == nil {
		b.log.Warn("commands could not be announced", "platform", p.Name(), "err", err)
	}
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

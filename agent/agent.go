package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"oneclaw/internal/cache"
	"oneclaw/toolgroups"
)

const (
	// maxParallel bounds how many tools of one turn run at a time.
	maxParallel = 8
	// maxRounds bounds the model's replies in a turn that sets no bound.
	maxRounds = 50
	// maxCalls bounds how many calls in one reply are run.
	maxCalls = 32
)

// Config configures an [Agent].
type Config struct {
	// Model answers turns that have no model of their own. It may be nil if all have one.
	Model Model
	// Logger receives the log for administrators. Nil discards it.
	Logger *slog.Logger
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// CacheTTL returns how long a model's provider caches a prompt if it is not asked for a time; 0 if it
	// caches none. known is false if that is not known. Nil knows no model.
	CacheTTL func(model string) (ttl time.Duration, known bool)
}

// Agent answers turns. It may be used concurrently. Its goroutines run tools; each ends before the
// iteration of [Agent.Run] that started it.
type Agent struct {
	cfg      Config
	log      *slog.Logger
	parallel int
	// refused holds the groups of tools that a model's server does not accept, after the model's name.
	refused *cache.Cache[string, struct{}]
}

// New returns an agent.
func New(cfg Config) *Agent {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Agent{cfg: cfg, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)), parallel: maxParallel, refused: cache.New[string, struct{}](maxModels)}
}

// errStopped is returned when the consumer has stopped the iteration.
var errStopped = errors.New("agent: the consumer stopped")

// Run answers a turn. It yields each message of the conversation before it acts on that message. The
// caller stores the message before it asks for the next; if it cannot, it stops the iteration and Run
// does nothing further. If the turn cannot be answered, Run yields an error as the last value, without
// a message. It wraps a *[ModelError], [ErrSuspended], the cause of ctx, or the error of a function of
// the turn.
//
// Where the turn continues depends on the history alone. Open calls in its last assistant message are
// resolved first. A call whose start is recorded and that has no result counts as interrupted; any other
// is run. A call that can be repeated ([toolgroups.Tool.RunsAgain]) is run a second time, but not a third,
// because it may have crashed the program. A history that ends with an answer or a summary yields nothing.
func (a *Agent) Run(ctx context.Context, turn Turn) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		r := a.newRun(turn)
		r.yield = yield
		if err := r.loop(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(Message{}, err)
		}
	}
}

func (a *Agent) newRun(turn Turn) *run {
	r := &run{agent: a, turn: turn, model: turn.Model, history: slices.Clip(CompactedHistory(turn.History))}
	if r.model == nil {
		r.model = a.cfg.Model
	}
	return r
}

// run is one iteration of [Agent.Run]. It belongs to one goroutine.
type run struct {
	agent   *Agent
	turn    Turn
	model   Model
	history []Message
	yield   func(Message, error) bool
	// round holds the tools that the last request offered; nil before the first.
	round *toolgroups.Round
	// windowLimit bounds the window once a model has refused a larger one.
	windowLimit int
	// omitted is the number of messages that the last window left out.
	omitted int
	// spending is what the turn has spent; nil before its first calls.
	spending *Spending
}

func (r *run) loop(ctx context.Context) error {
	if r.model == nil || r.turn.Set == nil {
		return errors.New("agent: the turn has no model or no tool set")
	}
	for {
		at := lastMessage(r.history)
		if at < 0 || endsTurn(&r.history[at]) {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("agent: %w", context.Cause(ctx))
		}
		if r.history[at].Role == RoleAssistant {
			if err := r.resolve(ctx, at); err != nil {
				return err
			}
			if err := r.steer(ctx); err != nil {
				return err
			}
		}
		if done, err := r.ask(ctx); done || err != nil {
			return err
		}
	}
}

// steer adds the messages that users sent during the round.
func (r *run) steer(ctx context.Context) error {
	if r.turn.Steer == nil {
		return nil
	}
	messages, unasked, err := r.turn.Steer(ctx)
	if err != nil {
		return fmt.Errorf("agent: read steering messages: %w", err)
	}
	r.history, r.turn.Scope.Unasked = append(r.history, messages...), unasked
	return nil
}

// emit adds a message to the conversation. If it returns nil, the message is stored.
func (r *run) emit(m Message) error {
	m.Time = r.agent.cfg.Now()
	if !m.Final {
		// Nothing follows an answer, so a long history is not copied for it.
		r.history = append(r.history, m)
	}
	if !r.yield(m, nil) {
		return errStopped
	}
	return nil
}

func (r *run) observe(e Event) {
	if r.turn.Observe != nil {
		r.turn.Observe(e)
	}
}

package provider

import (
	"context"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/internal/cache"
)

// Known remembers what servers report of their models, and what their refusals have shown, for all
// clients that share it. Quirks are the changes to requests learned from refusals. It may be used
// concurrently.
type Known[Quirks any] struct {
	mu     sync.Mutex
	models *cache.Cache[string, Memory[Quirks]]
	// asked are the models whose providers were asked lately.
	asked *cache.Cache[string, struct{}]
}

// Memory is what is known of one model.
type Memory[Quirks any] struct {
	Quirks *Quirks // nil before any was learned
	Limit  int     // context size named by a refusal; 0 for none
	Told   Facts
}

const (
	// MaxKnown bounds how many models are remembered.
	MaxKnown = 1000
	// KnownFor is how long a model is remembered; servers change.
	KnownFor = 24 * time.Hour
	// silentFor is the pause after a provider did not answer.
	silentFor = 10 * time.Minute
	// askTimeout bounds a question about a model, because a reply waits for it.
	askTimeout = 3 * time.Second
)

// NewKnown returns an empty memory.
func NewKnown[Quirks any]() *Known[Quirks] {
	return &Known[Quirks]{models: cache.New[string, Memory[Quirks]](MaxKnown), asked: cache.New[string, struct{}](MaxKnown)}
}

// Get returns what is known of a model.
func (k *Known[Quirks]) Get(model string) Memory[Quirks] {
	m, _ := k.models.Get(model)
	return m
}

func (k *Known[Quirks]) change(model string, change func(*Memory[Quirks])) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.Get(model)
	change(&m)
	k.models.Put(model, m, KnownFor)
}

// Learn remembers quirks with which a server took a request.
func (k *Known[Quirks]) Learn(model string, q Quirks) {
	k.change(model, func(m *Memory[Quirks]) { m.Quirks = &q })
}

// Refused remembers the context size that a fault names, if any.
func (k *Known[Quirks]) Refused(model string, f *Fault) {
	if f.Failure.Kind != agent.KindOverflow {
		return
	}
	if tokens := LimitIn(f.Said); tokens > 0 {
		k.change(model, func(m *Memory[Quirks]) { m.Limit = tokens })
	}
}

// Ask calls ask for what the provider reports of a model, unless it has been asked lately. If that
// fails, other sources still apply.
func (k *Known[Quirks]) Ask(ctx context.Context, model string, ask func(context.Context) (Facts, error)) error {
	if k.asked.Has(model) {
		return nil
	}
	ctx, end := context.WithTimeout(ctx, askTimeout)
	defer end()
	told, err := ask(ctx)
	rest := KnownFor
	if err != nil || told.Cuts && told.Context.From == "" {
		rest = silentFor // the model may be loaded soon
	}
	k.asked.Put(model, struct{}{}, rest)
	if err == nil {
		k.change(model, func(m *Memory[Quirks]) { m.Told = told })
	}
	return err
}

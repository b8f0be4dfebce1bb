package provider

import (
	"context"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/internal/cache"
)

// Known remembers what servers have told of their models, and what they have shown by refusing, for
// all clients that share it. Quirks are what a model is asked otherwise. It may be used concurrently.
type Known[Quirks any] struct {
	mu     sync.Mutex
	models *cache.Cache[string, Memory[Quirks]]
	// asked are the models whose providers need not be asked now.
	asked *cache.Cache[string, struct{}]
}

// Memory is what is known of one model.
type Memory[Quirks any] struct {
	Quirks *Quirks // nil before any was learned
	Limit  int     // the size of the context that a refusal has named
	Told   Facts
}

const (
	// MaxKnown bounds the models that are remembered.
	MaxKnown = 1000
	// KnownFor is how long: what a server refuses may be mended.
	KnownFor = 24 * time.Hour
	// silentFor is how long a provider is not asked again that did not answer.
	silentFor = 10 * time.Minute
	// askTimeout bounds what asking about a model may take: an answer waits for it.
	askTimeout = 3 * time.Second
)

// NewKnown makes an empty memory.
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

// Learn remembers what made a server take a request.
func (k *Known[Quirks]) Learn(model string, q Quirks) {
	k.change(model, func(m *Memory[Quirks]) { m.Quirks = &q })
}

// Refused remembers the size of the context where a fault names it.
func (k *Known[Quirks]) Refused(model string, f *Fault) {
	if f.Failure.Kind != agent.KindOverflow {
		return
	}
	if tokens := LimitIn(f.Said); tokens > 0 {
		k.change(model, func(m *Memory[Quirks]) { m.Limit = tokens })
	}
}

// Ask has a provider asked what its model can do, unless it has told that lately. What is known
// otherwise is known all the same where that fails.
func (k *Known[Quirks]) Ask(ctx context.Context, model string, ask func(context.Context) (Facts, error)) error {
	if k.asked.Has(model) {
		return nil
	}
	ctx, end := context.WithTimeout(ctx, askTimeout)
	defer end()
	told, err := ask(ctx)
	rest := KnownFor
	if err != nil || told.Cuts && told.Context.From == "" {
		rest = silentFor // It may be loaded soon.
	}
	k.asked.Put(model, struct{}{}, rest)
	if err == nil {
		k.change(model, func(m *Memory[Quirks]) { m.Told = told })
	}
	return err
}

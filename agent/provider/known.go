package provider

import (
	"context"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/internal/cache"
	"oneclaw/toolgroups"
)

// ModelCache holds what servers report about their models, and what their refusals revealed, for all
// clients that share it. Quirks is the type of the changes to requests learned from refusals. It may be
// used concurrently.
type ModelCache[Quirks any] struct {
	mu     sync.Mutex
	models *cache.Cache[string, ModelEntry[Quirks]]
	// asked holds the models whose providers were asked recently.
	asked *cache.Cache[string, struct{}]
	// parameters holds adapted schemas, because each request contains all of them.
	parameters *cache.Cache[schemaKey, Parameters]
	// refused holds the tools that a model's server has refused.
	refused *cache.Cache[refusedTool, struct{}]
}

// schemaKey identifies a schema, which is never changed in place, and the family for which it is adapted.
type schemaKey struct {
	family Family
	schema *byte
}

// refusedTool identifies a tool that a model's server has refused. A tool whose schema has changed is another.
type refusedTool struct {
	model, name, schema string
}

// ModelEntry holds what is known about one model.
type ModelEntry[Quirks any] struct {
	Quirks       *Quirks // nil before any was learned
	ContextLimit int     // context size named by a refusal; 0 for none
	Reported     Facts
}

const (
	// MaxModels bounds how many models are cached.
	MaxModels = 1000
	// maxSchemas bounds how many adapted schemas, and refused tools, are cached.
	maxSchemas = 4000
	// ModelTTL is how long a model is cached, because servers change.
	ModelTTL = 24 * time.Hour
	// failurePause is how long a provider is not asked again after it did not answer, or did not say which
	// context size the model has because the model was not loaded.
	failurePause = 10 * time.Minute
	// askTimeout bounds a request for a model's facts, because a user's message waits for it.
	askTimeout = 3 * time.Second
)

// NewModelCache returns an empty cache.
func NewModelCache[Quirks any]() *ModelCache[Quirks] {
	return &ModelCache[Quirks]{
		models: cache.New[string, ModelEntry[Quirks]](MaxModels), asked: cache.New[string, struct{}](MaxModels),
		parameters: cache.New[schemaKey, Parameters](maxSchemas), refused: cache.New[refusedTool, struct{}](maxSchemas),
	}
}

// Parameters returns the parameters of a tool as a family of models accepts them.
func (k *ModelCache[Quirks]) Parameters(family Family, tool *toolgroups.Tool) Parameters {
	schema := tool.Schema()
	key := schemaKey{family, &schema[0]}
	p, ok := k.parameters.Get(key)
	if !ok {
		p = adaptParameters(family, schema)
		if len(tool.Parameters) > 0 {
			k.parameters.Put(key, p, ModelTTL)
		}
	}
	return p
}

// Get returns what is known about a model.
func (k *ModelCache[Quirks]) Get(model string) ModelEntry[Quirks] {
	m, _ := k.models.Get(model)
	return m
}

// Renamed returns the parameters of the tools of which properties are renamed, by the name of the tool; nil if
// there are none.
func (k *ModelCache[Quirks]) Renamed(family Family, tools []toolgroups.Tool) (renamed map[string]Parameters) {
	for i := range tools {
		if p := k.Parameters(family, &tools[i]); p.sent != nil {
			if renamed == nil {
				renamed = map[string]Parameters{}
			}
			renamed[tools[i].Name] = p
		}
	}
	return renamed
}

// RestoreNames gives the arguments of calls the tools' own names of properties.
func RestoreNames(calls []agent.Call, renamed map[string]Parameters) {
	for i := range calls {
		calls[i].Arguments = renamed[calls[i].Name].ownNames(calls[i].Arguments)
	}
}

func (k *ModelCache[Quirks]) update(model string, change func(*ModelEntry[Quirks])) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.Get(model)
	change(&m)
	k.models.Put(model, m, ModelTTL)
}

// SetQuirks stores quirks with which a server accepted a request.
func (k *ModelCache[Quirks]) SetQuirks(model string, q Quirks) {
	k.update(model, func(m *ModelEntry[Quirks]) { m.Quirks = &q })
}

// LearnLimit stores the context size that a fault states, if any.
func (k *ModelCache[Quirks]) LearnLimit(model string, f *Fault) {
	if f.Failure.Kind != agent.KindOverflow {
		return
	}
	if tokens := contextLimitIn(f.Response); tokens > 0 {
		k.update(model, func(m *ModelEntry[Quirks]) { m.ContextLimit = tokens })
	}
}

// Refresh stores the facts that ask returns, which requests them from the provider, unless the provider
// was asked about the model recently. If ask fails, stored facts still apply.
func (k *ModelCache[Quirks]) Refresh(ctx context.Context, model string, ask func(context.Context) (Facts, error)) error {
	if k.asked.Has(model) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	told, err := ask(ctx)
	rest := ModelTTL
	if err != nil || told.TruncatesSilently && told.ContextTokens.From == "" {
		rest = failurePause // the model may be loaded soon
	}
	k.asked.Put(model, struct{}{}, rest)
	if err == nil {
		k.update(model, func(m *ModelEntry[Quirks]) { m.Reported = told })
	}
	return err
}

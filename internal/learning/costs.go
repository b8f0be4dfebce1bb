package learning

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/internal/bill"
	"oneclaw/internal/budget"
	"oneclaw/storage"
	"oneclaw/toolgroups/search"
)

// Bounds of a conversation to play.
const (
	maxMessages = 5000
	maxBytes    = 4 << 20
)

// Errors of [Costs].
var (
	// ErrTooLong is returned for a conversation that exceeds these bounds.
	ErrTooLong = errors.New("the conversation is too long to be played")
	// ErrBusy is returned while another conversation is played.
	ErrBusy = errors.New("another conversation is being played")
	// ErrUnknown is returned for unknown routings, and for models whose caches are unknown.
	ErrUnknown = errors.New("unknown")
)

// CostsConfig configures [Costs].
type CostsConfig struct {
	Store storage.Store
	// BillConfig returns how conversations are played now; its Routings and OnOmitted are not used.
	BillConfig func() bill.Config
	// Price returns the prices of a model, if known.
	Price func(model string) (budget.Price, bool)
}

// Costs estimates what conversations would have cost with other models and routings. Nothing is
// sent anywhere: the conversation is replayed against a scripted model, with simulated caches, one
// conversation at a time. It may be used concurrently.
type Costs struct {
	cfg     CostsConfig
	running sync.Mutex
}

// NewCosts makes a [Costs].
func NewCosts(cfg CostsConfig) *Costs { return &Costs{cfg: cfg} }

// Providers returns the models that can be compared.
func (c *Costs) Providers() []bill.Provider { return c.cfg.BillConfig().Providers }

// Selection selects what is compared. The zero value compares everything.
type Selection struct {
	// Models are names of providers or models of [bill.Providers]; empty for all.
	Models []string
	// Routings is empty for all.
	Routings []search.Routing
}

// Comparison is what a conversation has cost, and what it would have cost.
type Comparison struct {
	// Actual is the usage of the conversation's replies.
	Actual Usage `json:"was"`
	// Lines are the estimated costs, for each model the routings in order.
	Lines []bill.Line `json:"lines"`
	// Models are the costs with the models that answered, and with each of them alone; none if only the
	// program's own model answered.
	Models []bill.ModelCost `json:"models,omitempty"`
	// Omitted counts the calls left out because their tools no longer exist.
	Omitted int `json:"left,omitempty"`
}

// Compare estimates the costs of the conversation in a log. While
// another conversation is played, it returns [ErrBusy] at once.
func (c *Costs) Compare(ctx context.Context, log string, with Selection) (out Comparison, err error) {
	if !c.running.TryLock() {
		return out, ErrBusy
	}
	defer c.running.Unlock()
	cfg, err := with.applyTo(c.cfg.BillConfig())
	if err != nil {
		return out, err
	}
	conversation, err := bill.FromLog(log, c.readMessages(ctx, log, &out.Actual))
	if err != nil {
		return Comparison{}, err
	}
	cfg.OnOmitted = func(calls int) { out.Omitted += calls }
	b, err := bill.New(cfg)
	if err != nil {
		return out, err
	}
	if out.Lines, err = b.Compare(ctx, conversation); err == nil {
		out.Models, err = b.CompareModels(ctx, conversation)
	}
	return out, err
}

// applyTo narrows a configuration to the selection.
func (w Selection) applyTo(cfg bill.Config) (bill.Config, error) {
	cfg.Routings = w.Routings
	for _, r := range w.Routings {
		if !slices.Contains(search.Routings(), r) {
			return cfg, fmt.Errorf("%w routing %q", ErrUnknown, r)
		}
	}
	if len(w.Models) == 0 {
		return cfg, nil
	}
	all := cfg.Providers
	cfg.Providers = nil
	for _, name := range w.Models {
		if !slices.ContainsFunc(all, func(t bill.Provider) bool { return name == t.Name || name == t.Model }) {
			return cfg, fmt.Errorf("%w cache of the model %q", ErrUnknown, name)
		}
	}
	for _, t := range all {
		if slices.Contains(w.Models, t.Name) || slices.Contains(w.Models, t.Model) {
			cfg.Providers = append(cfg.Providers, t)
		}
	}
	return cfg, nil
}

// readMessages reads a conversation within the bounds, and adds up the usage of its replies.
func (c *Costs) readMessages(ctx context.Context, log string, was *Usage) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		messages, size := 0, 0
		for record, err := range conversation.Records(ctx, c.cfg.Store, log, storage.Query{}) {
			var m agent.Message
			if err == nil {
				m, err = conversation.Decode(log, record)
			}
			messages, size = messages+1, size+len(record.Data)
			if messages > maxMessages || size > maxBytes {
				err = ErrTooLong
			}
			if err == nil && m.Role == agent.RoleAssistant && m.Usage != nil {
				was.Add(UsageOf(*m.Usage, m.Model, c.cfg.Price))
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

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
	// ErrTooLong is returned for a conversation beyond these bounds.
	ErrTooLong = errors.New("the conversation is too long to be played")
	// ErrBusy is returned while another one is played.
	ErrBusy = errors.New("another conversation is being played")
	// ErrUnknown is returned for unknown routings, and for models whose caches are unknown.
	ErrUnknown = errors.New("not known is")
)

// CostsConfig configures [Costs].
type CostsConfig struct {
	Store storage.Store
	// Bill returns how conversations are played now; its Routings and Left are not used.
	Bill func() bill.Config
	// Money returns the prices of a model, if known.
	Money func(model string) (budget.Price, bool)
}

// Costs estimates what conversations would have cost with other models and routings. Nothing is
// sent anywhere: the conversation is played to a script, with simulated caches. One conversation
// is played at a time. It may be used concurrently.
type Costs struct {
	cfg  CostsConfig
	turn sync.Mutex
}

// NewCosts returns costs that are ready.
func NewCosts(cfg CostsConfig) *Costs { return &Costs{cfg: cfg} }

// Tables returns the models that can be compared.
func (c *Costs) Tables() []bill.Table { return c.cfg.Bill().Tables }

// With selects what is compared. The zero value compares everything.
type With struct {
	// Models are names of providers or models of [bill.Tables], Routings are routings.
	Models   []string
	Routings []search.Routing
}

// Comparison is what a conversation has cost and would have cost.
type Comparison struct {
	// Was is the usage of its replies.
	Was Used `json:"was"`
	// Lines are the estimated costs, for each model the routings in order.
	Lines []bill.Line `json:"lines"`
	// Left counts the calls left out because their tools no longer exist.
	Left int `json:"left,omitempty"`
}

// Of compares for the conversation of a log. While another one is played it returns [ErrBusy] at
// once.
func (c *Costs) Of(ctx context.Context, log string, with With) (out Comparison, err error) {
	if !c.turn.TryLock() {
		return out, ErrBusy
	}
	defer c.turn.Unlock()
	cfg, err := with.narrow(c.cfg.Bill())
	if err != nil {
		return out, err
	}
	conversation, err := bill.Recorded(log, c.read(ctx, log, &out.Was))
	if err != nil {
		return Comparison{}, err
	}
	cfg.Left = func(calls int) { out.Left += calls }
	b, err := bill.New(cfg)
	if err != nil {
		return out, err
	}
	out.Lines, err = b.Compare(ctx, conversation)
	return out, err
}

// narrow selects what is compared.
func (w With) narrow(cfg bill.Config) (bill.Config, error) {
	cfg.Routings = w.Routings
	for _, r := range w.Routings {
		if !slices.Contains(search.Routings(), r) {
			return cfg, fmt.Errorf("%w the routing %q", ErrUnknown, r)
		}
	}
	if len(w.Models) == 0 {
		return cfg, nil
	}
	all := cfg.Tables
	cfg.Tables = nil
	for _, name := range w.Models {
		if !slices.ContainsFunc(all, func(t bill.Table) bool { return name == t.Name || name == t.Model }) {
			return cfg, fmt.Errorf("%w the cache of the model %q", ErrUnknown, name)
		}
	}
	for _, t := range all {
		if slices.Contains(w.Models, t.Name) || slices.Contains(w.Models, t.Model) {
			cfg.Tables = append(cfg.Tables, t)
		}
	}
	return cfg, nil
}

// read reads a conversation within the bounds, and adds up the usage of its replies.
func (c *Costs) read(ctx context.Context, log string, was *Used) iter.Seq2[agent.Message, error] {
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
				was.Add(UsedBy(*m.Usage, m.Model, c.cfg.Money))
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

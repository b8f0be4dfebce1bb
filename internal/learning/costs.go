package learning

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/sessions"
	"oneclaw/internal/bill"
	"oneclaw/internal/price"
	"oneclaw/storage"
	"oneclaw/toolgroups/search"
)

// Bounds of a conversation whose cost can be asked for.
const (
	maxMessages = 5000
	maxBytes    = 4 << 20
)

// ErrTooLong is the error for a conversation beyond these bounds.
var ErrTooLong = errors.New("the conversation is too long to be played")

// CostsConfig is what [Costs] are made of.
type CostsConfig struct {
	Store storage.Store
	// Bill says how conversations are played now; its Routings and Left are not used.
	Bill func() bill.Config
	// Money says what the tokens of a model cost, where that is known.
	Money func(model string) (price.Price, bool)
}

// Costs says what conversations would have cost with other models and routings. Nothing is sent
// anywhere: the conversation is played to a script, with the caches of the providers simulated.
// One conversation is played at a time. It may be used concurrently.
type Costs struct {
	cfg  CostsConfig
	turn chan struct{}
}

// NewCosts returns costs that are ready.
func NewCosts(cfg CostsConfig) *Costs { return &Costs{cfg, make(chan struct{}, 1)} }

// With says what is compared. The zero value compares everything.
type With struct {
	// Models are names of providers or models of [bill.Tables], Routings ways of routing.
	Models   []string
	Routings []search.Routing
}

// Comparison is what a conversation has cost and would have cost.
type Comparison struct {
	// Was is what its replies have cost.
	Was Used `json:"was"`
	// Lines are what it would have cost, for each model the routings in their order.
	Lines []bill.Line `json:"lines"`
	// Left counts the calls that were left out because their tools are not there any more.
	Left int `json:"left,omitempty"`
}

// Of compares for one conversation: that of a generation of a chat, the present one for 0.
func (c *Costs) Of(ctx context.Context, chat chats.Chat, generation int, with With) (out Comparison, err error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return out, context.Cause(ctx)
	}
	session, err := sessions.Current(ctx, c.cfg.Store, chat)
	if err != nil {
		return out, err
	}
	log := session.In(generation).Log()
	conversation, err := bill.Recorded(log, c.read(ctx, log, &out.Was))
	if err != nil {
		return out, err
	}
	cfg := c.cfg.Bill()
	cfg.Left = func(calls int) { out.Left += calls }
	cfg.Routings = with.Routings
	if len(with.Models) > 0 {
		cfg.Tables = slices.DeleteFunc(slices.Clone(cfg.Tables), func(t bill.Table) bool {
			return !slices.Contains(with.Models, t.Name) && !slices.Contains(with.Models, t.Model)
		})
		if len(cfg.Tables) == 0 {
			return out, fmt.Errorf("none of the models %q has a table of its cache", with.Models)
		}
	}
	b, err := bill.New(cfg)
	if err != nil {
		return out, err
	}
	out.Lines, err = b.Compare(ctx, conversation)
	return out, err
}

// read reads a conversation within its bounds, and adds up what its replies have cost.
func (c *Costs) read(ctx context.Context, log string, was *Used) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		messages, size := 0, 0
		for record, err := range sessions.Records(ctx, c.cfg.Store, log, storage.Query{}) {
			var m agent.Message
			if err == nil {
				m, err = sessions.Decode(log, record)
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

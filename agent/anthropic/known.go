package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"oneclaw/agent"
	"oneclaw/agent/provider"
	"oneclaw/internal/cache"
)

// family holds what the name of a model implies, as of 2026-11
// (platform.claude.com/docs/en/about-claude/models/overview).
type family struct {
	// temperature: it takes one. adaptive: it decides itself how long it thinks. effort: it takes a
	// reasoning effort. always: its thinking cannot be turned off.
	temperature, adaptive, effort, always bool
	// budget: it takes a token budget for thinking.
	budget bool
	// searches: the provider finds deferred tools for it.
	searches bool
}

// version matches what follows the word claude: line and number, in either order.
var version = regexp.MustCompile(`claude-(?:([a-z]+)-)?([0-9]+)(?:[-.]([0-9]{1,2}))?(?:-|$|@)(?:([a-z]+))?`)

func familyOf(model string) family {
	m := version.FindStringSubmatch(strings.ToLower(model))
	if m == nil { // An alias, or a new model: assume nothing.
		return family{searches: strings.Contains(model, "claude")}
	}
	line := cmp.Or(m[1], m[4])
	at := func(major, minor int) bool {
		have := number(m[2])*100 + number(m[3])
		return have >= major*100+minor
	}
	top := line == "fable" || line == "mythos"
	return family{
		temperature: !at(4, 7) && !top, adaptive: at(4, 6) || top, effort: at(4, 6) || at(4, 5) && line == "opus" || top,
		always: at(5, 5) || top, budget: !at(4, 6) && !top && (at(4, 0) || at(3, 7)), searches: at(4, 5) || top,
	}
}

func number(digits string) (n int) {
	for _, d := range digits {
		n = n*10 + int(d-'0')
	}
	return n
}

// budgets are the thinking tokens for each effort, for models that take a budget.
var budgets = map[string]int{"minimal": 1024, "low": 2048, "medium": 6000, "high": 12_000, "xhigh": 20_000, "max": 24_000}

// efforts are the Messages API's names of the efforts.
var efforts = map[string]string{"none": "low", "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}

// think sets the reasoning effort in the form that the model takes. unthought says that the request
// cannot start thinking by a budget.
func (c *Client) think(r *request, req *agent.Request, q quirks, unthought bool) {
	effort := cmp.Or(req.Effort, c.cfg.Effort)
	if effort == "" || effort == "none" && !c.family.effort {
		return
	}
	if c.family.effort && !q.noEffort {
		r.Output = &output{Effort: efforts[effort]}
	}
	switch {
	case q.noThinking:
	case effort == "none" && !c.family.always:
		r.Thinking = &thinking{Type: "disabled"}
	case c.family.adaptive:
		r.Thinking = &thinking{Type: "adaptive"}
	case c.family.budget && !unthought && q.thoughts != thoughtsNone && budgets[effort] < r.MaxTokens:
		r.Thinking = &thinking{Type: "enabled", Budget: budgets[effort]}
	}
}

// Known remembers what the provider reports of its models, and what their refusals have shown, for all
// clients that share it. It may be used concurrently.
type Known struct {
	*provider.Known[quirks]
	// thoughts holds the quirk of that name, by conversation.
	thoughts *cache.Cache[string, int]
}

// NewKnown returns an empty memory.
func NewKnown() *Known {
	return &Known{provider.NewKnown[quirks](), cache.New[string, int](provider.MaxKnown)}
}

// known returns the quirks of the model and of a conversation.
func (c *Client) known(conversation string) (q quirks) {
	if learned := c.cfg.Known.Get(c.origin).Quirks; learned != nil {
		q = *learned
	}
	if conversation != "" {
		q.thoughts, _ = c.cfg.Known.thoughts.Get(c.origin + conversation)
	}
	if c.cfg.Set.Vision == "yes" {
		q.blind = false
	}
	return q
}

// learn remembers quirks with which the server took a request.
func (c *Client) learn(conversation string, q quirks) {
	if conversation != "" {
		c.cfg.Known.thoughts.Put(c.origin+conversation, q.thoughts, provider.KnownFor)
	}
	q.thoughts = thoughtsAll
	c.cfg.Known.Learn(c.origin, q)
}

// Facts returns what is known of the model now, without a request, the most certain first.
func (c *Client) Facts() provider.Facts {
	m, q := c.cfg.Known.Get(c.origin), c.known("")
	set, refused, named := c.cfg.Set.Facts(), provider.Facts{}, provider.Facts{}
	refused.Context = provider.NewNumber(float64(m.Limit), provider.FromRefusal)
	if q.blind {
		refused.Sees = provider.NewCan(false, provider.FromRefusal)
	}
	if q.noSearch {
		refused.Searches = provider.NewCan(false, provider.FromRefusal)
	}
	named.Context = provider.NewNumber(float64(c.cfg.ContextTokens), provider.FromTable)
	named.Sees, named.Caches = provider.NewCan(true, provider.FromTable), provider.NewCan(true, provider.FromTable)
	named.Searches = provider.NewCan(c.family.searches, provider.FromTable)
	named.Reasons = provider.NewCan(c.family.adaptive || c.family.budget, provider.FromTable)
	return set.Or(refused).Or(m.Told).Or(named)
}

// context returns the context size in [Client.Facts]. It is called often.
func (c *Client) context() int {
	m := c.cfg.Known.Get(c.origin)
	return cmp.Or(c.cfg.Set.Context, m.Limit, m.Told.Context.Value, c.cfg.ContextTokens)
}

// Ask calls [Client.Learn] and returns all that is known of the model.
func (c *Client) Ask(ctx context.Context) (provider.Facts, error) {
	err := c.Learn(ctx)
	return c.Facts(), err
}

// Learn asks the provider what the model can do, unless it has lately.
func (c *Client) Learn(ctx context.Context) error {
	return c.cfg.Known.Ask(ctx, c.origin, c.ask)
}

// factsOf reads what the provider reports of a model. It may lack fields.
func factsOf(raw []byte) (f provider.Facts) {
	type can struct{ Supported *bool }
	var m struct {
		Input        float64 `json:"max_input_tokens"`
		Output       float64 `json:"max_tokens"`
		Capabilities struct {
			Image    can `json:"image_input"`
			Thinking can `json:"thinking"`
		} `json:"capabilities"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return f
	}
	f.Context, f.Output = provider.NewNumber(m.Input, provider.FromServer), provider.NewNumber(m.Output, provider.FromServer)
	if s := m.Capabilities.Image.Supported; s != nil {
		f.Sees = provider.NewCan(*s, provider.FromServer)
	}
	if s := m.Capabilities.Thinking.Supported; s != nil {
		f.Reasons = provider.NewCan(*s, provider.FromServer)
	}
	return f
}

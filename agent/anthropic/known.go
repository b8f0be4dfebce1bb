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

// family is what the name of a model tells, as of 2026-11
// (platform.claude.com/docs/en/about-claude/models/overview).
type family struct {
	// temperature says that it takes one, adaptive that it decides by itself how long it
	// thinks, effort that it can be told how hard, always that thinking cannot be put off.
	temperature, adaptive, effort, always bool
	// budget says that it is told for how many tokens it may think.
	budget bool
	// searches says that the provider finds deferred tools for it.
	searches bool
}

// version is what follows the word claude: the line and the number, or the other way round.
var version = regexp.MustCompile(`claude-(?:([a-z]+)-)?([0-9]+)(?:[-.]([0-9]{1,2}))?(?:-|$|@)(?:([a-z]+))?`)

func familyOf(model string) family {
	m := version.FindStringSubmatch(strings.ToLower(model))
	if m == nil { // An alias, or one that is not known yet: it is told nothing.
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

// budgets are how many tokens a model may think that is told so.
var budgets = map[string]int{"minimal": 1024, "low": 2048, "medium": 6000, "high": 12_000, "xhigh": 20_000, "max": 24_000}

// efforts are what the Messages API calls them.
var efforts = map[string]string{"none": "low", "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}

// think says how hard the model is to think, in the form that it takes. unthought says that
// the request cannot begin to think by a budget.
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

// Known remembers what the provider has told of its models, and what they have shown by
// refusing, for all clients that share it. It may be used concurrently.
type Known struct {
	*provider.Known[quirks]
	// thoughts are what conversations carry back.
	thoughts *cache.Cache[string, int]
}

// NewKnown makes an empty memory.
func NewKnown() *Known {
	return &Known{provider.NewKnown[quirks](), cache.New[string, int](provider.MaxKnown)}
}

// known are the quirks of the model, with what a conversation carries back.
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

// learn remembers what made the server take a request.
func (c *Client) learn(conversation string, q quirks) {
	if conversation != "" {
		c.cfg.Known.thoughts.Put(c.origin+conversation, q.thoughts, provider.KnownFor)
	}
	q.thoughts = thoughtsAll
	c.cfg.Known.Learn(c.origin, q)
}

// Facts is what is known of the model now, without a request, the most certain first.
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

// context is the size of the context as [Client.Facts] has it. It is asked for often.
func (c *Client) context() int {
	m := c.cfg.Known.Get(c.origin)
	return cmp.Or(c.cfg.Set.Context, m.Limit, m.Told.Context.Value, c.cfg.ContextTokens)
}

// Ask returns all that is known of the model once it has done what [Client.Learn] does.
func (c *Client) Ask(ctx context.Context) (provider.Facts, error) {
	err := c.Learn(ctx)
	return c.Facts(), err
}

// Learn asks the provider what the model can do, unless it has told that lately.
func (c *Client) Learn(ctx context.Context) error {
	return c.cfg.Known.Ask(ctx, c.origin, c.ask)
}

// factsOf reads what the provider says of a model. It may say less.
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

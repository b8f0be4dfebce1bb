package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/agent/openai"
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
	mu     sync.Mutex
	models *cache.Cache[string, memory]
	// asked are the models that need not be asked for now, thoughts what conversations
	// carry back.
	asked    *cache.Cache[string, struct{}]
	thoughts *cache.Cache[string, int]
}

type memory struct {
	quirks quirks
	limit  int
	told   openai.Facts
}

const (
	maxKnown  = 1000
	knownFor  = 24 * time.Hour
	silentFor = 10 * time.Minute
	// askTimeout bounds what asking about a model may take: an answer waits for it.
	askTimeout = 3 * time.Second
)

// NewKnown makes an empty memory.
func NewKnown() *Known {
	return &Known{
		models: cache.New[string, memory](maxKnown), asked: cache.New[string, struct{}](maxKnown), thoughts: cache.New[string, int](maxKnown),
	}
}

func (k *Known) get(c *Client) memory {
	m, _ := k.models.Get(c.origin)
	return m
}

func (k *Known) change(c *Client, change func(*memory)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.get(c)
	change(&m)
	k.models.Put(c.origin, m, knownFor)
}

// quirks are those of a model, with what a conversation carries back.
func (k *Known) quirks(c *Client, conversation string) quirks {
	q := k.get(c).quirks
	if conversation != "" {
		q.thoughts, _ = k.thoughts.Get(c.origin + conversation)
	}
	if c.cfg.Set.Vision == "yes" {
		q.blind = false
	}
	return q
}

// learn remembers what made a server take a request.
func (k *Known) learn(c *Client, conversation string, q quirks) {
	if conversation != "" {
		k.thoughts.Put(c.origin+conversation, q.thoughts, knownFor)
	}
	q.thoughts = thoughtsAll
	k.change(c, func(m *memory) { m.quirks = q })
}

// limit remembers the size of the context that a refusal has named.
func (k *Known) limit(c *Client, tokens int) {
	if tokens > 0 {
		k.change(c, func(m *memory) { m.limit = tokens })
	}
}

// Facts is what is known of the model now, without a request, the most certain first.
func (c *Client) Facts() openai.Facts {
	m := c.cfg.Known.get(c)
	var set, refused, named openai.Facts
	set.Context = openai.NewNumber(float64(c.cfg.Set.Context), openai.FromSettings)
	if c.cfg.Set.Vision != "" {
		set.Sees = openai.NewCan(c.cfg.Set.Vision == "yes", openai.FromSettings)
	}
	refused.Context = openai.NewNumber(float64(m.limit), openai.FromRefusal)
	if m.quirks.blind {
		refused.Sees = openai.NewCan(false, openai.FromRefusal)
	}
	if m.quirks.noSearch {
		refused.Searches = openai.NewCan(false, openai.FromRefusal)
	}
	named.Context = openai.NewNumber(float64(c.cfg.ContextTokens), openai.FromTable)
	named.Sees, named.Caches = openai.NewCan(true, openai.FromTable), openai.NewCan(true, openai.FromTable)
	named.Searches = openai.NewCan(c.family.searches, openai.FromTable)
	named.Reasons = openai.NewCan(c.family.adaptive || c.family.budget, openai.FromTable)
	return set.Or(refused).Or(m.told).Or(named)
}

// context is the size of the context as [Client.Facts] has it. It is asked for often.
func (c *Client) context() int {
	m := c.cfg.Known.get(c)
	return cmp.Or(c.cfg.Set.Context, m.limit, m.told.Context.Value, c.cfg.ContextTokens)
}

// Ask returns all that is known of the model once it has done what [Client.Learn] does.
func (c *Client) Ask(ctx context.Context) (openai.Facts, error) {
	err := c.Learn(ctx)
	return c.Facts(), err
}

// Learn asks the provider what the model can do, unless it has told that lately.
func (c *Client) Learn(ctx context.Context) error {
	known := c.cfg.Known
	if known.asked.Has(c.origin) {
		return nil
	}
	ctx, end := context.WithTimeout(ctx, askTimeout)
	defer end()
	info, err := c.ask(ctx)
	if err != nil {
		known.asked.Put(c.origin, struct{}{}, silentFor)
		return c.judge(ctx, err).failure
	}
	known.asked.Put(c.origin, struct{}{}, knownFor)
	told := factsOf(info)
	known.change(c, func(m *memory) { m.told = told })
	return nil
}

// factsOf reads what the provider says of a model. It may say less.
func factsOf(raw []byte) (f openai.Facts) {
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
	f.Context, f.Output = openai.NewNumber(m.Input, openai.FromServer), openai.NewNumber(m.Output, openai.FromServer)
	if s := m.Capabilities.Image.Supported; s != nil {
		f.Sees = openai.NewCan(*s, openai.FromServer)
	}
	if s := m.Capabilities.Thinking.Supported; s != nil {
		f.Reasons = openai.NewCan(*s, openai.FromServer)
	}
	return f
}

package openai

import (
	"cmp"
	"regexp"
	"strings"
	"sync"
	"time"

	"oneclaw/internal/cache"
)

// Fact is something that is known of a model, and from where. Without a From it is
// unknown.
type Fact[T any] struct {
	Value T
	From  string
}

// or is the fact, or another where it is unknown.
func (f Fact[T]) or(other Fact[T]) Fact[T] {
	if f.From == "" {
		return other
	}
	return f
}

// Can is whether a model can do something.
type Can struct{ Fact[bool] }

// Yes reports whether it is known that the model can.
func (c Can) Yes() bool { return c.From != "" && c.Value }

// No reports whether it is known that it cannot.
func (c Can) No() bool { return c.From != "" && !c.Value }

func (c Can) or(other Can) Can { return Can{c.Fact.or(other.Fact)} }

// Facts are what is known of a model.
type Facts struct {
	// Context is the size of its context, Output the longest reply, in tokens.
	Context, Output Fact[int]
	// Sees is whether it is shown pictures, Hears whether it takes sound, Reasons whether
	// it thinks before it speaks, Caches whether prompts are cached.
	Sees, Hears, Reasons, Caches Can
	// Searches is whether its provider finds deferred tools for it.
	Searches Can
	// Responses is whether it is spoken to over the Responses API.
	Responses Can
	// Cuts is set where the server drops the beginning of what is too long and says
	// nothing.
	Cuts bool
}

// or fills what is unknown with what others say.
func (f Facts) or(g Facts) Facts {
	return Facts{
		Context: f.Context.or(g.Context), Output: f.Output.or(g.Output), Sees: f.Sees.or(g.Sees), Hears: f.Hears.or(g.Hears),
		Reasons: f.Reasons.or(g.Reasons), Caches: f.Caches.or(g.Caches), Searches: f.Searches.or(g.Searches), Responses: f.Responses.or(g.Responses), Cuts: f.Cuts || g.Cuts,
	}
}

// Where facts are from.
const (
	fromSettings = "the settings"
	fromRefusal  = "a refusal"
	fromServer   = "the provider"
	fromTable    = "a table of 2026-11"
)

func can(value bool, from string) Can { return Can{Fact[bool]{value, from}} }

// number is a fact where n is positive.
func number(n float64, from string) Fact[int] {
	if n < 1 {
		return Fact[int]{}
	}
	return Fact[int]{int(min(n, maxContext)), from}
}

// Known remembers what servers have told of their models, and what they have shown by
// refusing, for all clients that share it. It may be used concurrently.
type Known struct {
	mu     sync.Mutex
	models *cache.Cache[string, memory]
	// asked are the models whose providers need not be asked now.
	asked *cache.Cache[string, struct{}]
}

type memory struct {
	quirks *quirks
	limit  int
	told   Facts
}

const (
	// maxKnown bounds the models that are remembered.
	maxKnown = 1000
	// knownFor is how long: what a server refuses may be mended.
	knownFor = 24 * time.Hour
	// silentFor is how long a provider is not asked again that did not answer.
	silentFor = 10 * time.Minute
)

// NewKnown makes an empty memory.
func NewKnown() *Known {
	return &Known{models: cache.New[string, memory](maxKnown), asked: cache.New[string, struct{}](maxKnown)}
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

// quirks are those that the server is known to have.
func (k *Known) quirks(c *Client) quirks {
	q := c.quirks
	if learned := k.get(c).quirks; learned != nil {
		q = *learned
	}
	if c.cfg.Set.Vision == "yes" {
		q.blind = false
	}
	return q
}

// learn remembers what made a server take a request.
func (k *Known) learn(c *Client, q quirks) { k.change(c, func(m *memory) { m.quirks = &q }) }

// limit remembers the size of the context that a refusal has named.
func (k *Known) limit(c *Client, tokens int) {
	if tokens > 0 {
		k.change(c, func(m *memory) { m.limit = tokens })
	}
}

// Facts is what is known of the model now, without a request, the most certain first: what the operator says,
// what the server has refused, what it tells, what the name tells.
func (c *Client) Facts() Facts {
	m := c.cfg.Known.get(c)
	q := c.cfg.Known.quirks(c)
	var set, refused Facts
	set.Context = number(float64(c.cfg.Set.Context), fromSettings)
	if c.cfg.Set.Vision != "" {
		set.Sees = can(c.cfg.Set.Vision == "yes", fromSettings)
	}
	if c.cfg.API != "" {
		set.Responses = can(q.responses, fromSettings)
	}
	refused.Context = number(float64(m.limit), fromRefusal)
	if q.blind {
		refused.Sees = can(false, fromRefusal)
	}
	if q.responses && !c.quirks.responses {
		refused.Responses = can(true, fromRefusal)
	}
	return set.or(refused).or(m.told).or(c.byName())
}

// context is the size of the context as [Client.Facts] has it. It is asked for often.
func (c *Client) context() int {
	m := c.cfg.Known.get(c)
	return cmp.Or(c.cfg.Set.Context, m.limit, m.told.Context.Value, c.cfg.ContextTokens)
}

var (
	// seeing are the families that can see, whoever's name stands before theirs.
	seeing = regexp.MustCompile(`(^|/)(ft:)?((chat)?gpt-4o|gpt-4\.1|gpt-([5-9]|[1-9][0-9])|o[34]|claude|gemini|pixtral|grok-4|llama-4|kimi-k2\.[5-9]|qwen[0-9.]*-?vl|gemma-?[34])`)
	// blind are the models that cannot. Of all others it is tried.
	blind = regexp.MustCompile(`claude-(2|instant)|gemini(-1\.0)?-pro$|-audio|-realtime|-transcribe|-tts|gpt-3\.5|gpt-oss|o[13]-mini|o1-preview|deepseek-(chat|reasoner|v3|r1)`)
	// thinking are families that reason.
	thinking = regexp.MustCompile(`(^|/)(gemini-(2\.5|[3-9])|magistral|deepseek-(v4|reasoner|r1)|kimi-k2(\.[5-9]|-thinking)|gpt-oss|qwq|grok-4)`)
)

// byName is what the name of the model and the address tell.
func (c *Client) byName() Facts {
	model := strings.ToLower(c.cfg.Model)
	f := Facts{Context: number(float64(c.cfg.ContextTokens), fromTable)}
	if blind.MatchString(model) {
		f.Sees = can(false, fromTable)
	} else if seeing.MatchString(model) {
		f.Sees = can(true, fromTable)
	}
	if reasons(model) || thinking.MatchString(model) {
		f.Reasons = can(true, fromTable)
	}
	if c.hosted || c.keeps || c.cfg.Dialect == DialectGemini {
		f.Caches = can(true, fromTable)
	}
	if c.cfg.Dialect == DialectAnthropic {
		f.Caches = can(false, fromTable)
	}
	if c.hosted {
		f.Responses = can(c.quirks.responses, fromTable)
	}
	return f
}

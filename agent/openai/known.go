package openai

import (
	"cmp"
	"regexp"
	"strings"

	"oneclaw/agent/provider"
)

// Known remembers what servers have told of their models, and what they have shown by refusing.
type Known = provider.Known[quirks]

// NewKnown makes an empty memory.
func NewKnown() *Known { return provider.NewKnown[quirks]() }

// known are the quirks that the server is known to have.
func (c *Client) known() quirks {
	q := c.quirks
	if learned := c.cfg.Known.Get(c.origin).Quirks; learned != nil {
		q = *learned
	}
	if c.cfg.Set.Vision == "yes" {
		q.blind = false
	}
	return q
}

// Facts is what is known of the model now, without a request, the most certain first: what the operator says,
// what the server has refused, what it tells, what the name tells.
func (c *Client) Facts() provider.Facts {
	m := c.cfg.Known.Get(c.origin)
	q := c.known()
	set, refused := c.cfg.Set.Facts(), provider.Facts{}
	if c.cfg.API != "" {
		set.Responses = provider.NewCan(q.responses, provider.FromSettings)
	}
	refused.Context = provider.NewNumber(float64(m.Limit), provider.FromRefusal)
	if q.blind {
		refused.Sees = provider.NewCan(false, provider.FromRefusal)
	}
	if q.responses && !c.quirks.responses {
		refused.Responses = provider.NewCan(true, provider.FromRefusal)
	}
	return set.Or(refused).Or(m.Told).Or(c.byName())
}

// context is the size of the context as [Client.Facts] has it. It is asked for often.
func (c *Client) context() int {
	m := c.cfg.Known.Get(c.origin)
	return cmp.Or(c.cfg.Set.Context, m.Limit, m.Told.Context.Value, c.cfg.ContextTokens)
}

var (
	// seeing are the families that can see, with any vendor's name before theirs.
	seeing = regexp.MustCompile(`(^|/)(ft:)?((chat)?gpt-4o|gpt-4\.1|gpt-([5-9]|[1-9][0-9])|o[34]|claude|gemini|pixtral|grok-4|llama-4|kimi-k2\.[5-9]|qwen[0-9.]*-?vl|gemma-?[34])`)
	// blind are the models that cannot. Of all others it is tried.
	blind = regexp.MustCompile(`claude-(2|instant)|gemini(-1\.0)?-pro$|-audio|-realtime|-transcribe|-tts|gpt-3\.5|gpt-oss|o[13]-mini|o1-preview|deepseek-(chat|reasoner|v3|r1)`)
	// thinking are families that reason.
	thinking = regexp.MustCompile(`(^|/)(gemini-(2\.5|[3-9])|magistral|deepseek-(v4|reasoner|r1)|kimi-k2(\.[5-9]|-thinking)|gpt-oss|qwq|grok-4)`)
)

// byName is what the name of the model and the address tell.
func (c *Client) byName() provider.Facts {
	model := strings.ToLower(c.cfg.Model)
	f := provider.Facts{Context: provider.NewNumber(float64(c.cfg.ContextTokens), provider.FromTable)}
	if blind.MatchString(model) {
		f.Sees = provider.NewCan(false, provider.FromTable)
	} else if seeing.MatchString(model) {
		f.Sees = provider.NewCan(true, provider.FromTable)
	}
	if reasons(model) || thinking.MatchString(model) {
		f.Reasons = provider.NewCan(true, provider.FromTable)
	}
	if c.hosted || c.keeps || c.cfg.Dialect == DialectGemini {
		f.Caches = provider.NewCan(true, provider.FromTable)
	}
	if c.cfg.Dialect == DialectAnthropic {
		f.Caches = provider.NewCan(false, provider.FromTable)
	}
	if c.hosted {
		f.Responses = provider.NewCan(c.quirks.responses, provider.FromTable)
	}
	return f
}

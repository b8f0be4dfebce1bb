package openai

import (
	"cmp"
	"regexp"
	"strings"

	"oneclaw/agent/provider"
)

// Known remembers what servers report of their models, and what their refusals have shown.
type Known = provider.Known[quirks]

// NewKnown returns an empty memory.
func NewKnown() *Known { return provider.NewKnown[quirks]() }

// known returns the known quirks of the server.
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

// Facts returns what is known of the model now, without a request, the most certain first: the
// operator's settings, the server's refusals, its report, the model's name.
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

// context returns the context size in [Client.Facts]. It is called often.
func (c *Client) context() int {
	m := c.cfg.Known.Get(c.origin)
	return cmp.Or(c.cfg.Set.Context, m.Limit, m.Told.Context.Value, c.cfg.ContextTokens)
}

var (
	// seeing matches families that can see, with any vendor's prefix.
	seeing = regexp.MustCompile(`(^|/)(ft:)?((chat)?gpt-4o|gpt-4\.1|gpt-([5-9]|[1-9][0-9])|o[34]|claude|gemini|pixtral|grok-4|llama-4|kimi-k2\.[5-9]|qwen[0-9.]*-?vl|gemma-?[34])`)
	// blind matches models that cannot. All others are tried.
	blind = regexp.MustCompile(`claude-(2|instant)|gemini(-1\.0)?-pro$|-audio|-realtime|-transcribe|-tts|gpt-3\.5|gpt-oss|o[13]-mini|o1-preview|deepseek-(chat|reasoner|v3|r1)`)
	// thinking matches families that reason.
	thinking = regexp.MustCompile(`(^|/)(gemini-(2\.5|[3-9])|magistral|deepseek-(v4|reasoner|r1)|kimi-k2(\.[5-9]|-thinking)|gpt-oss|qwq|grok-4)`)
)

// byName returns what the model's name and the address imply.
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

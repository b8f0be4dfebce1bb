package openai

import (
	"cmp"
	"regexp"
	"strings"

	"oneclaw/agent/provider"
)

// ModelCache holds what servers report about their models, and quirks learned from refusals.
type ModelCache = provider.ModelCache[quirks]

// NewModelCache returns an empty cache.
func NewModelCache() *ModelCache { return provider.NewModelCache[quirks]() }

// currentQuirks returns the server's quirks, including those learned from refusals. If the operator says
// that the model accepts pictures, a refusal of them does not count.
func (c *Client) currentQuirks() quirks {
	q := c.quirks
	if learned := c.cfg.ModelCache.Get(c.origin).Quirks; learned != nil {
		q = *learned
	}
	if c.cfg.Settings.Vision == "yes" {
		q.noVision = false
	}
	return q
}

// Facts returns what is known about the model, without a request. Sources override each other in this
// order: the operator's settings, the server's refusals, its report, the model's name.
func (c *Client) Facts() provider.Facts {
	m := c.cfg.ModelCache.Get(c.origin)
	q := c.currentQuirks()
	set, refused := c.cfg.Settings.Facts(), provider.Facts{}
	if c.cfg.API != "" {
		set.Responses = provider.NewAbility(q.useResponses, provider.FromSettings)
	}
	refused.ContextTokens = provider.NewNumber(float64(m.ContextLimit), provider.FromRefusal)
	if q.noVision {
		refused.Sees = provider.NewAbility(false, provider.FromRefusal)
	}
	if q.noTools {
		refused.Tools = provider.NewAbility(false, provider.FromRefusal)
	}
	if q.useResponses && !c.quirks.useResponses {
		refused.Responses = provider.NewAbility(true, provider.FromRefusal)
	}
	return set.Or(refused).Or(m.Reported).Or(c.factsByName())
}

// contextTokens returns the context size of [Client.Facts], without building the other facts.
func (c *Client) contextTokens() int {
	m := c.cfg.ModelCache.Get(c.origin)
	return cmp.Or(c.cfg.Settings.ContextTokens, m.ContextLimit, m.Reported.ContextTokens.Value, c.cfg.ContextTokens)
}

var (
	// visionFamilies matches families that accept pictures, with any vendor's prefix.
	visionFamilies = regexp.MustCompile(`(^|/)(ft:)?((chat)?gpt-4o|gpt-4\.1|gpt-([5-9]|[1-9][0-9])|o[34]|claude|gemini|pixtral|grok-4|llama-4|kimi-k2\.[5-9]|qwen[0-9.]*-?vl|gemma-?[34])`)
	// textOnlyFamilies matches models that do not accept pictures. All others are sent pictures.
	textOnlyFamilies = regexp.MustCompile(`claude-(2|instant)|gemini(-1\.0)?-pro$|-audio|-realtime|-transcribe|-tts|gpt-3\.5|gpt-oss|o[13]-mini|o1-preview|deepseek-(chat|reasoner|v3|r1)`)
	// reasoningFamilies matches the reasoning models that isReasoningModel does not know.
	reasoningFamilies = regexp.MustCompile(`(^|/)(gemini-(2\.5|[3-9])|magistral|deepseek-(v4|reasoner|r1)|kimi-k2(\.[5-9]|-thinking)|gpt-oss|qwq|grok-4)`)
)

// factsByName returns the facts implied by the model's name and the address.
func (c *Client) factsByName() provider.Facts {
	model := strings.ToLower(c.cfg.Model)
	f := provider.Facts{ContextTokens: provider.NewNumber(float64(c.cfg.ContextTokens), provider.FromTable)}
	if textOnlyFamilies.MatchString(model) {
		f.Sees = provider.NewAbility(false, provider.FromTable)
	} else if visionFamilies.MatchString(model) {
		f.Sees = provider.NewAbility(true, provider.FromTable)
	}
	if isReasoningModel(model) || reasoningFamilies.MatchString(model) {
		f.Reasons = provider.NewAbility(true, provider.FromTable)
	}
	if c.openAIHosted || c.marksCache || c.cfg.Dialect == DialectGemini {
		f.Caches = provider.NewAbility(true, provider.FromTable)
	}
	if c.cfg.Dialect == DialectAnthropic {
		f.Caches = provider.NewAbility(false, provider.FromTable)
	}
	if c.openAIHosted {
		f.Responses = provider.NewAbility(c.quirks.useResponses, provider.FromTable)
	}
	return f
}

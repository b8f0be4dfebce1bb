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

// family holds the properties that a model's name implies, as of 2026-11
// (platform.claude.com/docs/en/about-claude/models/overview).
type family struct {
	// takesTemperature and takesEffort: requests may set a temperature, a reasoning effort.
	// adaptiveThinking: the model decides how long to think. alwaysThinks: thinking has no off switch.
	takesTemperature, adaptiveThinking, takesEffort, alwaysThinks bool
	// takesBudget: requests may set a token budget for thinking.
	takesBudget bool
}

// modelVersion matches the product line and the version after the word claude, in either order.
var modelVersion = regexp.MustCompile(`claude-(?:([a-z]+)-)?([0-9]+)(?:[-.]([0-9]{1,2}))?(?:-|$|@)(?:([a-z]+))?`)

func familyOf(model string) family {
	m := modelVersion.FindStringSubmatch(strings.ToLower(model))
	if m == nil { // An alias, or a new model: assume nothing.
		return family{}
	}
	line := cmp.Or(m[1], m[4])
	at := func(major, minor int) bool {
		have := parseDigits(m[2])*100 + parseDigits(m[3])
		return have >= major*100+minor
	}
	top := line == "fable" || line == "mythos"
	return family{
		takesTemperature: !at(4, 7) && !top, adaptiveThinking: at(4, 6) || top, takesEffort: at(4, 6) || at(4, 5) && line == "opus" || top,
		alwaysThinks: at(5, 5) || top, takesBudget: !at(4, 6) && !top && (at(4, 0) || at(3, 7)),
	}
}

func parseDigits(digits string) (n int) {
	for _, d := range digits {
		n = n*10 + int(d-'0')
	}
	return n
}

// thinkingBudgets are the thinking tokens for each effort, for models that take a budget.
var thinkingBudgets = map[string]int{"minimal": 1024, "low": 2048, "medium": 6000, "high": 12_000, "xhigh": 20_000, "max": 24_000}

// effort returns the effort to ask for: the wanted one, the model's own setting, or the nearest that the
// model has; "" for a model without efforts. The Messages API has neither none nor minimal.
func (c *Client) effort(wanted string, q quirks) string {
	if !c.family.takesEffort {
		return ""
	}
	return q.refusedEfforts.Add("none").Add("minimal").Nearest(cmp.Or(wanted, c.cfg.Effort))
}

// setThinking sets the reasoning effort in the form that the model accepts. missingThinking rules out a
// thinking budget; see [encoder].
func (c *Client) setThinking(r *request, req *agent.Request, q quirks, missingThinking bool) {
	effort := cmp.Or(req.Effort, c.cfg.Effort)
	if effort == "" || effort == "none" && !c.family.takesEffort {
		return
	}
	if level := c.effort(effort, q); level != "" {
		r.OutputConfig = &outputConfig{Effort: level}
	}
	switch {
	case q.noThinking:
	case effort == "none" && !c.family.alwaysThinks:
		r.Thinking = &thinking{Type: "disabled"}
	case c.family.adaptiveThinking:
		r.Thinking = &thinking{Type: "adaptive"}
	case c.family.takesBudget && !missingThinking && q.thinkingScope != thinkingNone && thinkingBudgets[effort] < r.MaxTokens:
		r.Thinking = &thinking{Type: "enabled", BudgetTokens: thinkingBudgets[effort]}
	}
}

// ModelCache holds what the provider reports about its models, and quirks learned from refusals, for
// all clients that share it. It may be used concurrently.
type ModelCache struct {
	*provider.ModelCache[quirks]
	// thinkingScopes holds the quirk thinkingScope of each conversation.
	thinkingScopes *cache.Cache[string, int]
}

// NewModelCache returns an empty cache.
func NewModelCache() *ModelCache {
	return &ModelCache{provider.NewModelCache[quirks](), cache.New[string, int](provider.MaxModels)}
}

// quirksFor returns the known quirks of the model and of a conversation.
func (c *Client) quirksFor(conversation string) (q quirks) {
	if learned := c.cfg.ModelCache.Get(c.origin).Quirks; learned != nil {
		q = *learned
	}
	if conversation != "" {
		q.thinkingScope, _ = c.cfg.ModelCache.thinkingScopes.Get(c.origin + conversation)
	}
	if c.cfg.Settings.Vision == "yes" {
		q.noVision = false
	}
	return q
}

// saveQuirks stores quirks with which the server accepted a request.
func (c *Client) saveQuirks(conversation string, q quirks) {
	if conversation != "" {
		c.cfg.ModelCache.thinkingScopes.Put(c.origin+conversation, q.thinkingScope, provider.ModelTTL)
	}
	q.thinkingScope = thinkingAll
	c.cfg.ModelCache.SetQuirks(c.origin, q)
}

// Facts returns what is known about the model, without a request. Sources override each other in this
// order: the operator's settings, the server's refusals, its report, the model's name.
func (c *Client) Facts() provider.Facts {
	m, q := c.cfg.ModelCache.Get(c.origin), c.quirksFor("")
	set, refused, named := c.cfg.Settings.Facts(), provider.Facts{}, provider.Facts{}
	refused.ContextTokens = provider.NewNumber(float64(m.ContextLimit), provider.FromRefusal)
	if q.noVision {
		refused.Sees = provider.NewAbility(false, provider.FromRefusal)
	}
	named.ContextTokens = provider.NewNumber(float64(c.cfg.ContextTokens), provider.FromTable)
	named.Sees, named.Caches = provider.NewAbility(true, provider.FromTable), provider.NewAbility(true, provider.FromTable)
	named.Reasons = provider.NewAbility(c.family.adaptiveThinking || c.family.takesBudget, provider.FromTable)
	return set.Or(refused).Or(m.Reported).Or(named)
}

// contextTokens returns the context size of [Client.Facts], without building the other facts.
func (c *Client) contextTokens() int {
	m := c.cfg.ModelCache.Get(c.origin)
	return cmp.Or(c.cfg.Settings.ContextTokens, m.ContextLimit, m.Reported.ContextTokens.Value, c.cfg.ContextTokens)
}

// CurrentFacts calls [Client.RefreshFacts] and returns all that is known about the model.
func (c *Client) CurrentFacts(ctx context.Context) (provider.Facts, error) {
	err := c.RefreshFacts(ctx)
	return c.Facts(), err
}

// RefreshFacts asks the provider what the model can do, unless it was asked recently. An error is returned
// if the provider could not be asked; the other sources of [Client.Facts] still apply.
func (c *Client) RefreshFacts(ctx context.Context) error {
	return c.cfg.ModelCache.Refresh(ctx, c.origin, c.fetchFacts)
}

// decodeFacts decodes the provider's description of a model. Missing fields stay unknown.
func decodeFacts(raw []byte) (f provider.Facts) {
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
	f.ContextTokens, f.OutputTokens = provider.NewNumber(m.Input, provider.FromServer), provider.NewNumber(m.Output, provider.FromServer)
	if s := m.Capabilities.Image.Supported; s != nil {
		f.Sees = provider.NewAbility(*s, provider.FromServer)
	}
	if s := m.Capabilities.Thinking.Supported; s != nil {
		f.Reasons = provider.NewAbility(*s, provider.FromServer)
	}
	return f
}

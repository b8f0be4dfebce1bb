package provider

// Fact is a fact about a model and its source. It is unknown if From is empty.
type Fact[T any] struct {
	Value T
	From  string
}

// or returns f, or other if f is unknown.
func (f Fact[T]) or(other Fact[T]) Fact[T] {
	if f.From == "" {
		return other
	}
	return f
}

// Ability is the fact whether a model can do something.
type Ability struct{ Fact[bool] }

// Yes reports whether the model is known to have the ability.
func (c Ability) Yes() bool { return c.From != "" && c.Value }

// No reports whether the model is known to lack the ability.
func (c Ability) No() bool { return c.From != "" && !c.Value }

// or returns c, or other if c is unknown.
func (c Ability) or(other Ability) Ability { return Ability{c.Fact.or(other.Fact)} }

// Facts holds what is known about a model.
type Facts struct {
	// ContextTokens is the size of its context, OutputTokens the length of its longest reply.
	ContextTokens, OutputTokens Fact[int]
	// Sees: it accepts pictures. Hears: it accepts sound. Reasons: it thinks before it answers. Caches:
	// its prompts are cached.
	Sees, Hears, Reasons, Caches Ability
	// Tools: its server takes tools.
	Tools Ability
	// Responses: it is called over the Responses API.
	Responses Ability
	// TruncatesSilently is set if the server drops the beginning of a long prompt without an error.
	TruncatesSilently bool
}

// Or returns f, with unknown facts taken from g.
func (f Facts) Or(g Facts) Facts {
	return Facts{
		ContextTokens: f.ContextTokens.or(g.ContextTokens), OutputTokens: f.OutputTokens.or(g.OutputTokens), Sees: f.Sees.or(g.Sees), Hears: f.Hears.or(g.Hears),
		Reasons: f.Reasons.or(g.Reasons), Caches: f.Caches.or(g.Caches), Tools: f.Tools.or(g.Tools), Responses: f.Responses.or(g.Responses), TruncatesSilently: f.TruncatesSilently || g.TruncatesSilently,
	}
}

// Sources of facts.
const (
	FromSettings = "the settings"
	FromRefusal  = "a refusal"
	FromServer   = "the provider"
	FromTable    = "a table of 2026-11"
)

// NewAbility returns a known ability.
func NewAbility(value bool, from string) Ability { return Ability{Fact[bool]{value, from}} }

// NewNumber returns a number as a fact, which is unknown if n is less than 1.
func NewNumber(n float64, from string) Fact[int] {
	if n < 1 {
		return Fact[int]{}
	}
	return Fact[int]{int(min(n, maxContext)), from}
}

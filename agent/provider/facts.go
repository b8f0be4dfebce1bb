package provider

// Fact is a fact about a model and its source. It is unknown if From is empty.
type Fact[T any] struct {
	Value T
	From  string
}

// Or returns the fact, or other if it is unknown.
func (f Fact[T]) Or(other Fact[T]) Fact[T] {
	if f.From == "" {
		return other
	}
	return f
}

// Can says whether a model can do something.
type Can struct{ Fact[bool] }

// Yes reports whether it is known that the model can.
func (c Can) Yes() bool { return c.From != "" && c.Value }

// No reports whether it is known that the model cannot.
func (c Can) No() bool { return c.From != "" && !c.Value }

// Or returns the fact, or other if it is unknown.
func (c Can) Or(other Can) Can { return Can{c.Fact.Or(other.Fact)} }

// Facts are what is known of a model.
type Facts struct {
	// Context is the size of its context, Output the length of its longest reply, in tokens.
	Context, Output Fact[int]
	// Sees: it takes pictures. Hears: it takes sound. Reasons: it thinks before it answers. Caches: its
	// prompts are cached.
	Sees, Hears, Reasons, Caches Can
	// Searches: its provider finds deferred tools for it.
	Searches Can
	// Responses: it is called over the Responses API.
	Responses Can
	// Cuts says that the server silently drops the beginning of a prompt that is too long.
	Cuts bool
}

// Or returns f, with g's facts for those that are unknown.
func (f Facts) Or(g Facts) Facts {
	return Facts{
		Context: f.Context.Or(g.Context), Output: f.Output.Or(g.Output), Sees: f.Sees.Or(g.Sees), Hears: f.Hears.Or(g.Hears),
		Reasons: f.Reasons.Or(g.Reasons), Caches: f.Caches.Or(g.Caches), Searches: f.Searches.Or(g.Searches), Responses: f.Responses.Or(g.Responses), Cuts: f.Cuts || g.Cuts,
	}
}

// Sources of facts.
const (
	FromSettings = "the settings"
	FromRefusal  = "a refusal"
	FromServer   = "the provider"
	FromTable    = "a table of 2026-11"
)

// NewCan returns a fact about an ability.
func NewCan(value bool, from string) Can { return Can{Fact[bool]{value, from}} }

// NewNumber returns a fact, unknown unless n is positive.
func NewNumber(n float64, from string) Fact[int] {
	if n < 1 {
		return Fact[int]{}
	}
	return Fact[int]{int(min(n, maxContext)), from}
}

package provider

// Fact is something that is known of a model, and from where. Without a From it is
// unknown.
type Fact[T any] struct {
	Value T
	From  string
}

// Or is the fact, or another where it is unknown.
func (f Fact[T]) Or(other Fact[T]) Fact[T] {
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

// Or is the fact, or another where it is unknown.
func (c Can) Or(other Can) Can { return Can{c.Fact.Or(other.Fact)} }

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

// Or fills what is unknown with what others say.
func (f Facts) Or(g Facts) Facts {
	return Facts{
		Context: f.Context.Or(g.Context), Output: f.Output.Or(g.Output), Sees: f.Sees.Or(g.Sees), Hears: f.Hears.Or(g.Hears),
		Reasons: f.Reasons.Or(g.Reasons), Caches: f.Caches.Or(g.Caches), Searches: f.Searches.Or(g.Searches), Responses: f.Responses.Or(g.Responses), Cuts: f.Cuts || g.Cuts,
	}
}

// Where facts are from.
const (
	FromSettings = "the settings"
	FromRefusal  = "a refusal"
	FromServer   = "the provider"
	FromTable    = "a table of 2026-11"
)

// NewCan is a fact about what a model can do.
func NewCan(value bool, from string) Can { return Can{Fact[bool]{value, from}} }

// NewNumber is a fact where n is positive.
func NewNumber(n float64, from string) Fact[int] {
	if n < 1 {
		return Fact[int]{}
	}
	return Fact[int]{int(min(n, maxContext)), from}
}

package budget

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
)

// USD is an amount of money in billionths of a US dollar, so that sums are exact.
type USD int64

// Dollar is one US dollar.
const Dollar USD = 1_000_000_000

// Dollars returns an amount, rounded to a billionth.
func Dollars(amount float64) USD { return USD(math.Round(amount * float64(Dollar))) }

// Float returns the amount in dollars.
func (u USD) Float() float64 { return float64(u) / float64(Dollar) }

// String shows cents, and two digits of what is less than one: $0.42, $0.0031.
func (u USD) String() string {
	sign := ""
	if u < 0 {
		sign, u = "-", -u
	}
	amount, digits := u.Float(), 2
	if u > 0 && u < Dollar/100 {
		digits = min(1-int(math.Floor(math.Log10(amount))), 9)
	}
	return fmt.Sprintf("%s$%.*f", sign, digits, amount)
}

// Count writes a number with commas between its thousands.
func Count(n int64) string {
	digits := strconv.FormatInt(max(n, -n), 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	if n < 0 {
		return "-" + digits
	}
	return digits
}

// Price is what the tokens of a model cost, in US dollars per million.
type Price struct {
	// Input is for input tokens that are neither read from a cache nor written to one.
	Input float64 `yaml:"input"`
	// CachedInput is for input tokens read from the provider's cache; 0 means that they
	// cost as much as others.
	CachedInput float64 `yaml:"cached_input,omitempty"`
	// CacheWrite is for input tokens written to the cache; 0 means that they cost as
	// much as others.
	CacheWrite float64 `yaml:"cache_write,omitempty"`
	// Output is for output tokens, those of reasoning included.
	Output float64 `yaml:"output"`
}

// Tokens is what a request used.
type Tokens struct {
	// Input counts all input tokens; Cached of them were read from the provider's
	// cache, Written were written to it.
	Input, Cached, Written int64
	// Hour are those of Written that are kept for an hour, for which Anthropic asks more.
	Hour   int64
	Output int64
}

// hourPercent is what a token that is written for an hour costs beyond one that is kept for less, in
// percent of the price of input: 2 instead of 1.25 times of it.
const hourPercent = 75

// Of returns what tokens cost.
func (p Price) Of(t Tokens) USD {
	cached := min(max(t.Cached, 0), max(t.Input, 0))
	written := min(max(t.Written, 0), max(t.Input, 0)-cached)
	plain := max(t.Input, 0) - cached - written
	if p.CacheWrite > 0 {
		plain += min(max(t.Hour, 0), written) * hourPercent / 100
	}
	millionths := float64(plain)*p.Input + float64(cached)*cmp.Or(p.CachedInput, p.Input) +
		float64(written)*cmp.Or(p.CacheWrite, p.Input) + float64(max(t.Output, 0))*p.Output
	return Dollars(millionths / 1e6)
}

func (p Price) check() error {
	for _, v := range []float64{p.Input, p.CachedInput, p.CacheWrite, p.Output} {
		if v < 0 || math.IsNaN(v) || v > 1e6 {
			return fmt.Errorf("%v is no price in dollars per million tokens", v)
		}
	}
	return nil
}

// Table has prices by the name of a model as its provider calls it, such as gpt-5-mini.
// A name may have stars (qwen3-*), and may stand behind a type of provider and a slash
// (anthropic/claude-haiku-4.5), to count for that type alone.
type Table map[string]Price

// Check reports the first entry that cannot be used.
func (t Table) Check() error {
	for name, p := range t {
		if _, err := path.Match(name, ""); err != nil || strings.TrimSpace(name) == "" {
			return fmt.Errorf("prices: %q is no name of a model", name)
		}
		if err := p.check(); err != nil {
			return fmt.Errorf("prices: %s: %w", name, err)
		}
	}
	return nil
}

// For returns the price of a model at a type of provider; false where the table does not
// know it. A date at the end of the name, what a router puts in front of it and the
// difference of a dot and a dash do not matter. The most exact entry counts.
func (t Table) For(provider, model string) (Price, bool) {
	name, prefix := normal(model), normal(provider)+"/"
	names := append(make([]string, 0, 4), prefix+name, name)
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		names = append(names, prefix+name[i+1:], name[i+1:])
	}
	var found Price
	best := -1
	for pattern, p := range t {
		pattern = normal(pattern)
		for i, n := range names {
			if rank := rank(pattern, n) - i; rank > best {
				best, found = rank, p
			}
		}
	}
	return found, best >= 0
}

// Like is [Table.For] for whatever type of provider. For a model that the table does not
// know it returns the first price, in the order of names, among those whose names begin
// most like its own: a new version costs about what its family does. The zero value
// stands for a model of no family.
func (t Table) Like(model string) Price {
	p, ok := t.For("", model)
	name := normal(model[strings.LastIndexByte(model, '/')+1:])
	for cut := len(name); !ok && cut > 0; cut = strings.LastIndexByte(name[:cut], '-') {
		first := ""
		for other := range t {
			if (!ok || other < first) && begins(normal(other), name[:cut]) {
				p, ok, first = t[other], true, other
			}
		}
	}
	return p
}

// begins reports whether a name begins with another, up to its end or a dash.
func begins(name, with string) bool {
	rest, ok := strings.CutPrefix(name, with)
	return ok && (rest == "" || rest[0] == '-')
}

// rank says how well a pattern fits a name; a negative number if it does not.
func rank(pattern, name string) int {
	if pattern == name {
		return 1 << 20
	}
	if !strings.Contains(pattern, "*") {
		return -1 << 20
	}
	if ok, err := path.Match(pattern, name); !ok || err != nil {
		return -1 << 20
	}
	return len(pattern) * 8
}

// dates are the endings of the names of fixed versions; a 0 stands for any digit.
var dates = [...]string{"-00000000", "-0000-00-00", "-latest"}

// normal is how names are compared. It allocates nothing for a name that is written so.
func normal(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, date := range dates {
		if beginning := len(name) - len(date); beginning >= 0 && shaped(name[beginning:], date) {
			name = name[:beginning]
			break
		}
	}
	return strings.ReplaceAll(name, ".", "-")
}

// shaped reports whether an ending is one of [dates], which is as long.
func shaped(ending, date string) bool {
	for i := range len(date) {
		digit := date[i] == '0' && ending[i] >= '0' && ending[i] <= '9'
		if !digit && ending[i] != date[i] {
			return false
		}
	}
	return true
}

// With returns the table with the entries of another in the place of its own.
func (t Table) With(other Table) Table {
	all := make(Table, len(t)+len(other))
	for _, table := range []Table{t, other} {
		for name, p := range table {
			all[normal(name)] = p
		}
	}
	return all
}

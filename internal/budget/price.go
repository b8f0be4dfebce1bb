package budget

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
)

// USD is an amount in billionths of a US dollar, so that sums are exact.
type USD int64

// Dollar is one US dollar.
const Dollar USD = 1_000_000_000

// Dollars returns an amount, rounded to a billionth.
func Dollars(amount float64) USD { return USD(math.Round(amount * float64(Dollar))) }

// float returns the amount in dollars.
func (u USD) float() float64 { return float64(u) / float64(Dollar) }

// String formats the amount to the cent, and below one cent to two significant digits: $0.42, $0.0031.
func (u USD) String() string {
	sign := ""
	if u < 0 {
		sign, u = "-", -u
	}
	amount, digits := u.float(), 2
	if u > 0 && u < Dollar/100 {
		digits = min(1-int(math.Floor(math.Log10(amount))), 9)
	}
	return fmt.Sprintf("%s$%.*f", sign, digits, amount)
}

// FormatCount formats a number with thousands separators.
func FormatCount(n int64) string {
	digits := strconv.FormatInt(max(n, -n), 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	if n < 0 {
		return "-" + digits
	}
	return digits
}

// Price is the price of a model's tokens, in US dollars per million.
type Price struct {
	// Input is for input tokens that are neither read from a cache nor written to one.
	Input float64 `yaml:"input"`
	// CachedInput is for input tokens read from the provider's cache; 0 means Input.
	CachedInput float64 `yaml:"cached_input,omitempty"`
	// CacheWrite is for input tokens written to the cache; 0 means Input.
	CacheWrite float64 `yaml:"cache_write,omitempty"`
	// Output is for output tokens, including reasoning.
	Output float64 `yaml:"output"`
}

// Tokens is the usage of a request.
type Tokens struct {
	// Input counts all input tokens, of which Cached were read from the provider's cache and
	// Written written to it.
	Input, Cached, Written int64
	// WrittenForHour counts the Written tokens that Anthropic keeps for an hour, at a higher price.
	WrittenForHour int64
	Output         int64
}

// hourPercent is the surcharge for a token cached for an hour, in percent of the input price: twice
// that price instead of 1.25 times.
const hourPercent = 75

// Cost returns the cost of tokens.
func (p Price) Cost(t Tokens) USD {
	cached := min(max(t.Cached, 0), max(t.Input, 0))
	written := min(max(t.Written, 0), max(t.Input, 0)-cached)
	plain := max(t.Input, 0) - cached - written
	if p.CacheWrite > 0 {
		plain += min(max(t.WrittenForHour, 0), written) * hourPercent / 100
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

// PriceTable has the prices of models by their names at the provider, such as gpt-5-mini. A name may
// contain stars (qwen3-*). It may follow a type of provider and a slash
// (anthropic/claude-haiku-4.5) to apply only to that type.
type PriceTable map[string]Price

// Check returns an error for the first invalid entry.
func (t PriceTable) Check() error {
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

// Lookup returns the price of a model at a type of provider; false if unknown. It ignores a date at
// the end of the name, a router's prefix, and the difference between dot and dash. The most
// specific entry counts.
func (t PriceTable) Lookup(provider, model string) (Price, bool) {
	name, prefix := normalize(model), normalize(provider)+"/"
	names := append(make([]string, 0, 4), prefix+name, name)
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		names = append(names, prefix+name[i+1:], name[i+1:])
	}
	var found Price
	best := -1
	for pattern, p := range t {
		pattern = normalize(pattern)
		for i, n := range names {
			if rank := rank(pattern, n) - i; rank > best {
				best, found = rank, p
			}
		}
	}
	return found, best >= 0
}

// LookupSimilar is [PriceTable.Lookup] for any type of provider. For an unknown model it returns the
// first price, in the order of names, among those with the longest common prefix: a new version costs
// about as much as its family. For a model of no family it returns the zero value.
func (t PriceTable) LookupSimilar(model string) Price {
	p, ok := t.Lookup("", model)
	name := normalize(model[strings.LastIndexByte(model, '/')+1:])
	for cut := len(name); !ok && cut > 0; cut = strings.LastIndexByte(name[:cut], '-') {
		first := ""
		for other := range t {
			if (!ok || other < first) && hasNamePrefix(normalize(other), name[:cut]) {
				p, ok, first = t[other], true, other
			}
		}
	}
	return p
}

// hasNamePrefix reports whether a name equals another one, or begins with it and a dash.
func hasNamePrefix(name, with string) bool {
	rest, ok := strings.CutPrefix(name, with)
	return ok && (rest == "" || rest[0] == '-')
}

// rank returns how specific a matching pattern is; negative if it does not match.
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

// versionSuffixes are the suffixes of fixed versions; 0 stands for any digit.
var versionSuffixes = [...]string{"-00000000", "-0000-00-00", "-latest"}

// normalize makes names comparable. It does not allocate if the name is already normalized.
func normalize(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, date := range versionSuffixes {
		if beginning := len(name) - len(date); beginning >= 0 && hasDateForm(name[beginning:], date) {
			name = name[:beginning]
			break
		}
	}
	return strings.ReplaceAll(name, ".", "-")
}

// hasDateForm reports whether a suffix matches one of [versionSuffixes], which has the same length.
func hasDateForm(ending, date string) bool {
	for i := range len(date) {
		digit := date[i] == '0' && ending[i] >= '0' && ending[i] <= '9'
		if !digit && ending[i] != date[i] {
			return false
		}
	}
	return true
}

// With returns the table with the entries of another one, which take precedence.
func (t PriceTable) With(other PriceTable) PriceTable {
	all := make(PriceTable, len(t)+len(other))
	for _, table := range []PriceTable{t, other} {
		for name, p := range table {
			all[normalize(name)] = p
		}
	}
	return all
}

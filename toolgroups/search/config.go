package search

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Mode says whether tools are deferred.
type Mode string

// The modes.
const (
	// ModeAuto defers where the schemas are large for the model's context.
	ModeAuto Mode = "auto"
	// ModeOn defers whatever can be.
	ModeOn Mode = "on"
	// ModeOff defers nothing.
	ModeOff Mode = "off"
)

// Bounds and defaults of [Config].
const (
	DefaultThresholdPct = 10
	DefaultSearchLimit  = 5
	DefaultMaxLimit     = 20
	MaxSearchLimit      = 50
	// UnknownContextTokens is the size of schemas from which auto defers where the
	// size of the model's context is not known.
	UnknownContextTokens = 20_000
)

// Config is the block tools.tool_search. Make it with [DefaultConfig], [Parse] or
// from YAML: the zero value is not the default.
type Config struct {
	Enabled Mode `yaml:"enabled"`
	// ThresholdPct is from which share of the model's context on auto defers.
	ThresholdPct int `yaml:"threshold_pct"`
	// SearchDefaultLimit is how many hits a search gives that asks for no number,
	// MaxSearchLimit how many it may ask for.
	SearchDefaultLimit int `yaml:"search_default_limit"`
	MaxSearchLimit     int `yaml:"max_search_limit"`
	// Embeddings names a model of vectors as provider_id/model_id, to rank by meaning
	// beside words. Empty means words alone.
	Embeddings string `yaml:"embeddings,omitempty"`
	// Warnings say what was wrong with the values given and what is used instead.
	Warnings []string `yaml:"-"`
}

// DefaultConfig returns what holds where nothing is configured.
func DefaultConfig() Config {
	return Config{
		Enabled: ModeAuto, ThresholdPct: DefaultThresholdPct,
		SearchDefaultLimit: DefaultSearchLimit, MaxSearchLimit: DefaultMaxLimit,
	}
}

// unset reports whether nothing was given at all.
func (c Config) unset() bool { return c.Enabled == "" && c.SearchDefaultLimit == 0 }

// configKeys are the keys of the block.
func configKeys() []string {
	return []string{"enabled", "threshold_pct", "search_default_limit", "max_search_limit", "embeddings"}
}

// Parse reads the block as a YAML or JSON decoder yields it: nothing, a boolean
// (true is auto, false is off), a mode as a string, or a map. What is out of range
// is clamped, what cannot be read is replaced by its default, each with a warning. A key
// that is not known is not looked at.
func Parse(v any) Config {
	c := DefaultConfig()
	block, ok := v.(map[string]any)
	if !ok {
		c.Enabled = c.mode("tool_search", v)
		return c
	}
	c.Enabled = c.mode("tool_search.enabled", block["enabled"])
	c.ThresholdPct = c.number(block, "threshold_pct", DefaultThresholdPct, 0, 100)
	c.MaxSearchLimit = c.number(block, "max_search_limit", DefaultMaxLimit, 1, MaxSearchLimit)
	c.Embeddings = c.model(block["embeddings"])
	c.SearchDefaultLimit = c.number(block, "search_default_limit", min(DefaultSearchLimit, c.MaxSearchLimit), 1, c.MaxSearchLimit)
	return c
}

// UnmarshalYAML reads the block as [Parse] does, and takes an unknown key for an
// error, as it is everywhere else in the file.
func (c *Config) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			if key := n.Content[i]; !slices.Contains(configKeys(), key.Value) {
				return fmt.Errorf("line %d: unknown key %q, known are %s", key.Line, key.Value, strings.Join(configKeys(), ", "))
			}
		}
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return err
	}
	*c = Parse(v)
	return nil
}

// MarshalYAML writes the block as it is read, the defaults where nothing is set.
func (c Config) MarshalYAML() (any, error) {
	if c.unset() {
		c = DefaultConfig()
	}
	type plain Config // without this method
	return plain(c), nil
}

func (c *Config) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// mode reads the switch: true means auto, as a block would; the words for yes mean on.
func (c *Config) mode(key string, v any) Mode {
	switch x := v.(type) {
	case nil:
		return ModeAuto
	case bool:
		if x {
			return ModeAuto
		}
		return ModeOff
	}
	text := strings.ToLower(strings.TrimSpace(fmt.Sprint(v)))
	switch text {
	case "", string(ModeAuto):
		return ModeAuto
	case string(ModeOn), "true", "yes", "1":
		return ModeOn
	case string(ModeOff), "false", "no", "0":
		return ModeOff
	}
	c.warn("%s is %q, not auto, on or off; auto is used", key, clip(text, maxParamName))
	return ModeAuto
}

// model reads the name of a model of vectors.
func (c *Config) model(v any) string {
	if v == nil {
		return ""
	}
	name := strings.TrimSpace(fmt.Sprint(v))
	if provider, model, ok := strings.Cut(name, "/"); name != "" && (!ok || provider == "" || model == "") {
		c.warn("tool_search.embeddings is %q, not PROVIDER/MODEL; words alone are used", clip(name, maxParamName))
		return ""
	}
	return name
}

// number reads a whole number and clamps it.
func (c *Config) number(block map[string]any, key string, byDefault, low, high int) int {
	v, ok := block[key]
	if !ok || v == nil {
		return byDefault
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(fmt.Sprint(v)), 64)
	if err != nil || math.IsNaN(n) {
		c.warn("tool_search.%s is %q, not a number; %d is used", key, clip(fmt.Sprint(v), maxParamName), byDefault)
		return byDefault
	}
	clamped := int(math.Round(min(max(n, float64(low)), float64(high))))
	if float64(clamped) != n {
		c.warn("tool_search.%s is %v, not a whole number between %d and %d; %d is used", key, v, low, high, clamped)
	}
	return clamped
}

// Decision says whether tools are deferred, and why.
type Decision struct {
	Active bool
	Mode   Mode
	// Tools is how many could be deferred, Tokens what their schemas cost.
	Tools  int
	Tokens int
	// Context is the size of the model's context, 0 if unknown; Threshold the number
	// of tokens from which auto defers.
	Context   int
	Threshold int
}

// LogValue shows the decision with the numbers it rests on.
func (d Decision) LogValue() slog.Value {
	return slog.GroupValue(slog.Bool("active", d.Active), slog.String("mode", string(d.Mode)), slog.Int("tools", d.Tools),
		slog.Int("tokens", d.Tokens), slog.Int("threshold", d.Threshold), slog.Int("context", d.Context))
}

// Decide says whether so many deferrable tools, of so many tokens, are to be replaced by
// the bridge for a model with a context of contextTokens (0 if unknown).
func (c Config) Decide(tools, tokens, contextTokens int) Decision {
	d := Decision{Mode: c.Enabled, Tools: tools, Tokens: tokens, Context: max(contextTokens, 0), Threshold: UnknownContextTokens}
	if contextTokens > 0 {
		d.Threshold = int((int64(contextTokens)*int64(c.ThresholdPct) + 99) / 100)
	}
	switch {
	case tools == 0 || c.Enabled == ModeOff:
	case c.Enabled == ModeOn:
		d.Active = true
	default:
		d.Active = tokens >= d.Threshold
	}
	return d
}

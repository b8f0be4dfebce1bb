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

// DeferMode determines when tools are deferred.
type DeferMode string

// The modes.
const (
	// DeferAuto defers if the schemas are large for the model's context.
	DeferAuto DeferMode = "auto"
	// DeferOn defers every tool that can be.
	DeferOn DeferMode = "on"
	// DeferOff defers nothing.
	DeferOff DeferMode = "off"
)

// Bounds and defaults of [Config].
const (
	defaultThresholdPct = 10
	defaultSearchLimit  = 5
	defaultMaxLimit     = 20
	highestMaxLimit     = 50
	// unknownContextTokens is the size of all schemas, in tokens, from which DeferAuto defers if the
	// size of the model's context is unknown.
	unknownContextTokens = 20_000
)

// Config is the block tools.tool_search. Get it from [DefaultConfig], [parseConfig] or YAML: the zero
// value means that the block is missing.
type Config struct {
	Enabled DeferMode `yaml:"enabled"`
	// ThresholdPct is the size of all schemas, in percent of the context, from which DeferAuto defers.
	ThresholdPct int `yaml:"threshold_pct"`
	// SearchDefaultLimit is the default number of hits of a search. MaxSearchLimit is the highest
	// number that a search can request.
	SearchDefaultLimit int `yaml:"search_default_limit"`
	MaxSearchLimit     int `yaml:"max_search_limit"`
	// EmbeddingModel is the embedding model, as provider_id/model_id, for a ranking by words and meaning.
	// If empty, tools are ranked by words alone.
	EmbeddingModel string `yaml:"embeddings,omitempty"`
	// Warnings describe the invalid values and the values used instead.
	Warnings []string `yaml:"-"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Enabled: DeferAuto, ThresholdPct: defaultThresholdPct,
		SearchDefaultLimit: defaultSearchLimit, MaxSearchLimit: defaultMaxLimit,
	}
}

// isUnset reports whether the block is missing.
func (c Config) isUnset() bool { return c.Enabled == "" && c.SearchDefaultLimit == 0 }

// configKeys are the keys of the block.
func configKeys() []string {
	return []string{"enabled", "threshold_pct", "search_default_limit", "max_search_limit", "embeddings", "learn"}
}

// parseConfig reads the block as a YAML or JSON decoder yields it: nil, a boolean (true is auto, false
// is off), a mode as a string, or a map. Values out of range are clamped and unreadable ones
// replaced by defaults, each with a warning. Unknown keys are ignored.
func parseConfig(v any) Config {
	c := DefaultConfig()
	block, ok := v.(map[string]any)
	if !ok {
		c.Enabled = c.parseMode("tool_search", v)
		return c
	}
	c.Enabled = c.parseMode("tool_search.enabled", block["enabled"])
	c.ThresholdPct = c.parseNumber(block, "threshold_pct", defaultThresholdPct, 0, 100)
	c.MaxSearchLimit = c.parseNumber(block, "max_search_limit", defaultMaxLimit, 1, highestMaxLimit)
	c.EmbeddingModel = c.parseModel(block["embeddings"])
	if _, ok := block["learn"]; ok {
		c.warn("tool_search.learn is gone: searches teach nothing any more; remove it")
	}
	c.SearchDefaultLimit = c.parseNumber(block, "search_default_limit", min(defaultSearchLimit, c.MaxSearchLimit), 1, c.MaxSearchLimit)
	return c
}

// UnmarshalYAML reads the block as [parseConfig] does, but refuses unknown keys, like the rest of the
// configuration.
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
	*c = parseConfig(v)
	return nil
}

// MarshalYAML encodes the block. A missing block is encoded as the defaults.
func (c Config) MarshalYAML() (any, error) {
	if c.isUnset() {
		c = DefaultConfig()
	}
	type plain Config // without this method
	return plain(c), nil
}

func (c *Config) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// parseMode parses the switch. The boolean true means auto; the strings "true", "yes" and "1" mean on.
func (c *Config) parseMode(key string, v any) DeferMode {
	switch x := v.(type) {
	case nil:
		return DeferAuto
	case bool:
		if x {
			return DeferAuto
		}
		return DeferOff
	}
	text := strings.ToLower(strings.TrimSpace(fmt.Sprint(v)))
	switch text {
	case "", string(DeferAuto):
		return DeferAuto
	case string(DeferOn), "true", "yes", "1":
		return DeferOn
	case string(DeferOff), "false", "no", "0":
		return DeferOff
	}
	c.warn("%s is %q, not auto, on or off; auto is used", key, clipLine(text, maxParamName))
	return DeferAuto
}

// parseModel parses the name of an embedding model.
func (c *Config) parseModel(v any) string {
	if v == nil {
		return ""
	}
	name := strings.TrimSpace(fmt.Sprint(v))
	if provider, model, ok := strings.Cut(name, "/"); name != "" && (!ok || provider == "" || model == "") {
		c.warn("tool_search.embeddings is %q, not PROVIDER/MODEL; words alone are used", clipLine(name, maxParamName))
		return ""
	}
	return name
}

// parseNumber parses a whole number and clamps it to the range from low to high.
func (c *Config) parseNumber(block map[string]any, key string, byDefault, low, high int) int {
	v, ok := block[key]
	if !ok || v == nil {
		return byDefault
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(fmt.Sprint(v)), 64)
	if err != nil || math.IsNaN(n) {
		c.warn("tool_search.%s is %q, not a number; %d is used", key, clipLine(fmt.Sprint(v), maxParamName), byDefault)
		return byDefault
	}
	clamped := int(math.Round(min(max(n, float64(low)), float64(high))))
	if float64(clamped) != n {
		c.warn("tool_search.%s is %v, not a whole number between %d and %d; %d is used", key, v, low, high, clamped)
	}
	return clamped
}

// decision is the result of [Config.decide], with its inputs.
type decision struct {
	// Active is true if tools are deferred.
	Active bool
	Mode   DeferMode
	// ToolCount is the number of deferrable tools. Tokens is the estimated size of their schemas.
	ToolCount int
	Tokens    int
	// ContextTokens is the size of the model's context, 0 if unknown. Threshold is the number of
	// tokens from which DeferAuto defers.
	ContextTokens int
	Threshold     int
}

// LogValue implements [slog.LogValuer].
func (d decision) LogValue() slog.Value {
	return slog.GroupValue(slog.Bool("active", d.Active), slog.String("mode", string(d.Mode)), slog.Int("tools", d.ToolCount),
		slog.Int("tokens", d.Tokens), slog.Int("threshold", d.Threshold), slog.Int("context", d.ContextTokens))
}

// routing returns the routing that [RoutingAuto] stands for.
func (d decision) routing() Routing {
	switch {
	case d.Active:
		return RoutingSearch
	case d.Mode == DeferOff:
		return RoutingGroups
	}
	return RoutingAll
}

// decide decides whether the bridge replaces the deferrable tools. tools is their number, tokens
// the size of their schemas, and contextTokens the size of the model's context (0 if unknown).
func (c Config) decide(tools, tokens, contextTokens int) decision {
	d := decision{Mode: c.Enabled, ToolCount: tools, Tokens: tokens, ContextTokens: max(contextTokens, 0), Threshold: unknownContextTokens}
	if contextTokens > 0 {
		d.Threshold = int((int64(contextTokens)*int64(c.ThresholdPct) + 99) / 100)
	}
	switch {
	case tools == 0 || c.Enabled == DeferOff:
	case c.Enabled == DeferOn:
		d.Active = true
	default:
		d.Active = tokens >= d.Threshold
	}
	return d
}

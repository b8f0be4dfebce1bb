package budget_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oneclaw/internal/budget"
)

func TestFor(t *testing.T) {
	table := budget.PriceTable{
		"gpt-5":                     {Input: 1},
		"gpt-5-mini":                {Input: 2},
		"qwen3-*":                   {Input: 3},
		"qwen3-coder-*":             {Input: 4},
		"anthropic/claude-opus-4.5": {Input: 5},
		"claude-opus-4.5":           {Input: 6},
		"openai/qwen3-*":            {Input: 7},
	}
	for _, c := range []struct {
		provider, model string
		want            float64
	}{
		{"OPENAI", "gpt-5", 1},
		{"OPENAI", "GPT-5-mini", 2},
		{"OPENAI", "gpt-5-mini-2025-08-07", 2},
		{"OPENAI", "openai/gpt-5-mini", 2},
		{"OPENAI", "gpt-5-mini-latest", 2},
		{"OPENAI", "gpt-5-mini-20250807", 2},
		{"OPENAI", "gpt-5-mini-2025-0807", 0},
		{"OPENAI", "gpt-5-mini2025-08-07", 0},
		{"OPENAI", "-latest", 0},
		{"GEMINI", "qwen3-coder-plus", 4},
		{"GEMINI", "qwen3-max", 3},
		{"OPENAI", "qwen3-max", 7},
		{"ANTHROPIC", "claude-opus-4-5-20251101", 5},
		{"OPENAI", "claude-opus-4-5", 6},
		{"OPENAI", "anthropic/claude-opus-4.5", 5},
		{"OPENAI", "gpt-5-pro", 0},
		{"OPENAI", "gpt-5.9", 0},
		{"OPENAI", "llama", 0},
		{"OPENAI", "", 0},
	} {
		got, known := table.Lookup(c.provider, c.model)
		if got.Input != c.want || known != (c.want != 0) {
			t.Errorf("For(%q, %q) = %v, %v, want %v", c.provider, c.model, got.Input, known, c.want)
		}
	}
}

func TestLike(t *testing.T) {
	table := budget.PriceTable{"gpt-5": {Input: 1}, "gpt-5-pro": {Input: 2}, "claude-opus-5.5": {Input: 3}, "claude-opus-4.5": {Input: 4}}
	for model, want := range map[string]float64{
		"gpt-5-pro": 2, "gpt-5.9": 1, "openai/GPT-5.9-mini": 1, "claude-opus-5.7": 3, "claude-sonnet-6": 4, "claudette": 0, "llama": 0, "": 0,
	} {
		if got := table.LookupSimilar(model).Input; got != want {
			t.Errorf("Like(%q) = %v, want %v", model, got, want)
		}
	}
}

func TestOf(t *testing.T) {
	p := budget.Price{Input: 2, CachedInput: 0.2, CacheWrite: 2.5, Output: 10}
	for _, c := range []struct {
		tokens budget.Tokens
		price  budget.Price
		want   string
	}{
		{budget.Tokens{Input: 1_000_000, Output: 100_000}, p, "$3.00"},
		{budget.Tokens{Input: 1_000_000, Cached: 500_000, Written: 200_000}, p, "$1.20"},
		{budget.Tokens{Input: 1_000_000, Cached: 500_000}, budget.Price{Input: 2}, "$2.00"},
		{budget.Tokens{Input: 10, Cached: 50, Written: 50}, p, "$0.0000020"},
		{budget.Tokens{Input: 1500, Output: 10}, p, "$0.0031"},
		{budget.Tokens{}, p, "$0.00"},
	} {
		if got := c.price.Cost(c.tokens).String(); got != c.want {
			t.Errorf("%+v costs %s, want %s", c.tokens, got, c.want)
		}
	}
}

func TestDefaultsCanBeUsed(t *testing.T) {
	table := budget.KnownPrices()
	if err := table.Check(); err != nil {
		t.Fatal(err)
	}
	for name := range table {
		p, known := table.Lookup("OPENAI", name)
		if !known || p != table[name] || p.Input <= 0 || p.Output <= p.Input || p.CachedInput >= p.Input {
			t.Errorf("%s has price %+v", name, p)
		}
	}
	if _, known := table.Lookup("OPENAI", "gpt-5-mini"); !known {
		t.Error("the default model has no price")
	}
	own := table.With(budget.PriceTable{"GPT-5-mini": {Input: 9}, "mine": {Input: 8}})
	if p, _ := own.Lookup("OPENAI", "gpt-5-mini"); p.Input != 9 || own["mine"].Input != 8 || len(own) != len(table)+1 {
		t.Errorf("own entries do not count: %+v", own)
	}
}

func TestHowLongAProviderCachesAPrompt(t *testing.T) {
	table := budget.KnownPrices().With(budget.PriceTable{"house-model": {Input: 2, CachedInput: 0.5}, "plain-model": {Input: 2}})
	for model, want := range map[string]time.Duration{
		"gpt-4o": 24 * time.Hour, "gpt-5": 24 * time.Hour, "gpt-5-mini-2025-08-07": 24 * time.Hour, "gpt-5.5": 24 * time.Hour,
		"gpt-5.6": 0, "openai/GPT-5.6-luna": 0, "gpt-5.9": 0, "gpt-6-sol": 0, "gpt-6.1-terra": 0,
		"claude-haiku-4.5": 5 * time.Minute, "anthropic/claude-opus-5.5": 5 * time.Minute, "gemini-3.8-flash": 24 * time.Hour,
		"house-model": 24 * time.Hour, "claude-of-the-future": 5 * time.Minute,
	} {
		if got, known := table.CacheTTL(model); got != want || known != (want > 0) {
			t.Errorf("CacheTTL(%q) = %v, %t, want %v", model, got, known, want)
		}
	}
	for _, model := range []string{"plain-model", "gpt-5.5-pro", "nobody-knows"} {
		if got, known := table.CacheTTL(model); got != 0 || !known {
			t.Errorf("CacheTTL(%q) = %v, %t of a model without a cache", model, got, known)
		}
	}
}

func TestCheckNamesTheEntry(t *testing.T) {
	for _, table := range []budget.PriceTable{{"": {}}, {"x[": {}}, {"x": {Input: -1}}} {
		if err := table.Check(); err == nil || !strings.HasPrefix(err.Error(), "prices: ") {
			t.Errorf("%v: %v", table, err)
		}
	}
}

// BenchmarkLookup finds the prices of a model, as happens several times a message.
func BenchmarkLookup(b *testing.B) {
	table := budget.KnownPrices()
	for name, model := range map[string]string{"known": "gpt-5-mini", "dated": "openai/gpt-5-mini-2025-08-07", "family": "gpt-5.9-mini", "unknown": "llama"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				table.Lookup("OPENAI", model)
				table.LookupSimilar(model)
			}
		})
	}
}

// More tokens never cost less, and reading from a cache never more than not.
func TestOfGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<40)
		p := budget.Price{
			Input: rapid.Float64Range(0.01, 50).Draw(t, "input"), Output: rapid.Float64Range(0, 200).Draw(t, "output"),
		}
		p.CachedInput = p.Input / 10
		a := budget.Tokens{Input: n.Draw(t, "in"), Output: n.Draw(t, "out")}
		b := a
		b.Input += n.Draw(t, "more")
		c := a
		c.Cached = n.Draw(t, "cached")
		if p.Cost(b) < p.Cost(a) || p.Cost(c) > p.Cost(a) || p.Cost(a) < 0 {
			t.Fatalf("%v %v %v", p.Cost(a), p.Cost(b), p.Cost(c))
		}
	})
}

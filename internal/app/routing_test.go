package app

import (
	"math"
	"testing"

	"oneclaw/internal/budget"
	"oneclaw/internal/config"
)

// What the routing decides by follows the prices that an operator has set.
func TestCachePrices(t *testing.T) {
	cfg := config.Default()
	cfg.Prices = budget.PriceTable{
		"house-model": {Input: 2, CachedInput: 0.5, CacheWrite: 3, Output: 8},
		"gpt-4.1":     {Input: 2, CachedInput: 1, Output: 8},
		"plain-model": {Input: 2, Output: 8},
	}
	prices := CachePrices(cfg)
	for model, want := range map[string][2]float64{
		"house-model": {1.5, 0.25}, "gpt-4.1": {1, 0.5}, "plain-model": {1, 1}, "nobody-knows": {1, 1},
		"gpt-5-mini": {1, 0.1}, "openai/gpt-5-mini": {1, 0.1}, "claude-sonnet-5": {1.25, 0.1}, "claude-of-the-future": {1.25, 0.1},
		"deepseek-v4-flash": {1, 0.02},
	} {
		got := prices(model)
		if math.Abs(got.Write-want[0]) > 1e-9 || math.Abs(got.Read-want[1]) > 1e-9 {
			t.Errorf("%s: %+v, want %v", model, got, want)
		}
	}
}

package budget

import (
	"path"
	"strings"
	"time"
)

// KnownPrices returns list prices of common models in dollars per million tokens, as of November
// 2026. Providers change them without notice. They are for standard requests. If a price depends on
// the hour, the table has the higher one.
func KnownPrices() PriceTable { return openAIPrices().With(otherPrices()) }

// openAIPrices is from developers.openai.com/api/docs/pricing.
func openAIPrices() PriceTable {
	return PriceTable{
		"gpt-4o":        {Input: 2.5, CachedInput: 1.25, Output: 10},
		"gpt-4o-mini":   {Input: 0.15, CachedInput: 0.075, Output: 0.6},
		"gpt-4.1":       {Input: 2, CachedInput: 0.5, Output: 8},
		"gpt-4.1-mini":  {Input: 0.4, CachedInput: 0.1, Output: 1.6},
		"gpt-4.1-nano":  {Input: 0.1, CachedInput: 0.025, Output: 0.4},
		"gpt-5":         {Input: 1.25, CachedInput: 0.125, Output: 10},
		"gpt-5-mini":    {Input: 0.25, CachedInput: 0.025, Output: 2},
		"gpt-5-nano":    {Input: 0.05, CachedInput: 0.005, Output: 0.4},
		"gpt-5-pro":     {Input: 15, Output: 120},
		"gpt-5.1":       {Input: 1.25, CachedInput: 0.125, Output: 10},
		"gpt-5.2":       {Input: 1.75, CachedInput: 0.175, Output: 14},
		"gpt-5.2-pro":   {Input: 21, Output: 168},
		"gpt-5.4":       {Input: 2.5, CachedInput: 0.25, Output: 15},
		"gpt-5.4-mini":  {Input: 0.75, CachedInput: 0.075, Output: 4.5},
		"gpt-5.4-nano":  {Input: 0.2, CachedInput: 0.02, Output: 1.25},
		"gpt-5.4-pro":   {Input: 30, Output: 180},
		"gpt-5.5":       {Input: 5, CachedInput: 0.5, Output: 30},
		"gpt-5.5-pro":   {Input: 30, Output: 180},
		"gpt-5.6":       {Input: 4, CachedInput: 0.4, CacheWrite: 5, Output: 20},
		"gpt-5.6-sol":   {Input: 4, CachedInput: 0.4, CacheWrite: 5, Output: 20},
		"gpt-5.6-terra": {Input: 2, CachedInput: 0.2, CacheWrite: 2.5, Output: 12},
		"gpt-5.6-luna":  {Input: 0.2, CachedInput: 0.02, CacheWrite: 0.25, Output: 1.2},
		"gpt-6-astra":   {Input: 10, CachedInput: 1, CacheWrite: 12.5, Output: 50},
		"gpt-6-sol":     {Input: 2, CachedInput: 0.2, CacheWrite: 2.5, Output: 10},
		"gpt-6-luna":    {Input: 0.1, CachedInput: 0.01, CacheWrite: 0.125, Output: 0.5},
		"gpt-6.1-sol":   {Input: 2, CachedInput: 0.1, CacheWrite: 2.5, Output: 10},
		"gpt-6.1-terra": {Input: 1, CachedInput: 0.05, CacheWrite: 1.25, Output: 5},

		// For models that make pictures, Input is the price of a picture to change; text costs less.
		"gpt-image-2.5-*":  {Input: 8, CachedInput: 2, Output: 30},
		"gpt-image-2":      {Input: 8, CachedInput: 2, Output: 30},
		"gpt-image-1.5":    {Input: 8, CachedInput: 2, Output: 32},
		"gpt-image-1-mini": {Input: 2.5, CachedInput: 0.25, Output: 8},

		// The bot estimates the tokens of speech. The older models cost $15 and $30 a million characters.
		"gpt-4o-mini-tts": {Input: 0.6, Output: 12},
		"tts-1":           {Input: 6, Output: 10.125},
		"tts-1-hd":        {Input: 12, Output: 20.25},
	}
}

// otherPrices is from platform.claude.com/docs/en/about-claude/pricing (caches of five
// minutes), ai.google.dev/gemini-api/docs/pricing (the half prices of 3.8 Flash end with
// 2026) and api-docs.deepseek.com/quick_start/pricing (at peak hours).
func otherPrices() PriceTable {
	return PriceTable{
		"claude-fable-5.1":      {Input: 10, CachedInput: 0.25, CacheWrite: 12.5, Output: 50},
		"claude-fable-5":        {Input: 10, CachedInput: 1, CacheWrite: 12.5, Output: 50},
		"claude-opus-5.5":       {Input: 4, CachedInput: 0.2, CacheWrite: 5, Output: 20},
		"claude-opus-5":         {Input: 5, CachedInput: 0.5, CacheWrite: 6.25, Output: 25},
		"claude-opus-4.8":       {Input: 5, CachedInput: 0.5, CacheWrite: 6.25, Output: 25},
		"claude-opus-4.7":       {Input: 5, CachedInput: 0.5, CacheWrite: 6.25, Output: 25},
		"claude-opus-4.6":       {Input: 5, CachedInput: 0.5, CacheWrite: 6.25, Output: 25},
		"claude-opus-4.5":       {Input: 5, CachedInput: 0.5, CacheWrite: 6.25, Output: 25},
		"claude-sonnet-5.5":     {Input: 2, CachedInput: 0.1, CacheWrite: 2.5, Output: 10},
		"claude-sonnet-5":       {Input: 2, CachedInput: 0.2, CacheWrite: 2.5, Output: 10},
		"claude-sonnet-4.6":     {Input: 3, CachedInput: 0.3, CacheWrite: 3.75, Output: 15},
		"claude-sonnet-4.5":     {Input: 3, CachedInput: 0.3, CacheWrite: 3.75, Output: 15},
		"claude-haiku-5.5":      {Input: 0.1, CachedInput: 0.01, CacheWrite: 0.125, Output: 0.5},
		"claude-haiku-4.5":      {Input: 1, CachedInput: 0.1, CacheWrite: 1.25, Output: 5},
		"gemini-3.8-flash":      {Input: 0.75, CachedInput: 0.075, Output: 3.75},
		"gemini-2.5-pro":        {Input: 1.25, CachedInput: 0.125, Output: 10},
		"gemini-2.5-flash":      {Input: 0.3, CachedInput: 0.03, Output: 2.5},
		"gemini-2.5-flash-lite": {Input: 0.1, CachedInput: 0.01, Output: 0.4},
		"deepseek-flash":        {Input: 0.3, CachedInput: 0.006, Output: 1.2},
		"deepseek-v4-flash":     {Input: 0.3, CachedInput: 0.006, Output: 1.2},
		"deepseek-v4-pro":       {Input: 1.32, CachedInput: 0.044, Output: 3.96},
	}
}

// cacheTTLs lists the models whose providers do not cache prompts for a day, with the time; 0 means that the
// time is not known. Names are normalized. From
// platform.claude.com/docs/en/build-with-claude/prompt-caching,
// developers.openai.com/api/docs/guides/prompt-caching, ai.google.dev/gemini-api/docs/caching,
// as of November 2026.
var cacheTTLs = []struct {
	models string
	ttl    time.Duration
}{
	{"gpt-5-[6-9]*", 0},
	{"gpt-[6-9]*", 0},
	{"claude-*", 5 * time.Minute},
}

// CacheTTL returns how long a model's provider caches a prompt by default: five minutes at Anthropic, and
// at others the day that OpenAI documents as its maximum; 0 if the model, or a similar one, has no price for
// cached input. known is false for OpenAI's models from gpt-5.6 on, for which only a minimum of half an hour
// is documented.
func (t PriceTable) CacheTTL(model string) (ttl time.Duration, known bool) {
	if p := t.LookupSimilar(model); p.Input <= 0 || p.CachedInput <= 0 {
		return 0, true
	}
	name := normalize(model[strings.LastIndexByte(model, '/')+1:])
	for _, c := range cacheTTLs {
		if ok, err := path.Match(c.models, name); ok && err == nil {
			return c.ttl, c.ttl > 0
		}
	}
	return 24 * time.Hour, true
}

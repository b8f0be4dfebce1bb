package agent

import (
	"cmp"
	"time"
)

// Prices of a prompt cache that lasts five minutes or an hour, as multiples of the price of input
// tokens (platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-11).
const (
	shortCache      = 5 * time.Minute
	shortWritePrice = 1.25
	longCache       = time.Hour
	longWritePrice  = 2
	cacheReadPrice  = 0.1
	// maxPauses bounds how many recent pauses between turns are compared.
	maxPauses = 8
)

// cacheFor returns how long the provider should keep the prompt: an hour if that would have been
// cheaper for the recent pauses between turns, or 0 to leave it to the provider. The result is the same
// for all requests in a turn.
func (r *run) cacheFor() time.Duration {
	if !ProfileOf(r.model).LongCache {
		return 0
	}
	short, long, pauses := 0.0, 0.0, 0
	until := turnStart(r.history)
	for i := until; i > 0 && pauses < maxPauses; i-- {
		if m := &r.history[i]; !m.BeginsTurn() || m.Time.IsZero() {
			continue
		}
		before := lastReply(r.history[:i])
		if before < 0 {
			break
		}
		pause, had := r.history[i].Time.Sub(r.history[before].Time), float64(r.history[before].Usage.Input)
		grown := 0.0 // tokens that the turn added
		if last := lastReply(r.history[i:until]); last >= 0 {
			grown = max(0, float64(r.history[i+last].Usage.Input)-had)
		}
		cost := func(kept time.Duration, write float64) float64 {
			if pause <= kept {
				return cacheReadPrice*had + write*grown
			}
			return write * (had + grown)
		}
		short, long = short+cost(shortCache, shortWritePrice), long+cost(longCache, longWritePrice)
		pauses, until = pauses+1, i
	}
	if long < short {
		return longCache
	}
	return 0
}

// isCacheCold reports whether the provider's cache holds nothing of the conversation: it caches nothing, or
// the last prompt no longer.
func (r *run) isCacheCold() bool {
	last := lastReply(r.history)
	if last < 0 || r.agent.cfg.CacheTTL == nil {
		return false
	}
	ttl, known := r.agent.cfg.CacheTTL(ProfileOf(r.model).Name)
	if ttl > 0 {
		ttl = cmp.Or(r.history[last].CacheFor, ttl)
	}
	return known && r.agent.cfg.Now().Sub(r.history[last].Time) >= ttl
}

// lastReply returns the index of the last reply with a usage and a time; -1 if there is none.
func lastReply(history []Message) int {
	for i := len(history) - 1; i >= 0; i-- {
		if m := &history[i]; m.Role == RoleAssistant && m.Usage != nil && !m.Time.IsZero() {
			return i
		}
	}
	return -1
}

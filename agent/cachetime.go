package agent

import "time"

// Prices of a provider's cache that keeps a prompt for five minutes or for an hour, as multiples of the
// price of input (platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-11).
const (
	shortCache = 5 * time.Minute
	shortWrite = 1.25
	longCache  = time.Hour
	longWrite  = 2
	cacheRead  = 0.1
	// lastPauses is how many pauses of a conversation are compared.
	lastPauses = 8
)

// cacheFor returns how long the provider should keep the prompt: an hour if that would have been
// cheaper over the last pauses between turns; 0 leaves it to the provider. It is the same for all
// requests of a turn.
func (r *run) cacheFor() time.Duration {
	if !ProfileOf(r.model).LongCache {
		return 0
	}
	short, long, pauses := 0.0, 0.0, 0
	until := turnStart(r.history)
	for i := until; i > 0 && pauses < lastPauses; i-- {
		if m := &r.history[i]; !m.BeginsTurn() || m.Time.IsZero() {
			continue
		}
		before := replied(r.history[:i])
		if before < 0 {
			break
		}
		pause, had := r.history[i].Time.Sub(r.history[before].Time), float64(r.history[before].Usage.Input)
		grown := 0.0 // tokens that the turn added
		if last := replied(r.history[i:until]); last >= 0 {
			grown = max(0, float64(r.history[i+last].Usage.Input)-had)
		}
		cost := func(kept time.Duration, write float64) float64 {
			if pause <= kept {
				return cacheRead*had + write*grown
			}
			return write * (had + grown)
		}
		short, long = short+cost(shortCache, shortWrite), long+cost(longCache, longWrite)
		pauses, until = pauses+1, i
	}
	if long < short {
		return longCache
	}
	return 0
}

// replied returns the index of the last reply with a usage; -1 if there is none.
func replied(history []Message) int {
	for i := len(history) - 1; i >= 0; i-- {
		if m := &history[i]; m.Role == RoleAssistant && m.Usage != nil && !m.Time.IsZero() {
			return i
		}
	}
	return -1
}

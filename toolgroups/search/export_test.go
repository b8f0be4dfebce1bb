package search

import (
	"log/slog"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search/meaning"
)

// NewBridge makes a bridge with the default limits where none are given.
func NewBridge(cfg BridgeConfig) *Bridge {
	if cfg.Config.isUnset() {
		cfg.Config = DefaultConfig()
	}
	return newBridge(cfg)
}

// Tokens returns the words of a text as they are indexed.
func Tokens(text string) []string {
	var out []string
	for _, w := range splitWords(text) {
		for _, p := range w.parts {
			out = append(out, meaning.Stem(p))
		}
		if len(w.parts) != 1 {
			out = append(out, meaning.Stem(w.text))
		}
	}
	return out
}

// Deferred returns the tools that a bridge stands for.
func (b *Bridge) Deferred() []toolgroups.Tool { return Tools(b.cfg.Catalogue.entries) }

// NewSmallHybrid makes a hybrid ranking that keeps so many vectors.
func NewSmallHybrid(e Embedder, vectors int) *Hybrid {
	return newHybrid(e, vectors, slog.New(slog.DiscardHandler))
}

// Near says how far a word stands for another.
func Near(word, other string) float64 {
	for _, k := range loadSynonyms()[meaning.Stem(word)] {
		if k.stem == meaning.Stem(other) {
			return k.weight
		}
	}
	return 0
}

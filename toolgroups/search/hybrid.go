package search

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/cache"
)

// Embedder turns texts into vectors.
type Embedder interface {
	// Embed returns one vector per text, all of the same length. It must return soon after ctx
	// ends, and may be called concurrently.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

const (
	// maxVectors bounds the cached vectors.
	maxVectors = 20_000
	// embedTime bounds how long a search waits for the embedder.
	embedTime = 2 * time.Second
	// fusion is the constant of reciprocal rank fusion, pool how many ranks it considers.
	fusion = 20
	pool   = 50
	// batchTexts bounds the texts of one request.
	batchTexts = 256
)

// Hybrid ranks by words and by meaning. It caches the vectors of documents by their text, for
// all catalogues. If the embedder fails or is slow, only words count. It may be used
// concurrently.
type Hybrid struct {
	embedder Embedder
	vectors  *cache.Cache[string, []float32]
	log      *slog.Logger
}

// NewHybrid makes a hybrid ranking. Failures of the embedder are logged.
func NewHybrid(e Embedder, log *slog.Logger) *Hybrid { return newHybrid(e, maxVectors, log) }

func newHybrid(e Embedder, vectors int, log *slog.Logger) *Hybrid {
	return &Hybrid{embedder: e, vectors: cache.New[string, []float32](vectors), log: log}
}

// Search ranks the documents of an index for a query by both.
func (h *Hybrid) Search(ctx context.Context, x *Index, query string, limit int) Ranking {
	words := x.Search(query, max(limit, pool))
	meaning, err := h.nearest(ctx, x, query)
	if err != nil {
		h.log.Warn("ranking by words alone because the embedder failed", "err", err)
		words.Hits = words.Hits[:min(len(words.Hits), limit)]
		return words
	}
	scores := make([]float64, len(x.docs))
	for _, ranking := range [][]Ranked{words.Hits, meaning} {
		for i, r := range ranking[:min(len(ranking), max(limit, pool))] {
			scores[r.Doc] += 1 / float64(fusion+i)
		}
	}
	return Ranking{Hits: x.exactFirst(query, x.best(scores, limit), limit), Foreign: words.Foreign}
}

// nearest returns the documents closest in meaning.
func (h *Hybrid) nearest(ctx context.Context, x *Index, query string) ([]Ranked, error) {
	ctx, cancel := context.WithTimeout(ctx, embedTime)
	defer cancel()
	texts := make([]string, 0, len(x.docs)+1)
	for _, d := range x.docs {
		texts = append(texts, strings.Join([]string{d.Name, d.Description, d.Source}, "\n"))
	}
	vectors, err := h.embed(ctx, append(texts, query))
	if err != nil {
		return nil, err
	}
	wanted := vectors[len(texts)]
	scores := make([]float64, len(x.docs))
	for d := range scores {
		scores[d] = cosine(vectors[d], wanted)
	}
	return x.best(scores, pool), nil
}

// embed returns the vectors of texts, cached ones first.
func (h *Hybrid) embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	var missing []int
	for i, t := range texts {
		if v, ok := h.vectors.Get(t); ok {
			out[i] = v
		} else {
			missing = append(missing, i)
		}
	}
	for part := range slices.Chunk(missing, batchTexts) {
		batch := make([]string, len(part))
		for k, i := range part {
			batch[k] = texts[i]
		}
		vectors, err := h.embedder.Embed(ctx, batch)
		if err != nil {
			return nil, fmt.Errorf("search: embed: %w", err)
		}
		if len(vectors) != len(batch) {
			return nil, fmt.Errorf("search: embed: %d vectors for %d texts", len(vectors), len(batch))
		}
		for k, i := range part {
			out[i] = vectors[k]
			h.vectors.Put(batch[k], vectors[k], cache.Forever)
		}
	}
	return out, nil
}

func cosine(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var dot, x, y float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		x += float64(a[i]) * float64(a[i])
		y += float64(b[i]) * float64(b[i])
	}
	if x == 0 || y == 0 {
		return 0
	}
	return dot / math.Sqrt(x*y)
}

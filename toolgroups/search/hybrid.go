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
	// embedTimeout bounds how long a search waits for the embedder.
	embedTimeout = 2 * time.Second
	// fusionConstant is the constant of reciprocal rank fusion, fusionDepth the number of ranks used.
	fusionConstant = 20
	fusionDepth    = 50
	// batchTexts bounds the texts of one request.
	batchTexts = 256
)

// hybrid ranks by words and by embeddings. It caches the vectors of documents and queries by their
// text, for all catalogues. If the embedder fails or is too slow, it ranks by words alone. It may be
// used concurrently.
type hybrid struct {
	embedder Embedder
	vectors  *cache.Cache[string, []float32]
	log      *slog.Logger
}

// newHybrid makes a hybrid ranking that caches so many vectors. Failures of the embedder are logged.
func newHybrid(e Embedder, vectors int, log *slog.Logger) *hybrid {
	return &hybrid{embedder: e, vectors: cache.New[string, []float32](vectors), log: log}
}

// search ranks the documents of an index for a query by words and embeddings. A ranking by both is
// never Weak.
func (h *hybrid) search(ctx context.Context, x *wordIndex, query string, limit int) ranking {
	words := x.search(query, max(limit, fusionDepth))
	meaning, err := h.nearestDocuments(ctx, x, query)
	if err != nil {
		h.log.Warn("ranking by words alone because the embedder failed", "err", err)
		words.hits = words.hits[:min(len(words.hits), limit)]
		return words
	}
	scores := make([]float64, len(x.docs))
	for _, ranking := range [][]scoredDocument{words.hits, meaning} {
		for i, r := range ranking[:min(len(ranking), max(limit, fusionDepth))] {
			scores[r.Doc] += 1 / float64(fusionConstant+i)
		}
	}
	return ranking{hits: x.promoteExact(query, x.topDocuments(scores, limit), limit), isForeignQuery: words.isForeignQuery}
}

// nearestDocuments returns the documents whose vectors are closest to the query's, the closest first.
func (h *hybrid) nearestDocuments(ctx context.Context, x *wordIndex, query string) ([]scoredDocument, error) {
	ctx, cancel := context.WithTimeout(ctx, embedTimeout)
	defer cancel()
	texts := make([]string, 0, len(x.docs)+1)
	for _, d := range x.docs {
		texts = append(texts, strings.Join([]string{d.name, d.description, d.source}, "\n"))
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
	return x.topDocuments(scores, fusionDepth), nil
}

// embed returns the vectors of texts, and computes those that are not cached.
func (h *hybrid) embed(ctx context.Context, texts []string) ([][]float32, error) {
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

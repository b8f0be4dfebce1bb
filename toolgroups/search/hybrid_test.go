package search

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
)

// topics is an embedder that knows two subjects by their words.
type topics struct {
	calls, texts atomic.Int64
	err          error
}

func (e *topics) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e.calls.Add(1)
	e.texts.Add(int64(len(texts)))
	if e.err != nil {
		return nil, e.err
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		v := []float32{0.01, 0.01}
		for k, subject := range []string{"mail letter post", "picture sky telescope"} {
			for word := range strings.FieldsSeq(subject) {
				if strings.Contains(text, word) {
					v[k]++
				}
			}
		}
		out[i] = v
	}
	return out, ctx.Err()
}

func newTestHybrid(e Embedder, vectors int) *hybrid {
	return newHybrid(e, vectors, slog.New(slog.DiscardHandler))
}

func TestHybridFindsByMeaning(t *testing.T) {
	e := &topics{}
	b := testBridge(t, func(c *bridgeConfig) {
		c.catalogue = catalogueOf(hub(), entries("g", "mcp:g", tool("send_mail", "Write to somebody.", "")))
		c.hybrid = newTestHybrid(e, 100)
	})
	if f := find(t, b, `{"query":"post letter"}`); len(f.Matches) == 0 || f.Matches[0].Name != "send_mail" {
		t.Errorf("got %v", f.names())
	}
	texts := e.texts.Load()
	find(t, b, `{"query":"post letter"}`)
	if e.texts.Load() != texts {
		t.Errorf("the same search embedded %d texts again", e.texts.Load()-texts)
	}
	if f := find(t, b, `{"query":"github_star"}`); f.Matches[0].Name != "github_star" {
		t.Errorf("an exact name gives %v", f.names())
	}
}

func TestHybridFallsBackToWords(t *testing.T) {
	b := testBridge(t, func(c *bridgeConfig) { c.hybrid = newTestHybrid(&topics{err: errors.New("down")}, 100) })
	if f := find(t, b, `{"query":"merge pull request"}`); len(f.Matches) == 0 || f.Matches[0].Name != "github_merge_pull_request" {
		t.Errorf("got %v", f.names())
	}
}

func TestHybridCacheIsBounded(t *testing.T) {
	e := &topics{}
	h := newTestHybrid(e, 3)
	x := newIndex(documents())
	for range 3 {
		if r := h.search(t.Context(), x, "telescope", 5); len(r.hits) == 0 {
			t.Fatal("nothing found")
		}
	}
	if e.calls.Load() != 3 {
		t.Errorf("%d calls for three searches that the cache is too small for", e.calls.Load())
	}
}

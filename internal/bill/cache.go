package bill

import (
	"fmt"
	"strings"

	"github.com/tiktoken-go/tokenizer"

	"oneclaw/toolgroups/search"
)

// Cache is how a provider's prompt cache works. The zero value is no cache.
type Cache struct {
	// Prices are those of tokens that are written and read.
	search.Prices
	// Min is the shortest prefix that is cached, Step what lengths are rounded down to
	// from there; 0 means every length.
	Min, Step int
	// Whole says that only what was sent as a whole is found again, else any common
	// beginning is.
	Whole bool
	// Back is how many messages behind such an entry it is still found; 0 means any
	// number.
	Back int
}

// Cost is what a conversation costs.
type Cost struct {
	Requests int `json:"requests"`
	// Input counts all input tokens, Read those that came out of the cache, Written
	// those that were written to it for a fee or without.
	Input   int `json:"input"`
	Read    int `json:"read"`
	Written int `json:"written"`
	Output  int `json:"output"`
	// Billed is the input in tokens at the plain price.
	Billed float64 `json:"billed"`
}

// sent is a request with what its parts cost.
type sent struct {
	segments []string
	sizes    []int
	total    int
}

// meter counts tokens, and remembers those of what it has counted.
type meter struct {
	codec tokenizer.Codec
	known map[string]int
	err   error // the first
}

func newMeter() (*meter, error) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return nil, fmt.Errorf("bill: tokenizer: %w", err)
	}
	return &meter{codec: codec, known: map[string]int{}}, nil
}

func (m *meter) count(text string) int {
	if n, ok := m.known[text]; ok || text == "" {
		return n
	}
	n, err := m.codec.Count(text)
	if err != nil && m.err == nil {
		m.err = fmt.Errorf("bill: count tokens: %w", err)
	}
	m.known[text] = n
	return n
}

// cost sends a recording to a provider with this cache.
func (m *meter) cost(requests []request, cache Cache) (Cost, error) {
	c := Cost{Requests: len(requests)}
	var past []sent
	for _, r := range requests {
		now := sent{segments: r.segments, sizes: make([]int, len(r.segments))}
		for i, text := range r.segments {
			now.sizes[i] = m.count(text)
			now.total += now.sizes[i]
		}
		read, written := m.found(past, now, cache), 0
		past = append(past, now)
		if cache.Read != 1 && now.total >= cache.Min {
			written = now.total - read
		}
		c.Input += now.total
		c.Read += read
		c.Written += written
		c.Output += m.count(r.output)
		c.Billed += float64(read)*cache.Read + float64(written)*cache.Write + float64(now.total-read-written)
	}
	return c, m.err
}

// found is how much of a request a cache has that saw the earlier ones.
func (m *meter) found(past []sent, now sent, cache Cache) int {
	best := 0
	for _, p := range past {
		if cache.Read == 1 || p.total < cache.Min {
			continue
		}
		n := m.common(p, now, cache)
		if n < cache.Min {
			continue
		}
		if cache.Step > 0 {
			n = cache.Min + (n-cache.Min)/cache.Step*cache.Step
		}
		best = max(best, n)
	}
	return best
}

// common is how many tokens two requests begin with alike.
func (m *meter) common(p, now sent, cache Cache) int {
	n, i := 0, 0
	for i < len(p.segments) && i < len(now.segments) && p.segments[i] == now.segments[i] {
		n += now.sizes[i]
		i++
	}
	switch {
	case cache.Whole && (i < len(p.segments) || cache.Back > 0 && len(now.segments)-i > cache.Back):
		return 0
	case cache.Whole, i == len(p.segments), i == len(now.segments):
		return n
	}
	return n + m.count(alike(p.segments[i], now.segments[i]))
}

func alike(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return strings.ToValidUTF8(a[:i], "")
}

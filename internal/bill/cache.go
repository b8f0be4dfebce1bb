package bill

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

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
	// Marks says that nothing is kept but what stands in front of the marks of a request,
	// and found again from one at most Back segments behind it, its own counted.
	Marks bool
	// Lives is how long is kept what nobody uses; 0 means that it stays.
	Lives time.Duration
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
	at       time.Duration
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
	kept := map[[sha256.Size]byte]time.Duration{}
	for _, r := range requests {
		now := sent{at: r.at, segments: r.segments, sizes: make([]int, len(r.segments))}
		for i, text := range r.segments {
			now.sizes[i] = m.count(text)
			now.total += now.sizes[i]
		}
		var read, written int
		switch {
		case cache.Read == 1:
		case cache.Marks:
			read, written = marked(now, r.marks, kept, cache)
		default:
			read = m.found(past, now, cache)
			past = append(past, now)
			if now.total >= cache.Min {
				written = now.total - read
			}
		}
		c.Input += now.total
		c.Read += read
		c.Written += written
		c.Output += m.count(r.output)
		c.Billed += float64(read)*cache.Read + float64(written)*cache.Write + float64(now.total-read-written)
	}
	return c, m.err
}

// marked is how much of a request is found from its marks in what is kept, and how much is
// kept anew.
func marked(now sent, marks []bool, kept map[[sha256.Size]byte]time.Duration, cache Cache) (read, written int) {
	sums, keys := make([]int, len(now.segments)), make([][sha256.Size]byte, len(now.segments))
	var key [sha256.Size]byte
	total := 0
	for i, text := range now.segments {
		total += now.sizes[i]
		key = sha256.Sum256(append(key[:], text...))
		sums[i], keys[i] = total, key
	}
	for i := range marks {
		for j := i; marks[i] && j >= 0 && j > i-cache.Back; j-- {
			if used, ok := kept[keys[j]]; ok && now.at-used <= cache.Lives {
				kept[keys[j]] = now.at
				read = max(read, sums[j])
				break
			}
		}
	}
	for i := range marks {
		if marks[i] && sums[i] >= cache.Min {
			kept[keys[i]] = now.at
			written = max(written, sums[i]-read)
		}
	}
	return read, written
}

// found is how much of a request a cache has that saw the earlier ones.
func (m *meter) found(past []sent, now sent, cache Cache) int {
	best := 0
	for _, p := range past {
		if p.total < cache.Min || cache.Lives > 0 && now.at-p.at > cache.Lives {
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

package bill

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/tiktoken-go/tokenizer"

	"oneclaw/toolgroups/search"
)

// Cache models a provider's prompt cache. The zero value is no cache.
type Cache struct {
	// Prices are the prices of written and read tokens.
	search.Prices
	// Min is the shortest cached prefix, Step the granularity above it; 0 means every length.
	Min, Step int
	// Whole says that only whole requests are found again, instead of any common prefix.
	Whole bool
	// Back is how many messages after such an entry it is still found; 0 means any number.
	Back int
	// Marks says that only what precedes the marks of a request is cached, and found again from a
	// mark at most Back segments behind it, its own included.
	Marks bool
	// Lives is how long an unused entry is kept; 0 means forever.
	Lives time.Duration
}

// Cost is the cost of a conversation.
type Cost struct {
	Requests int `json:"requests"`
	// Input counts all input tokens, Read those read from the cache, Written those written to it,
	// with or without a fee.
	Input   int `json:"input"`
	Read    int `json:"read"`
	Written int `json:"written"`
	// Hour counts those of Written that Anthropic keeps for an hour.
	Hour   int `json:"hour,omitempty"`
	Output int `json:"output"`
	// Billed is the input in tokens at the plain price.
	Billed float64 `json:"billed"`
}

// segment is a part of a request: the number of its text in a [meter]. Each request repeats
// earlier ones, so their texts are stored once.
type segment int

// measuredRequest is a request with the cost of its parts.
type measuredRequest struct {
	at       time.Duration
	segments []segment
	total    int
}

// meter counts tokens, and caches the counts.
type meter struct {
	codec tokenizer.Codec
	known map[string]segment
	texts []string
	sizes []int // -1 if not counted yet
	// alike are the common leading tokens of two segments.
	alike map[[2]segment]int
	err   error // the first one
}

func newMeter() (*meter, error) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return nil, fmt.Errorf("bill: tokenizer: %w", err)
	}
	return &meter{codec: codec, known: map[string]segment{}, alike: map[[2]segment]int{}}, nil
}

func (m *meter) segment(text string) segment {
	s, ok := m.known[text]
	if !ok {
		s = segment(len(m.texts))
		m.known[text], m.texts, m.sizes = s, append(m.texts, text), append(m.sizes, -1)
	}
	return s
}

func (m *meter) size(s segment) int {
	if m.sizes[s] < 0 {
		m.sizes[s] = m.count(m.texts[s])
	}
	return m.sizes[s]
}

func (m *meter) count(text string) int {
	if text == "" {
		return 0
	}
	n, err := m.codec.Count(text)
	if err != nil && m.err == nil {
		m.err = fmt.Errorf("bill: count tokens: %w", err)
	}
	return n
}

// cost sends a recording to a provider with this cache.
func (m *meter) cost(ctx context.Context, requests []request, cache Cache) (Cost, error) {
	c := Cost{Requests: len(requests)}
	var past []measuredRequest
	kept := map[[sha256.Size]byte]lease{}
	for _, r := range requests {
		if ctx.Err() != nil {
			return c, context.Cause(ctx)
		}
		now := measuredRequest{at: r.at, segments: r.segments}
		for _, s := range r.segments {
			now.total += m.size(s)
		}
		var read, written int
		switch {
		case cache.Read == 1:
		case cache.Marks:
			read, written = m.marked(now, r, kept, cache)
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
		c.Output += m.size(m.segment(r.output))
		write := cache.Write
		if r.hour {
			c.Hour += written
			write = hourWrite
		}
		c.Billed += float64(read)*cache.Read + float64(written)*write + float64(now.total-read-written)
	}
	return c, m.err
}

// hourWrite is the price of a token that Anthropic keeps for an hour.
const hourWrite = 2

// lease is until when an entry is kept, and for how long after each use.
type lease struct{ until, lives time.Duration }

// marked returns how much of a request is found in the cache from its marks, and how much is
// newly cached.
func (m *meter) marked(now measuredRequest, r request, kept map[[sha256.Size]byte]lease, cache Cache) (read, written int) {
	sums, keys := make([]int, len(now.segments)), make([][sha256.Size]byte, len(now.segments))
	var key [sha256.Size]byte
	total := 0
	for i, s := range now.segments {
		total += m.size(s)
		key = sha256.Sum256(binary.LittleEndian.AppendUint64(key[:], uint64(s)))
		sums[i], keys[i] = total, key
	}
	for i := range r.marks {
		for j := i; r.marks[i] && j >= 0 && j > i-cache.Back; j-- {
			if l, ok := kept[keys[j]]; ok && now.at <= l.until {
				kept[keys[j]] = lease{now.at + l.lives, l.lives}
				read = max(read, sums[j])
				break
			}
		}
	}
	lives := cache.Lives
	if r.hour {
		lives = time.Hour
	}
	for i := range r.marks {
		if r.marks[i] && sums[i] >= cache.Min {
			kept[keys[i]] = lease{now.at + lives, lives}
			written = max(written, sums[i]-read)
		}
	}
	return read, written
}

// found returns how much of a request is in a cache that has seen the earlier ones.
func (m *meter) found(past []measuredRequest, now measuredRequest, cache Cache) int {
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

// common returns the number of common leading tokens of two requests.
func (m *meter) common(p, now measuredRequest, cache Cache) int {
	n, i := 0, 0
	for i < len(p.segments) && i < len(now.segments) && p.segments[i] == now.segments[i] {
		n += m.size(now.segments[i])
		i++
	}
	switch {
	case cache.Whole && (i < len(p.segments) || cache.Back > 0 && len(now.segments)-i > cache.Back):
		return 0
	case cache.Whole, i == len(p.segments), i == len(now.segments):
		return n
	}
	pair := [2]segment{p.segments[i], now.segments[i]}
	more, known := m.alike[pair]
	if !known {
		more = m.count(alike(m.texts[pair[0]], m.texts[pair[1]]))
		m.alike[pair] = more
	}
	return n + more
}

func alike(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return strings.ToValidUTF8(a[:i], "")
}

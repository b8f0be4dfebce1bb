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
	// Prices are the prices of written and read tokens, and the shortest cached prefix.
	search.Prices
	// Step is the granularity above the shortest prefix; 0 means every length.
	Step int
	// WholeRequests is set if a cache entry matches only as a whole, not by any common prefix.
	WholeRequests bool
	// Lookback is how many messages may follow such an entry in a request; 0 means any number.
	Lookback int
	// MarkedOnly is set if only the part of a request before a cache mark is cached. A later mark
	// finds it again within Lookback segments, counting the mark's own.
	MarkedOnly bool
	// TTL is how long an unused entry is kept; 0 means forever.
	TTL time.Duration
}

// Cost is the cost of a conversation.
type Cost struct {
	Requests int `json:"requests"`
	// Input counts all input tokens, Read those read from the cache, Written those written to it,
	// with or without a fee.
	Input   int `json:"input"`
	Read    int `json:"read"`
	Written int `json:"written"`
	// WrittenForHour counts the Written tokens that Anthropic keeps for an hour.
	WrittenForHour int `json:"hour,omitempty"`
	Output         int `json:"output"`
	// Billed is the input in tokens at the plain price.
	Billed float64 `json:"billed"`
}

// segment is a part of a request: the index of its text in a [meter]. Requests repeat the text of
// earlier ones, so each text is stored once.
type segment int

// measuredRequest is a request with its size in tokens.
type measuredRequest struct {
	at       time.Duration
	segments []segment
	total    int
}

// meter counts tokens, and caches the counts.
type meter struct {
	codec         tokenizer.Codec
	segmentByText map[string]segment
	texts         []string
	sizes         []int // -1 if not counted yet
	// commonCache counts the common leading tokens of two segments.
	commonCache map[[2]segment]int
	err         error // the first one
}

func newMeter() (*meter, error) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return nil, fmt.Errorf("bill: tokenizer: %w", err)
	}
	return &meter{codec: codec, segmentByText: map[string]segment{}, commonCache: map[[2]segment]int{}}, nil
}

func (m *meter) intern(text string) segment {
	s, ok := m.segmentByText[text]
	if !ok {
		s = segment(len(m.texts))
		m.segmentByText[text], m.texts, m.sizes = s, append(m.texts, text), append(m.sizes, -1)
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

// cost returns the cost of requests at a provider with this cache.
func (m *meter) cost(ctx context.Context, requests []request, cache Cache) (Cost, error) {
	return m.costOf(ctx, requests, cache, func(request) bool { return true })
}

// costOf returns the cost of some of the requests; the cache has seen all of them.
func (m *meter) costOf(ctx context.Context, requests []request, cache Cache, counts func(request) bool) (Cost, error) {
	var c Cost
	var past []measuredRequest
	kept := map[[sha256.Size]byte]cacheEntry{}
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
		case cache.MarkedOnly:
			read, written = m.applyMarks(now, r, kept, cache)
		default:
			read = m.cachedTokens(past, now, cache)
			past = append(past, now)
			if now.total >= cache.MinTokens {
				written = now.total - read
			}
		}
		if !counts(r) {
			continue
		}
		c.Requests++
		c.Input += now.total
		c.Read += read
		c.Written += written
		c.Output += m.size(m.intern(r.output))
		write := cache.Write
		if r.cachedForHour {
			c.WrittenForHour += written
			write = hourWrite
		}
		c.Billed += float64(read)*cache.Read + float64(written)*write + float64(now.total-read-written)
	}
	return c, m.err
}

// hourWrite is the price of a token that Anthropic keeps for an hour, in plain input tokens.
const hourWrite = 2

// cacheEntry is a cached prefix: when it expires, and by how long each use extends it.
type cacheEntry struct{ expires, ttl time.Duration }

// applyMarks looks a request up in the cache from its marks, and caches it up to each mark. It
// returns the number of tokens read from the cache, and of tokens newly written to it.
func (m *meter) applyMarks(now measuredRequest, r request, kept map[[sha256.Size]byte]cacheEntry, cache Cache) (read, written int) {
	sums, keys := make([]int, len(now.segments)), make([][sha256.Size]byte, len(now.segments))
	var key [sha256.Size]byte
	total := 0
	for i, s := range now.segments {
		total += m.size(s)
		key = sha256.Sum256(binary.LittleEndian.AppendUint64(key[:], uint64(s)))
		sums[i], keys[i] = total, key
	}
	for i := range r.marks {
		for j := i; r.marks[i] && j >= 0 && j > i-cache.Lookback; j-- {
			if l, ok := kept[keys[j]]; ok && now.at <= l.expires {
				kept[keys[j]] = cacheEntry{now.at + l.ttl, l.ttl}
				read = max(read, sums[j])
				break
			}
		}
	}
	lives := cache.TTL
	if r.cachedForHour {
		lives = time.Hour
	}
	for i := range r.marks {
		if r.marks[i] && sums[i] >= cache.MinTokens {
			kept[keys[i]] = cacheEntry{now.at + lives, lives}
			written = max(written, sums[i]-read)
		}
	}
	return read, written
}

// cachedTokens returns how many tokens of a request are in a cache that has seen the past ones.
func (m *meter) cachedTokens(past []measuredRequest, now measuredRequest, cache Cache) int {
	best := 0
	for _, p := range past {
		if p.total < cache.MinTokens || cache.TTL > 0 && now.at-p.at > cache.TTL {
			continue
		}
		n := m.commonTokens(p, now, cache)
		if n < cache.MinTokens {
			continue
		}
		if cache.Step > 0 {
			n = cache.MinTokens + (n-cache.MinTokens)/cache.Step*cache.Step
		}
		best = max(best, n)
	}
	return best
}

// commonTokens returns the number of common leading tokens of two requests.
func (m *meter) commonTokens(p, now measuredRequest, cache Cache) int {
	n, i := 0, 0
	for i < len(p.segments) && i < len(now.segments) && p.segments[i] == now.segments[i] {
		n += m.size(now.segments[i])
		i++
	}
	switch {
	case cache.WholeRequests && (i < len(p.segments) || cache.Lookback > 0 && len(now.segments)-i > cache.Lookback):
		return 0
	case cache.WholeRequests, i == len(p.segments), i == len(now.segments):
		return n
	}
	pair := [2]segment{p.segments[i], now.segments[i]}
	more, known := m.commonCache[pair]
	if !known {
		more = m.count(commonPrefix(m.texts[pair[0]], m.texts[pair[1]]))
		m.commonCache[pair] = more
	}
	return n + more
}

func commonPrefix(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return strings.ToValidUTF8(a[:i], "")
}

package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/emulator/openai"
)

// Tokens are estimated as four bytes each. The cache follows
// platform.claude.com/docs/en/build-with-claude/prompt-caching (2026-11).
const (
	bytesPerToken = 4
	pictureTokens = 1500
	// lookBack is the number of blocks searched for an entry, including that of the breakpoint itself.
	lookBack = 20
	// entryLifetime is how long an unused entry stays in the cache.
	entryLifetime = 5 * time.Minute
)

// cacheMinimums are the smallest prompts that are cached, in tokens (prompt-caching, 2026-11); the
// first match counts.
var cacheMinimums = []struct {
	models *regexp.Regexp
	tokens int
}{
	{regexp.MustCompile(`opus-5|fable-5|mythos-5`), 512},
	{regexp.MustCompile(`opus-4-8|sonnet|opus-4-1|opus-4-2|opus-4$`), 1024},
	{regexp.MustCompile(`opus-4-7|haiku-3`), 2048},
}

// MinCacheTokens returns the size of the smallest prompt that is cached for a model, in tokens.
func MinCacheTokens(model string) int {
	for _, m := range cacheMinimums {
		if m.models.MatchString(model) {
			return m.tokens
		}
	}
	return 4096
}

// Usage is the token usage of a prompt. Each token is counted once.
type Usage struct {
	// Input is the number of tokens neither read from the cache nor written to it.
	Input        int `json:"input_tokens"`
	CacheWritten int `json:"cache_creation_input_tokens"`
	CacheRead    int `json:"cache_read_input_tokens"`
	// HourWritten is the part of CacheWritten that stays in the cache for an hour.
	HourWritten int `json:"-"`
}

// Total returns the size of the whole prompt.
func (u Usage) Total() int { return u.Input + u.CacheWritten + u.CacheRead }

// promptBlock is a block of a prompt. marked says whether it ends with a cache breakpoint.
type promptBlock struct {
	marked, tool, hour bool
	tokens             int
	bytes              string
}

// promptCache has the cached prompts by the hash of everything up to a breakpoint. It is guarded by
// Server.mu.
type promptCache map[string]cacheEntry

// cacheEntry is valid until expires. Each use extends it by lifetime.
type cacheEntry struct {
	expires  time.Time
	lifetime time.Duration
}

// promptBlocks returns the blocks of a prompt in the order of the cache.
func (d *messagesRequest) promptBlocks() (all []promptBlock) {
	put := func(marked *cacheControl, tool bool, raw json.RawMessage, more int) {
		text := withoutCacheControl(raw)
		all = append(all, promptBlock{marked: marked != nil, tool: tool, hour: marked != nil && marked.TTL == "1h", tokens: (len(text)+bytesPerToken-1)/bytesPerToken + more, bytes: text})
	}
	for _, t := range d.Tools {
		raw, _ := json.Marshal(t) // decoded values can always be encoded
		put(t.CacheControl, true, raw, 0)
	}
	for _, b := range d.system {
		put(b.CacheControl, false, b.raw, 0)
	}
	for _, m := range d.Messages {
		for _, b := range m.blocks {
			more, raw := 0, b.raw
			if b.Type == "image" {
				more, raw = pictureTokens, json.RawMessage(hash(string(raw)))
			}
			put(b.CacheControl, false, json.RawMessage(m.Role+string(raw)), more)
		}
	}
	return all
}

var cacheControlPattern = regexp.MustCompile(`,?"cache_control":(\{[^}]*\}|null)`)

// withoutCacheControl returns a block without its cache_control, as the cache compares it.
func withoutCacheControl(raw json.RawMessage) string {
	return cacheControlPattern.ReplaceAllString(string(raw), "")
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// measure counts the tokens of a prompt, finds its cached part, and caches it up to each breakpoint that
// has at least MinCacheTokens before it. It refuses a prompt that exceeds the context.
func (s *Server) measure(d *messagesRequest) (Usage, *openai.Error) {
	all := d.promptBlocks()
	total, sums, keys := 0, make([]int, len(all)), make([]string, len(all))
	key := s.cfg.Model
	for i, p := range all {
		total += p.tokens
		key = hash(key + p.bytes)
		sums[i], keys[i] = total, key
	}
	if total > s.cfg.Context {
		return Usage{}, invalidRequest("prompt is too long: %d tokens > %d maximum", total, s.cfg.Context)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, read, written, hour := s.cfg.Now(), 0, 0, 0
	if s.cache == nil {
		s.cache = promptCache{}
	}
	for i := range slices.Backward(all) {
		for j := i; all[i].marked && j >= 0 && j > i-lookBack; j-- {
			if k := s.cache[keys[j]]; k.expires.After(now) {
				read = max(read, sums[j])
				k.expires = now.Add(k.lifetime)
				s.cache[keys[j]] = k
				break
			}
		}
	}
	for i := range all {
		if all[i].marked && sums[i] >= MinCacheTokens(s.cfg.Model) {
			written = max(written, sums[i]-read)
			k := cacheEntry{lifetime: entryLifetime}
			if all[i].hour {
				k.lifetime, hour = time.Hour, written
			}
			k.expires = now.Add(k.lifetime)
			s.cache[keys[i]] = k
		}
	}
	return Usage{Input: total - read - written, CacheWritten: written, HourWritten: hour, CacheRead: read}, nil
}

// fillRequest fills in the request that the responder receives, in the form of OpenAI's requests.
func (d *messagesRequest) fillRequest(req *Request) {
	req.Model, req.Stream, req.HasKey = d.Model, d.Stream, true
	if len(d.system) > 0 {
		req.Messages = append(req.Messages, openai.Message{Role: "system", Content: joinTexts(d.system)})
	}
	for _, m := range d.Messages {
		var said openai.Message
		said.Role = m.Role
		var content []string
		for _, b := range m.blocks {
			switch b.Type {
			case "text":
				content = append(content, b.Text)
			case "image":
				said.Pictures = append(said.Pictures, openai.Picture{})
			case "tool_use":
				said.ToolCalls = append(said.ToolCalls, openai.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
			case "tool_result":
				req.Messages = append(req.Messages, openai.Message{Role: "tool", ToolCallID: b.ToolUseID, Content: joinTexts(b.parts)})
			}
		}
		if said.Content = strings.Join(content, "\n"); said.Content != "" || len(said.ToolCalls) > 0 || len(said.Pictures) > 0 {
			req.Messages = append(req.Messages, said)
		}
	}
	for _, t := range d.Tools {
		req.Tools = append(req.Tools, openai.Tool{Name: t.Name, Description: t.Description, Parameters: t.InputSchema})
	}
	req.MessagesJSON = req.Body
}

func joinTexts(blocks []block) string {
	var all []string
	for _, b := range blocks {
		if b.Type == "text" {
			all = append(all, b.Text)
		}
	}
	return strings.Join(all, "\n")
}

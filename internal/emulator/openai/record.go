package openai

import (
	"slices"
)

// Tokens are estimated as four bytes each. They are cached in steps of 128 tokens, from 1024 tokens on,
// as in the hosted cache.
const (
	bytesPerToken   = 4
	cacheStep       = 128
	minCachedTokens = 1024
)

// requestLog has the stored requests; the oldest are dropped first. It is guarded by Server.mu.
type requestLog struct {
	list  []Request
	bytes int
}

func (r Request) storedBytes() int { return len(r.ToolsJSON) + 2*len(r.MessagesJSON) + 512 }

// recordRequest numbers and stores a request.
func (s *Server) recordRequest(req *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastSeq++
	req.Seq = s.lastSeq
	s.records.list = append(s.records.list, *req)
	s.records.bytes += req.storedBytes()
	for len(s.records.list) > s.cfg.MaxRequests || s.records.bytes > s.cfg.maxRecordedBytes && len(s.records.list) > 1 {
		s.records.bytes -= s.records.list[0].storedBytes()
		s.records.list[0] = Request{}
		s.records.list = s.records.list[1:]
	}
}

// Requests returns the stored requests, in order, including refused ones. The caller must not change
// them.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records.list)
}

// Count returns the number of received requests, including those that are no longer stored.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastSeq
}

// maxPrompts and maxPromptBytes bound the prompt cache.
const (
	maxPrompts     = 1000
	maxPromptBytes = 64 << 20
)

// promptCache has the last prompt of each cache key. It is guarded by Server.mu.
type promptCache struct {
	prompts map[string][]byte
	order   []string // the least recently used first
	bytes   int
}

func newPromptCache() promptCache {
	return promptCache{prompts: map[string][]byte{}}
}

// measure counts the tokens of a prompt. Those in the common prefix with the last prompt of the same
// key are cached; without a key, the connection counts. Tools precede messages, so a changed tool loses
// everything after it.
func (s *Server) measure(req *Request, connection string) {
	key := req.Model + "\x00" + req.CacheKey
	if req.CacheKey == "" {
		key += "\x00" + connection
	}
	prompt := slices.Concat([]byte(req.ToolsJSON), []byte(req.MessagesJSON))
	req.Usage.Prompt = (len(prompt) - req.pictureBytes()) / bytesPerToken
	s.mu.Lock()
	defer s.mu.Unlock()
	known := commonPrefix(s.cache.prompts[key], prompt) / bytesPerToken
	known = min(known, req.Usage.Prompt) // pictures count in neither
	if known -= known % cacheStep; known >= minCachedTokens {
		req.Usage.Cached = known
	}
	s.cache.put(key, prompt)
}

func (c *promptCache) put(key string, prompt []byte) {
	if old, ok := c.prompts[key]; ok {
		c.bytes -= len(old)
		c.order = slices.DeleteFunc(c.order, func(k string) bool { return k == key })
	}
	c.prompts[key] = prompt
	c.order = append(c.order, key)
	c.bytes += len(prompt)
	for len(c.order) > maxPrompts || c.bytes > maxPromptBytes && len(c.order) > 1 {
		c.bytes -= len(c.prompts[c.order[0]])
		delete(c.prompts, c.order[0])
		c.order = c.order[1:]
	}
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

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

// Prompts are counted as four bytes per token. The cache follows
// platform.claude.com/docs/en/build-with-claude/prompt-caching (2026-11).
const (
	bytesPerToken = 4
	pictureTokens = 1500
	// lookBack is from how many positions an entry is found, including the mark's own.
	lookBack = 20
	// lives is how long an unused entry is kept.
	lives = 5 * time.Minute
)

// minima are the least tokens of a cached prompt (prompt-caching, 2026-11); the first match
// counts.
var minima = []struct {
	models *regexp.Regexp
	tokens int
}{
	{regexp.MustCompile(`opus-5|fable-5|mythos-5`), 512},
	{regexp.MustCompile(`opus-4-8|sonnet|opus-4-1|opus-4-2|opus-4$`), 1024},
	{regexp.MustCompile(`opus-4-7|haiku-3`), 2048},
}

// Minimum returns the least tokens of a prompt that is cached for a model.
func Minimum(model string) int {
	for _, m := range minima {
		if m.models.MatchString(model) {
			return m.tokens
		}
	}
	return 4096
}

// Usage is the usage of a prompt, in tokens, each counted once.
type Usage struct {
	// Input was neither read from the cache nor written to it.
	Input   int `json:"input_tokens"`
	Written int `json:"cache_creation_input_tokens"`
	Read    int `json:"cache_read_input_tokens"`
	// Hour is the part of Written that is kept for an hour.
	Hour int `json:"-"`
}

// Total returns the size of the whole prompt.
func (u Usage) Total() int { return u.Input + u.Written + u.Read }

// position is a block of a prompt with everything before it.
type position struct {
	marked, tool, hour bool
	tokens             int
	bytes              string
}

// promptCache has the cached prompts, by the hash of everything up to a mark. Guarded by
// Server.mu.
type promptCache map[string]kept

// kept is until when an entry is kept, and for how long after each use.
type kept struct {
	until time.Time
	lives time.Duration
}

// positions returns the blocks of a prompt in the cache's order. It leaves out deferred tools,
// and puts the definitions of found ones where they were found.
func (d *decoded) positions() (all []position) {
	put := func(marked *cacheControl, tool bool, raw json.RawMessage, more int) {
		text := withoutMark(raw)
		all = append(all, position{marked: marked != nil, tool: tool, hour: marked != nil && marked.TTL == "1h", tokens: (len(text)+bytesPerToken-1)/bytesPerToken + more, bytes: text})
	}
	definitions := map[string]int{}
	for _, t := range d.Tools {
		raw, _ := json.Marshal(t) // only what was decoded
		if t.Defer {
			definitions[t.Name] = len(raw) / bytesPerToken
			continue
		}
		put(t.Cache, true, raw, 0)
	}
	for _, b := range d.system {
		put(b.Cache, false, b.raw, 0)
	}
	for _, m := range d.Messages {
		for _, b := range m.blocks {
			more, raw := 0, b.raw
			if b.Type == "image" {
				more, raw = pictureTokens, json.RawMessage(hash(string(raw)))
			}
			for _, name := range b.references() {
				more += definitions[name]
			}
			put(b.Cache, false, json.RawMessage(m.Role+string(raw)), more)
		}
	}
	return all
}

// references returns the tools that a block brings into the conversation.
func (b *block) references() (names []string) {
	for _, p := range b.parts {
		if p.Type == "tool_reference" {
			names = append(names, p.ToolName)
		}
	}
	if b.Type == "tool_search_tool_result" {
		var found struct {
			References []struct {
				ToolName string `json:"tool_name"`
			} `json:"tool_references"`
		}
		_ = json.Unmarshal(b.Content, &found) // a failed search has none
		for _, r := range found.References {
			names = append(names, r.ToolName)
		}
	}
	return names
}

var markBytes = regexp.MustCompile(`,?"cache_control":(\{[^}]*\}|null)`)

// withoutMark returns a block without its mark, as the cache sees it.
func withoutMark(raw json.RawMessage) string { return markBytes.ReplaceAllString(string(raw), "") }

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// measure counts a prompt, finds its cached part, and caches it up to its marks.
func (s *Server) measure(d *decoded) (Usage, *openai.Error) {
	all := d.positions()
	total, sums, keys := 0, make([]int, len(all)), make([]string, len(all))
	key := s.cfg.Model
	for i, p := range all {
		total += p.tokens
		key = hash(key + p.bytes)
		sums[i], keys[i] = total, key
	}
	if total > s.cfg.Context {
		return Usage{}, invalid("prompt is too long: %d tokens > %d maximum", total, s.cfg.Context)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, read, written, hour := s.cfg.Now(), 0, 0, 0
	if s.cache == nil {
		s.cache = promptCache{}
	}
	for i := range slices.Backward(all) {
		for j := i; all[i].marked && j >= 0 && j > i-lookBack; j-- {
			if k := s.cache[keys[j]]; k.until.After(now) {
				read = max(read, sums[j])
				k.until = now.Add(k.lives)
				s.cache[keys[j]] = k
				break
			}
		}
	}
	for i := range all {
		if all[i].marked && sums[i] >= Minimum(s.cfg.Model) {
			written = max(written, sums[i]-read)
			k := kept{lives: lives}
			if all[i].hour {
				k.lives, hour = time.Hour, written
			}
			k.until = now.Add(k.lives)
			s.cache[keys[i]] = k
		}
	}
	return Usage{Input: total - read - written, Written: written, Hour: hour, Read: read}, nil
}

// show fills in what the responder sees, in the form of OpenAI's requests.
func (d *decoded) show(req *Request) {
	req.Model, req.Stream, req.Key = d.Model, d.Stream, true
	found := map[string]bool{}
	if len(d.system) > 0 {
		req.Messages = append(req.Messages, openai.Message{Role: "system", Content: texts(d.system)})
	}
	for _, m := range d.Messages {
		var said openai.Message
		said.Role = m.Role
		var content []string
		for _, b := range m.blocks {
			names := b.references()
			for _, name := range names {
				found[name] = true
			}
			switch b.Type {
			case "text":
				content = append(content, b.Text)
			case "image":
				said.Pictures = append(said.Pictures, openai.Picture{})
			case "tool_use":
				said.ToolCalls = append(said.ToolCalls, openai.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
			case "tool_result":
				text := strings.Join(append([]string{texts(b.parts)}, names...), "\n- ")
				req.Messages = append(req.Messages, openai.Message{Role: "tool", ToolCallID: b.ToolUseID, Content: text})
			}
		}
		if said.Content = strings.Join(content, "\n"); said.Content != "" || len(said.ToolCalls) > 0 || len(said.Pictures) > 0 {
			req.Messages = append(req.Messages, said)
		}
	}
	d.showTools(req, found)
	req.MessagesJSON = req.Body
}

// showTools fills in the tools that the model sees, and those that it has not found yet.
func (d *decoded) showTools(req *Request, found map[string]bool) {
	for _, t := range d.Tools {
		shown := openai.Tool{Name: t.Name, Description: t.Description, Parameters: t.Schema}
		if t.Defer {
			req.Deferred = append(req.Deferred, shown)
		}
		if t.Type == "" && (!t.Defer || found[t.Name]) {
			req.Tools = append(req.Tools, shown)
		}
	}
}

func texts(blocks []block) string {
	var all []string
	for _, b := range blocks {
		if b.Type == "text" {
			all = append(all, b.Text)
		}
	}
	return strings.Join(all, "\n")
}

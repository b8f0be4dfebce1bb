package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"oneclaw/internal/emulator/openai"
)

// sign returns the signature of a thought. With Binds it covers what precedes the thought.
func (s *Server) sign(text, before string) string {
	if !s.cfg.Binds {
		before = ""
	}
	return hash("signature\x00" + s.cfg.Model + text + "\x00" + before)
}

// before returns what precedes the last user message in the first n messages, with the tools and
// the prompt: what the thoughts of a turn are bound to.
func (d *decoded) before(n int) string {
	var b strings.Builder
	for _, p := range (&decoded{Tools: d.Tools, system: d.system}).positions() {
		b.WriteString(p.bytes)
	}
	end := 0
	for i := range d.Messages[:n] {
		if d.Messages[i].Role == "user" && d.Messages[i].blocks[0].Type != "tool_result" {
			end = i
		}
	}
	for _, m := range d.Messages[:end] {
		for _, x := range m.blocks {
			if x.Type == "text" || x.Type == "tool_result" {
				b.WriteString(withoutMark(x.raw))
			}
		}
	}
	return hash(b.String())
}

// checkThoughts requires that thoughts come back unchanged (extended-thinking): signed by this
// model and, with a thinking budget, before the calls of the turn.
func (s *Server) checkThoughts(d *decoded) *openai.Error {
	last := 0
	for i := range d.Messages {
		m := &d.Messages[i]
		if m.Role == "user" {
			if m.blocks[0].Type != "tool_result" {
				last = i
			}
			continue
		}
		for j, b := range m.blocks {
			if b.Type == "thinking" && b.Signature != s.sign(b.Thinking, d.before(i)) {
				if s.cfg.Binds {
					return invalid("messages.%d.content.%d: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".", i, j)
				}
				return invalid("messages.%d.content.%d: Invalid `signature` in `thinking` block", i, j)
			}
		}
	}
	if d.Thinking == nil || d.Thinking.Type != "enabled" {
		return nil
	}
	for i := last + 1; i < len(d.Messages); i++ {
		if m := &d.Messages[i]; m.Role == "assistant" && m.blocks[0].Type != "thinking" && m.blocks[0].Type != "redacted_thinking" {
			return invalid("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.", i, m.blocks[0].Type)
		}
	}
	return nil
}

// Thought returns the thought at the beginning of a reply.
func Thought(seq int) string { return fmt.Sprintf("thought %d of Claude", seq) }

// direct says that the model called a tool itself.
var direct = map[string]string{"type": "direct"}

// answer streams a reply, or sends it whole. A call of a deferred tool that was not found before
// is preceded by a search for it.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, req *Request, d *decoded, reply openai.Reply) {
	var blocks []map[string]any
	if s.cfg.Thinks || d.Thinking != nil && d.Thinking.Type != "disabled" {
		text := Thought(req.Seq)
		blocks = append(blocks, map[string]any{"type": "thinking", "thinking": text, "signature": s.sign(text, d.before(len(d.Messages)))})
	}
	if reply.Text != "" {
		blocks = append(blocks, map[string]any{"type": "text", "text": reply.Text})
	}
	for i, c := range reply.Calls {
		if !shows(req.Tools, c.Name) && shows(req.Deferred, c.Name) {
			id := fmt.Sprintf("srvtoolu_%d_%d", req.Seq, i)
			var refs []any
			for _, name := range s.cfg.Find(strings.ReplaceAll(c.Name, "_", " "), req.Deferred) {
				refs = append(refs, map[string]any{"type": "tool_reference", "tool_name": name})
			}
			blocks = append(blocks,
				map[string]any{"type": "server_tool_use", "id": id, "name": "tool_search_tool_bm25", "input": map[string]any{"query": c.Name}, "caller": direct},
				map[string]any{"type": "tool_search_tool_result", "tool_use_id": id, "content": map[string]any{
					"type": "tool_search_tool_search_result", "tool_references": refs,
				}})
		}
		id := c.ID
		if id == "" {
			id = fmt.Sprintf("toolu_%d_%d", req.Seq, i)
		}
		blocks = append(blocks, map[string]any{"type": "tool_use", "id": id, "name": c.Name, "input": json.RawMessage(c.Arguments)})
	}
	stop := "end_turn"
	if len(reply.Calls) > 0 {
		stop = "tool_use"
	}
	if reply.Finish != "" {
		stop = reply.Finish
	}
	st := &stream{s: s, w: w, r: r, left: -1}
	if reply.End != openai.EndProperly {
		st.left = reply.Chunks
	}
	st.run(req, blocks, stop, reply)
}

func shows(tools []openai.Tool, name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// stream writes one reply as events (build-with-claude/streaming).
type stream struct {
	s *Server
	w http.ResponseWriter
	r *http.Request
	// left is how many pieces are sent before the stream breaks off; -1 for all.
	left int
}

func (st *stream) run(req *Request, blocks []map[string]any, stop string, reply openai.Reply) {
	st.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	usage := map[string]any{
		"input_tokens": req.Usage.Input, "cache_creation_input_tokens": req.Usage.Written, "cache_read_input_tokens": req.Usage.Read, "output_tokens": 1,
		"cache_creation": map[string]any{"ephemeral_5m_input_tokens": req.Usage.Written - req.Usage.Hour, "ephemeral_1h_input_tokens": req.Usage.Hour}, "inference_geo": nil, "output_tokens_details": nil, "server_tool_use": nil, "service_tier": "standard", "speed": nil,
	}
	st.emit("message_start", map[string]any{"message": map[string]any{
		"id": fmt.Sprintf("msg_%d", req.Seq), "type": "message", "role": "assistant", "model": req.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "stop_details": nil, "container": nil, "diagnostics": nil, "usage": usage,
	}})
	st.emit("ping", map[string]any{})
	output := 0
	for i, b := range blocks {
		if !st.block(i, b, &output) {
			st.breakOff(reply)
			return
		}
	}
	if st.left >= 0 {
		st.breakOff(reply)
		return
	}
	st.emit("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil, "stop_details": nil, "container": nil},
		"usage": map[string]any{ // so far, of all
			"input_tokens": req.Usage.Input, "cache_creation_input_tokens": req.Usage.Written, "cache_read_input_tokens": req.Usage.Read,
			"output_tokens": output/bytesPerToken + 1, "output_tokens_details": nil, "server_tool_use": nil,
		},
	})
	st.emit("message_stop", map[string]any{})
}

// block writes a block in pieces. It returns false if the stream breaks off.
func (st *stream) block(i int, b map[string]any, output *int) bool {
	first := map[string]any{"type": b["type"]}
	var text, signature, kind, field string
	switch b["type"] {
	case "text":
		text, kind, field = b["text"].(string), "text_delta", "text"
		first["text"], first["citations"] = "", nil
	case "thinking":
		text, kind, field = b["thinking"].(string), "thinking_delta", "thinking"
		signature = b["signature"].(string)
		first["thinking"], first["signature"] = "", ""
	case "tool_use":
		text, kind, field = string(b["input"].(json.RawMessage)), "input_json_delta", "partial_json"
		first["id"], first["name"], first["input"], first["caller"] = b["id"], b["name"], map[string]any{}, direct
	default:
		first = b
	}
	st.emit("content_block_start", map[string]any{"index": i, "content_block": first})
	*output += len(text)
	for len(text) > 0 {
		if st.left == 0 {
			return false
		}
		st.left--
		n := min(chunkBytes, len(text))
		for n < len(text) && text[n]&0xC0 == 0x80 {
			n++
		}
		st.emit("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": kind, field: text[:n]}})
		text = text[n:]
	}
	if signature != "" {
		st.emit("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": "signature_delta", "signature": signature}})
	}
	st.emit("content_block_stop", map[string]any{"index": i})
	return true
}

func (st *stream) emit(kind string, fields map[string]any) {
	fields["type"] = kind
	body, err := json.Marshal(fields)
	if err != nil {
		panic(err) // only our own maps
	}
	if kind != "ping" && kind != "error" { // the library does not pass these on
		st.s.check("event", body)
	}
	_, _ = fmt.Fprintf(st.w, "event: %s\ndata: %s\n\n", kind, body)
	if f, ok := st.w.(http.Flusher); ok {
		f.Flush()
	}
}

// breakOff ends the stream improperly.
func (st *stream) breakOff(reply openai.Reply) {
	switch reply.End {
	case openai.EndError:
		e := refuse(529, "overloaded_error", "Overloaded")
		if reply.Fault != nil {
			e = typed(reply.Fault)
		}
		st.emit("error", errorBody(e))
	case openai.EndStall:
		st.s.life.Sleep(st.r.Context(), 0)
	case openai.EndCut:
		panic(http.ErrAbortHandler)
	}
}

package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/wire"
)

// sign returns the signature of a thought. With BindSignatures it also covers before, the hash of the
// prefix of the thought.
func (s *Server) sign(text, before string) string {
	if !s.cfg.BindSignatures {
		before = ""
	}
	return hash("signature\x00" + s.cfg.Model + text + "\x00" + before)
}

// prefixHash hashes the tools, the system prompt, and the texts and tool results before the last
// question among the first n messages. A question is a user message that does not begin with a tool
// result. The thoughts of a turn are bound to this prefix.
func (d *messagesRequest) prefixHash(n int) string {
	var b strings.Builder
	for _, p := range (&messagesRequest{Tools: d.Tools, system: d.system}).promptBlocks() {
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
				b.WriteString(withoutCacheControl(x.raw))
			}
		}
	}
	return hash(b.String())
}

// checkThoughts requires that thoughts come back unchanged (extended-thinking). They must be signed by
// this model and, with a thinking budget, begin each assistant message of the last turn.
func (s *Server) checkThoughts(d *messagesRequest) *openai.Error {
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
			if b.Type == "thinking" && b.Signature != s.sign(b.Thinking, d.prefixHash(i)) {
				if s.cfg.BindSignatures {
					return invalidRequest("messages.%d.content.%d: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".", i, j)
				}
				return invalidRequest("messages.%d.content.%d: Invalid `signature` in `thinking` block", i, j)
			}
		}
	}
	if d.Thinking == nil || d.Thinking.Type != "enabled" {
		return nil
	}
	for i := last + 1; i < len(d.Messages); i++ {
		if m := &d.Messages[i]; m.Role == "assistant" && m.blocks[0].Type != "thinking" && m.blocks[0].Type != "redacted_thinking" {
			return invalidRequest("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.", i, m.blocks[0].Type)
		}
	}
	return nil
}

// Thought returns the thought at the beginning of a reply.
func Thought(seq int) string { return fmt.Sprintf("thought %d of Claude", seq) }

// directCaller marks a tool call that the model made itself.
var directCaller = map[string]string{"type": "direct"}

// writeReply sends a reply, as a stream or as one body.
func (s *Server) writeReply(w http.ResponseWriter, r *http.Request, req *Request, d *messagesRequest, reply openai.Reply) {
	var blocks []map[string]any
	if s.cfg.AlwaysThink || d.Thinking != nil && d.Thinking.Type != "disabled" {
		text := Thought(req.Seq)
		blocks = append(blocks, map[string]any{"type": "thinking", "thinking": text, "signature": s.sign(text, d.prefixHash(len(d.Messages)))})
	}
	if reply.Text != "" {
		blocks = append(blocks, map[string]any{"type": "text", "text": reply.Text})
	}
	for i, c := range reply.Calls {
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
	if !d.Stream {
		s.writeMessage(w, r, req, blocks, stop, reply)
		return
	}
	st := &stream{s: s, w: w, r: r, remaining: -1}
	if reply.End != openai.EndComplete {
		st.remaining = reply.Deltas
	}
	st.writeAll(req, blocks, stop, reply)
}

// messageObject returns a message with its usage.
func messageObject(req *Request, blocks []map[string]any, stop any, output int) map[string]any {
	usage := map[string]any{
		"input_tokens": req.Usage.Input, "cache_creation_input_tokens": req.Usage.CacheWritten, "cache_read_input_tokens": req.Usage.CacheRead, "output_tokens": output,
		"cache_creation": map[string]any{"ephemeral_5m_input_tokens": req.Usage.CacheWritten - req.Usage.HourWritten, "ephemeral_1h_input_tokens": req.Usage.HourWritten}, "inference_geo": nil, "output_tokens_details": nil, "server_tool_use": nil, "service_tier": "standard", "speed": nil,
	}
	return map[string]any{
		"id": fmt.Sprintf("msg_%d", req.Seq), "type": "message", "role": "assistant", "model": req.Model, "content": blocks,
		"stop_reason": stop, "stop_sequence": nil, "stop_details": nil, "container": nil, "diagnostics": nil, "usage": usage,
	}
}

// outputTokens returns the tokens of an output of so many bytes.
func outputTokens(size int) int { return size/bytesPerToken + 1 }

// writeMessage sends a reply as one body. It breaks off in the way that the reply asks for, as far as that can be
// done without a stream.
func (s *Server) writeMessage(w http.ResponseWriter, r *http.Request, req *Request, blocks []map[string]any, stop string, reply openai.Reply) {
	if reply.End == openai.EndStall {
		s.life.Sleep(r.Context(), 0)
	}
	if reply.End != openai.EndComplete {
		panic(http.ErrAbortHandler)
	}
	size := len(reply.Text)
	for _, b := range blocks {
		switch b["type"] {
		case "text":
			b["citations"] = nil
		case "thinking":
			size += len(b["thinking"].(string))
		case "tool_use":
			b["caller"] = directCaller
			size += len(b["input"].(json.RawMessage))
		}
	}
	body, err := json.Marshal(messageObject(req, blocks, stop, outputTokens(size)))
	if err != nil { // malformed arguments of a call
		writeError(w, newError(http.StatusInternalServerError, "api_error", "%v", err))
		return
	}
	s.check("message", body)
	wire.WriteJSON(w, http.StatusOK, "application/json", json.RawMessage(body))
}

// stream writes one reply as events (build-with-claude/streaming).
type stream struct {
	s *Server
	w http.ResponseWriter
	r *http.Request
	// remaining is the number of pieces that are sent before the stream breaks off; -1 sends all.
	remaining int
}

func (st *stream) writeAll(req *Request, blocks []map[string]any, stop string, reply openai.Reply) {
	st.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	st.emit("message_start", map[string]any{"message": messageObject(req, []map[string]any{}, nil, 1)})
	st.emit("ping", map[string]any{})
	output := 0
	for i, b := range blocks {
		if !st.writeBlock(i, b, &output) {
			st.breakOff(reply)
			return
		}
	}
	if st.remaining >= 0 {
		st.breakOff(reply)
		return
	}
	st.emit("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil, "stop_details": nil, "container": nil},
		"usage": map[string]any{ // totals so far
			"input_tokens": req.Usage.Input, "cache_creation_input_tokens": req.Usage.CacheWritten, "cache_read_input_tokens": req.Usage.CacheRead,
			"output_tokens": outputTokens(output), "output_tokens_details": nil, "server_tool_use": nil,
		},
	})
	st.emit("message_stop", map[string]any{})
}

// writeBlock writes a block in pieces. It returns false if the stream breaks off.
func (st *stream) writeBlock(i int, b map[string]any, output *int) bool {
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
		first["id"], first["name"], first["input"], first["caller"] = b["id"], b["name"], map[string]any{}, directCaller
	default:
		first = b
	}
	st.emit("content_block_start", map[string]any{"index": i, "content_block": first})
	*output += len(text)
	for len(text) > 0 {
		if st.remaining == 0 {
			return false
		}
		st.remaining--
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
	if kind != "ping" && kind != "error" { // the client library consumes these itself
		st.s.check("event", body)
	}
	_, _ = fmt.Fprintf(st.w, "event: %s\ndata: %s\n\n", kind, body)
	if f, ok := st.w.(http.Flusher); ok {
		f.Flush()
	}
}

// breakOff ends the stream early, in the way that the reply asks for.
func (st *stream) breakOff(reply openai.Reply) {
	switch reply.End {
	case openai.EndError:
		e := newError(529, "overloaded_error", "Overloaded")
		if reply.StreamError != nil {
			e = withType(reply.StreamError)
		}
		st.emit("error", errorBody(e))
	case openai.EndStall:
		st.s.life.Sleep(st.r.Context(), 0)
	case openai.EndCut:
		panic(http.ErrAbortHandler)
	}
}

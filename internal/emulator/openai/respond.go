package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
)

// writeResponse sends a reply over the Responses API, as a stream or as one body.
func (s *Server) writeResponse(w http.ResponseWriter, r *http.Request, req Request, reply Reply, encrypted bool) {
	output := outputItems(req, reply, encrypted)
	status, whole := "completed", map[string]any{
		"id": fmt.Sprintf("resp_emulator%d", req.Seq), "object": "response", "created_at": req.At.Unix(), "model": req.Model,
		"output": output, "error": nil, "incomplete_details": nil, "instructions": nil, "metadata": map[string]string{},
		"parallel_tool_calls": true, "temperature": 1, "tool_choice": "auto", "tools": []any{}, "top_p": 1, "access_programs": nil,
	}
	if reply.Finish == "length" || reply.Finish == "content_filter" {
		reason := map[string]string{"length": "max_output_tokens", "content_filter": "content_filter"}[reply.Finish]
		status, whole["incomplete_details"] = "incomplete", map[string]any{"reason": reason}
	}
	done := completionTokens(reply)
	whole["usage"] = map[string]any{
		"input_tokens": req.Usage.Prompt, "input_tokens_details": map[string]int{"cached_tokens": req.Usage.Cached, "cache_write_tokens": 0},
		"output_tokens": done, "output_tokens_details": map[string]int{"reasoning_tokens": 0}, "total_tokens": req.Usage.Prompt + done,
	}
	if !req.Stream {
		if reply.End == EndStall {
			s.life.Sleep(r.Context(), 0)
		}
		if reply.End != EndComplete {
			panic(http.ErrAbortHandler)
		}
		whole["status"] = status
		s.check("response", withOutputText(whole))
		writeJSON(w, http.StatusOK, whole)
		return
	}
	st := &eventStream{stream: stream{s: s, w: w, r: r, words: s.cfg.chunkWords}, remaining: -1}
	if reply.End != EndComplete {
		st.remaining = max(reply.Deltas, 0)
	}
	st.writeAll(reply, whole, output, status)
}

// outputItems returns the items of a reply: reasoning if requested, text and calls.
func outputItems(req Request, reply Reply, encrypted bool) []map[string]any {
	var output []map[string]any
	if encrypted {
		output = append(output, map[string]any{
			"type": "reasoning", "id": fmt.Sprintf("rs_%d", req.Seq), "encrypted_content": encryptedContent, "summary": []any{},
		})
	}
	if reply.Text != "" || len(reply.Calls) == 0 {
		output = append(output, map[string]any{
			"type": "message", "id": fmt.Sprintf("msg_%d", req.Seq), "role": "assistant", "status": "completed",
			"content": []map[string]any{{"type": "output_text", "text": reply.Text, "annotations": []any{}}},
		})
	}
	for i, c := range reply.Calls {
		output = append(output, map[string]any{
			"type": "function_call", "id": fmt.Sprintf("fc_%d_%d", req.Seq, i), "status": "completed",
			"call_id": cmp.Or(c.ID, fmt.Sprintf("call_%d_%d", req.Seq, i)), "name": c.Name, "arguments": c.Arguments,
		})
	}
	return output
}

// eventStream writes a reply as the events of the Responses API.
type eventStream struct {
	stream
	sequence int
	// remaining is the number of deltas that are sent before the stream breaks off; -1 sends all.
	remaining int
}

func (st *eventStream) writeAll(reply Reply, whole map[string]any, output []map[string]any, status string) {
	h := st.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	began := maps.Clone(whole)
	began["status"], began["output"], began["incomplete_details"] = "in_progress", []any{}, nil
	delete(began, "usage")
	st.emit("response.created", map[string]any{"response": began})
	st.emit("response.in_progress", map[string]any{"response": began})
	for i, it := range output {
		if !st.writeItem(i, it, reply) {
			st.breakOff(reply.End, reply.StreamError)
			return
		}
	}
	if e := reply.StreamError; reply.End == EndError && e != nil && e.Status == 0 {
		// A response that failed by itself has a code alone (api-reference/responses-streaming/response/failed).
		whole["status"], whole["output"], whole["error"] = "failed", []any{}, map[string]any{"code": e.Code, "message": e.Message}
		st.emit("response.failed", map[string]any{"response": whole})
		return
	}
	if reply.End != EndComplete {
		st.breakOff(reply.End, reply.StreamError)
		return
	}
	whole["status"] = status
	st.emit("response."+status, map[string]any{"response": whole})
}

// writeItem sends one item. It returns false if the stream breaks off.
func (st *eventStream) writeItem(i int, it map[string]any, reply Reply) bool {
	added := maps.Clone(it)
	added["status"] = "in_progress"
	about := map[string]any{"output_index": i, "item_id": it["id"]} // in each event between the first and the last
	arguments, isCall := it["arguments"].(string)
	_, isMessage := it["content"]
	if isCall {
		added["arguments"] = ""
	}
	if isMessage {
		added["content"], about["content_index"] = []any{}, 0
	}
	send := func(kind string, fields map[string]any) {
		maps.Copy(fields, about)
		st.emit(kind, fields)
	}
	st.emit("response.output_item.added", map[string]any{"output_index": i, "item": added})
	switch {
	case isMessage:
		part := func(text string) map[string]any {
			return map[string]any{"part": map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}}
		}
		send("response.content_part.added", part(""))
		for _, d := range textDeltas(reply.Text, st.words) {
			if !st.goesOn() {
				return false
			}
			send("response.output_text.delta", map[string]any{"delta": d, "logprobs": []any{}})
		}
		send("response.output_text.done", map[string]any{"text": reply.Text, "logprobs": []any{}})
		send("response.content_part.done", part(reply.Text))
	case isCall:
		if !st.goesOn() {
			return false
		}
		send("response.function_call_arguments.delta", map[string]any{"delta": arguments})
		send("response.function_call_arguments.done", map[string]any{"arguments": arguments})
	}
	st.emit("response.output_item.done", map[string]any{"output_index": i, "item": it})
	return true
}

// goesOn counts a delta. It returns false if the stream breaks off before it.
func (st *eventStream) goesOn() bool {
	if st.remaining == 0 {
		return false
	}
	st.remaining--
	return true
}

// withOutputText returns a response as the client library has it, with output_text, which the service
// does not send.
func withOutputText(whole map[string]any) map[string]any {
	read := maps.Clone(whole)
	read["output_text"] = ""
	return read
}

// emit sends an event with a name.
func (st *eventStream) emit(kind string, fields map[string]any) {
	fields["type"], fields["sequence_number"] = kind, st.sequence
	st.sequence++
	body, err := json.Marshal(fields)
	if err != nil {
		panic(err) // only our own maps
	}
	read := maps.Clone(fields)
	if whole, ok := fields["response"].(map[string]any); ok {
		read["response"] = withOutputText(whole)
	}
	st.s.check("event", read)
	_, _ = fmt.Fprintf(st.w, "event: %s\ndata: %s\n\n", kind, body)
	st.flush()
}

// breakOff ends the stream early, in the given way.
func (st *eventStream) breakOff(end Ending, fault *Error) {
	if end == EndError {
		if fault == nil {
			fault = Failed(500).Err
		}
		st.emit("error", map[string]any{"code": cmp.Or(fault.Code, fault.Type), "message": fault.Message, "param": nil})
		return
	}
	st.stream.breakOff(end, fault)
}

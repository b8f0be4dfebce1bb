package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// fragmentBytes is the approximate size of the arguments in a delta.
const fragmentBytes = 16

type wireUsage struct {
	PromptTokens        int `json:"prompt_tokens"`
	CompletionTokens    int `json:"completion_tokens"`
	TotalTokens         int `json:"total_tokens"`
	PromptTokensDetails struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// wireDelta is a piece of a reply. Content is a string or parts.
type wireDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   any        `json:"content,omitempty"`
	ToolCalls []wireCall `json:"tool_calls,omitempty"`

	ReasoningContent string           `json:"reasoning_content,omitempty"`
	Reasoning        string           `json:"reasoning,omitempty"`
	ReasoningDetails []map[string]any `json:"reasoning_details,omitempty"`
}

type wireReply struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	ToolCalls []wireCall `json:"tool_calls,omitempty"`
	Refusal   *string    `json:"refusal"`
}

type wireChoice struct {
	Index        int        `json:"index"`
	Message      *wireReply `json:"message,omitempty"`
	Delta        *wireDelta `json:"delta,omitempty"`
	FinishReason *string    `json:"finish_reason"`
	// Logprobs is always null.
	Logprobs *struct{} `json:"logprobs"`
}

type wireCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []wireChoice `json:"choices"`
	Usage   *wireUsage   `json:"usage,omitempty"`
}

// writeCompletion sends a reply over Chat Completions, as a stream or as one body.
func (s *Server) writeCompletion(w http.ResponseWriter, r *http.Request, req Request, reply Reply) {
	calls := s.cfg.Profile.wireCalls(reply, req.Seq)
	finish := "stop"
	if len(calls) > 0 {
		finish = "tool_calls"
	}
	finish = cmp.Or(reply.Finish, finish)
	usage := wireUsage{PromptTokens: req.Usage.Prompt, CompletionTokens: completionTokens(reply)}
	usage.TotalTokens = usage.PromptTokens + usage.CompletionTokens
	if s.cfg.Profile.reasoningInTotal {
		usage.TotalTokens += completionTokens(Reply{Text: s.cfg.Profile.Thought(req.Seq)})
	}
	usage.PromptTokensDetails.CachedTokens = req.Usage.Cached
	if s.cfg.Profile.CacheBesideInput {
		usage.PromptTokens -= req.Usage.Cached
	}
	out := wireCompletion{
		ID: fmt.Sprintf("chatcmpl-emulator%d", req.Seq), Object: "chat.completion", Created: req.At.Unix(), Model: req.Model,
	}
	if req.Stream {
		st := &stream{s: s, w: w, r: r, out: out, words: s.cfg.chunkWords, seq: req.Seq}
		st.out.Object = "chat.completion.chunk"
		st.writeAll(reply, calls, finish, usage, req.IncludeUsage)
		return
	}
	if reply.End == EndStall {
		s.life.Sleep(r.Context(), 0)
	}
	if reply.End != EndComplete {
		panic(http.ErrAbortHandler)
	}
	m := wireReply{Role: "assistant", ToolCalls: calls}
	if reply.Text != "" || len(calls) == 0 {
		m.Content = &reply.Text
	}
	out.Choices = []wireChoice{{Message: &m, FinishReason: &finish}}
	out.Usage = &usage
	s.check("completion", out)
	writeJSON(w, http.StatusOK, out)
}

func completionTokens(reply Reply) int {
	n := len(reply.Text)
	for _, c := range reply.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return (n + bytesPerToken - 1) / bytesPerToken
}

// stream writes one reply as server-sent events.
type stream struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	out   wireCompletion
	words int
	seq   int
}

func (st *stream) writeAll(reply Reply, calls []wireCall, finish string, usage wireUsage, withUsage bool) {
	h := st.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	p := &st.s.cfg.Profile
	if p.streamComments {
		_, _ = fmt.Fprint(st.w, ": OPENROUTER PROCESSING\n\n")
	}
	first := wireDelta{Role: "assistant"}
	if len(calls) == 0 || reply.Text != "" {
		first.Content = ""
	}
	deltas := append([]wireDelta{first}, p.reasoningDeltas(reply, st.seq)...)
	for _, part := range textDeltas(reply.Text, st.words) {
		deltas = append(deltas, wireDelta{Content: p.contentValue(part)})
	}
	deltas = append(deltas, callDeltas(calls, !p.noCallIndex)...)
	if p.noCallIndex && finish == "tool_calls" {
		finish = "stop"
	}
	if reply.End != EndComplete && reply.Deltas < len(deltas) {
		deltas = deltas[:max(reply.Deltas, 0)]
	}
	for i := range deltas {
		if deltas[i].Content != nil && i > 0 {
			st.waitDelta()
		}
		st.sendChoice(wireChoice{Delta: &deltas[i]})
	}
	if reply.End != EndComplete {
		st.breakOff(reply.End, reply.StreamError)
		return
	}
	if !p.NoFinishReason {
		st.sendChoice(wireChoice{Delta: &wireDelta{}, FinishReason: &finish})
	}
	if withUsage {
		st.out.Choices, st.out.Usage = []wireChoice{}, &usage
		st.sendEvent(st.out)
	}
	_, _ = fmt.Fprint(st.w, "data: [DONE]\n\n")
	st.flush()
}

// waitDelta waits between two deltas of a text.
func (st *stream) waitDelta() {
	if pace := st.s.cfg.DeltaDelay; pace > 0 && !st.s.life.Sleep(st.r.Context(), pace) {
		panic(http.ErrAbortHandler)
	}
}

// breakOff ends a stream early, in the given way.
func (st *stream) breakOff(end Ending, fault *Error) {
	st.flush()
	switch end {
	case EndStall:
		st.s.life.Sleep(st.r.Context(), 0)
		panic(http.ErrAbortHandler)
	case EndCut:
		panic(http.ErrAbortHandler)
	case EndError:
		if fault == nil {
			fault = Failed(500).Err
		}
		st.sendError(fault)
	}
}

// sendError sends an error in the form that the service uses in streams.
func (st *stream) sendError(e *Error) {
	st.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	p := &st.s.cfg.Profile
	switch {
	case p.encodeStreamError != nil:
		_, _ = fmt.Fprint(st.w, p.encodeStreamError(e))
		st.flush()
	case p.encodeError != nil:
		st.sendEvent(p.encodeError(e))
	default:
		st.sendEvent(e.encode())
	}
}

func (st *stream) sendChoice(choice wireChoice) {
	st.out.Choices = []wireChoice{choice}
	st.s.check("chunk", st.out)
	st.sendEvent(st.out)
}

func (st *stream) sendEvent(v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own structs
	}
	_, _ = fmt.Fprintf(st.w, "data: %s\n\n", body)
	st.flush()
}

// flush flushes the response, if the writer can: the recorder of a test cannot.
func (st *stream) flush() { _ = http.NewResponseController(st.w).Flush() }

// textDeltas splits a text into deltas of the given number of words.
func textDeltas(text string, words int) []string {
	var deltas []string
	for text != "" {
		end, n := 0, 0
		for end < len(text) && n < words {
			next := strings.IndexAny(text[end:], " \n")
			if next < 0 {
				end = len(text)
				break
			}
			end += next + 1
			n++
		}
		deltas = append(deltas, text[:end])
		text = text[end:]
	}
	return deltas
}

// callDeltas splits each call into a delta with its name, and further deltas with pieces of its
// arguments.
func callDeltas(calls []wireCall, indexed bool) []wireDelta {
	var deltas []wireDelta
	for i, c := range calls {
		args := c.Function.Arguments
		var index *int
		if indexed {
			index = &i
		}
		head := c
		head.Index, head.Function.Arguments = index, ""
		if !indexed {
			head.ExtraContent = nil // sent after the call, in a delta of its own
		}
		deltas = append(deltas, wireDelta{ToolCalls: []wireCall{head}})
		for args != "" {
			n := min(fragmentBytes, len(args))
			for n < len(args) && !utf8.RuneStart(args[n]) {
				n++
			}
			part := wireCall{Index: index}
			part.Function.Arguments = args[:n]
			args = args[n:]
			deltas = append(deltas, wireDelta{ToolCalls: []wireCall{part}})
		}
		if !indexed && c.ExtraContent != nil {
			deltas = append(deltas, wireDelta{ToolCalls: []wireCall{{ExtraContent: c.ExtraContent}}})
		}
	}
	return deltas
}

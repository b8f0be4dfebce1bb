package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	client "github.com/sashabaranov/go-openai"

	"oneclaw/internal/emulator/openai"
)

func say(text string) func(context.Context, openai.Request) (openai.Reply, error) {
	return func(context.Context, openai.Request) (openai.Reply, error) { return openai.Reply{Text: text}, nil }
}

// streamed collects a stream as a client does.
type streamed struct {
	text    string
	calls   []openai.ToolCall
	finish  string
	usage   *client.Usage
	chunks  int
	lastErr error
}

func (f *fixture) stream(ctx context.Context, req client.ChatCompletionRequest) streamed {
	f.t.Helper()
	var got streamed
	req.StreamOptions = &client.StreamOptions{IncludeUsage: true}
	st, err := f.client.CreateChatCompletionStream(ctx, req)
	if err != nil {
		got.lastErr = err
		return got
	}
	defer func() {
		if err := st.Close(); err != nil && ctx.Err() == nil {
			f.t.Error(err)
		}
	}()
	for {
		chunk, err := st.Recv()
		if err != nil {
			got.lastErr = err
			return got
		}
		got.chunks++
		got.add(chunk)
	}
}

func (s *streamed) add(chunk client.ChatCompletionStreamResponse) {
	if chunk.Usage != nil {
		s.usage = chunk.Usage
	}
	for _, c := range chunk.Choices {
		s.text += c.Delta.Content
		if c.FinishReason != "" {
			s.finish = string(c.FinishReason)
		}
		for _, call := range c.Delta.ToolCalls {
			if *call.Index == len(s.calls) {
				s.calls = append(s.calls, openai.ToolCall{ID: call.ID, Name: call.Function.Name})
			}
			s.calls[*call.Index].Arguments += call.Function.Arguments
		}
	}
}

func TestStream(t *testing.T) {
	text := "Ten words – with\nlines, emoji 😀 and   spaces – arrive as sent."
	want := []openai.ToolCall{
		{ID: "c1", Name: "pdf_info", Arguments: `{"path":"inbox/ünïcödé – 日本語.pdf"}`},
		{ID: "c2", Name: "broken", Arguments: `{"path":`},
	}
	f := start(t, openai.Config{Responder: openai.NewScript(openai.Reply{Text: text, Calls: want}, openai.Reply{Text: text, Calls: want})})
	got := f.stream(t.Context(), ask("x"))
	if !errors.Is(got.lastErr, io.EOF) || got.text != text || got.finish != "tool_calls" {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff(want, got.calls); diff != "" {
		t.Error(diff)
	}
	if got.usage == nil || got.usage.CompletionTokens == 0 || got.chunks < 10 {
		t.Errorf("usage %+v, %d chunks", got.usage, got.chunks)
	}
	resp, err := f.client.CreateChatCompletion(t.Context(), ask("x"))
	if err != nil {
		t.Fatal(err)
	}
	m := resp.Choices[0].Message
	if m.Content != text || len(m.ToolCalls) != 2 || m.ToolCalls[1].Function.Arguments != `{"path":` || resp.Usage.TotalTokens == 0 {
		t.Errorf("got %+v", resp)
	}
}

func TestBrokenStreams(t *testing.T) {
	text := strings.Repeat("word ", 40)
	f := start(t, openai.Config{Responder: openai.NewScript(
		openai.Reply{Text: text, End: openai.EndDropped, Deltas: 3},
		openai.Reply{Text: text, End: openai.EndCut, Deltas: 3},
		openai.Reply{Text: text, End: openai.EndError, Deltas: 3},
		openai.RateLimited(7), openai.Failed(503),
	)})
	const begun = "word word word word word word word word "
	if got := f.stream(t.Context(), ask("x")); !errors.Is(got.lastErr, io.EOF) || got.finish != "" || got.text != begun {
		t.Errorf("silently: %+v", got)
	}
	if got := f.stream(t.Context(), ask("x")); !errors.Is(got.lastErr, io.ErrUnexpectedEOF) || got.text != begun {
		t.Errorf("cut: %+v", got)
	}
	var e *client.APIError
	if got := f.stream(t.Context(), ask("x")); !errors.As(got.lastErr, &e) || e.Type != "server_error" || got.text != begun {
		t.Errorf("error event: %+v", got)
	}
	if got := f.stream(t.Context(), ask("x")); !errors.As(got.lastErr, &e) || e.HTTPStatusCode != 429 {
		t.Errorf("rate limit: %+v", got)
	}
	if got := f.stream(t.Context(), ask("x")); !errors.As(got.lastErr, &e) || e.HTTPStatusCode != 503 {
		t.Errorf("failure: %+v", got)
	}
	if got := f.stream(t.Context(), ask("x")); !errors.As(got.lastErr, &e) || e.Code != "script_exhausted" {
		t.Errorf("after the script: %+v", got)
	}
}

func TestStalledStream(t *testing.T) {
	f := start(t, openai.Config{Responder: openai.NewScript(openai.Reply{Text: strings.Repeat("word ", 40), End: openai.EndStall, Deltas: 3})})
	ctx, cancel := context.WithCancel(t.Context())
	st, err := f.client.CreateChatCompletionStream(ctx, ask("x"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := st.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if _, err := st.Recv(); !errors.Is(err, context.Canceled) {
		t.Errorf("stall: %v", err)
	}
	if err := st.Close(); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestLatencyHoldsUpNobodyElse(t *testing.T) {
	slow := make(chan struct{})
	f := start(t, openai.Config{Responder: openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		if req.Messages[0].Content == "slow" {
			close(slow)
			return openai.Reply{Text: "late", Delay: time.Hour}, nil
		}
		return openai.Reply{Text: "at once"}, nil
	})})
	done := make(chan error, 1)
	go func() {
		_, err := f.client.CreateChatCompletion(t.Context(), ask("slow"))
		done <- err
	}()
	<-slow
	resp, err := f.client.CreateChatCompletion(t.Context(), ask("fast"))
	if err != nil || resp.Choices[0].Message.Content != "at once" {
		t.Errorf("got %+v %v", resp, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("the slow request survived the server")
	}
}

func TestRetryAfter(t *testing.T) {
	f := start(t, openai.Config{Responder: openai.NewScript(openai.RateLimited(7))})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/chat/completions", strings.NewReader(`{"model":"emulator","messages":[`+user+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := f.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "7" {
		t.Errorf("got %d %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
}

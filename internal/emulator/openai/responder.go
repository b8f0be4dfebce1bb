package openai

import (
	"context"
	"sync"
	"time"
)

// Responder decides what the model says. It is called concurrently.
type Responder interface {
	// Reply answers a well-formed request. It may wait, until ctx ends. An error
	// becomes a status 500.
	Reply(ctx context.Context, req Request) (Reply, error)
}

// BrainFunc makes a [Responder] of a function.
type BrainFunc func(ctx context.Context, req Request) (Reply, error)

// Reply calls the function.
func (f BrainFunc) Reply(ctx context.Context, req Request) (Reply, error) { return f(ctx, req) }

// Ending is how a reply ends.
type Ending string

// The endings.
const (
	// EndProperly sends a finish reason and [DONE].
	EndProperly Ending = ""
	// EndSilently ends the stream without a finish reason and without [DONE], as a
	// proxy that gives up does.
	EndSilently Ending = "silently"
	// EndCut breaks the connection.
	EndCut Ending = "cut"
	// EndStall sends nothing more until the client goes away.
	EndStall Ending = "stall"
	// EndError sends an error event in the stream.
	EndError Ending = "error"
)

// Reply is what the model says in one answer.
type Reply struct {
	// Text is the content, Calls the calls of tools beside or instead of it.
	// Arguments go out as they are, malformed or not.
	Text  string
	Calls []ToolCall
	// Finish overrides the finish reason: stop, or tool_calls where there are calls.
	Finish string
	// Err refuses the request instead. Fault is what EndError says; nil is an error of the
	// server.
	Err, Fault *Error
	// Delay is waited for before the first byte, besides the server's latency.
	Delay time.Duration
	// End is how the stream ends; but for EndProperly it ends after Chunks deltas
	// (all of them where there are fewer). Without a stream every improper end but
	// EndStall breaks the connection.
	End    Ending
	Chunks int
}

// RateLimited is a reply that refuses with 429.
func RateLimited(retryAfter int) Reply {
	return Reply{Err: &Error{
		Status: 429, Type: "requests", Code: "rate_limit_exceeded", RetryAfter: retryAfter,
		Message: "Rate limit reached for requests.",
	}}
}

// Failed is a reply that fails with a status of the server.
func Failed(status int) Reply {
	return Reply{Err: &Error{
		Status: status, Type: "server_error",
		Message: "The server had an error while processing your request. Sorry about that!",
	}}
}

// Script is a [Responder] that gives prepared replies in order. When there are none
// left it fails with status 500, which a test will see.
type Script struct {
	mu      sync.Mutex
	replies []Reply
}

// NewScript makes a script.
func NewScript(replies ...Reply) *Script { return &Script{replies: replies} }

// Push adds replies at the end.
func (s *Script) Push(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, replies...)
}

// Left says how many replies have not been given.
func (s *Script) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.replies)
}

// Reply gives the next reply.
func (s *Script) Reply(context.Context, Request) (Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.replies) == 0 {
		return Reply{Err: &Error{Status: 500, Type: "server_error", Code: "script_exhausted", Message: "The script of the emulator has no reply left."}}, nil
	}
	r := s.replies[0]
	s.replies = s.replies[1:]
	return r, nil
}

var (
	_ Responder = (*Script)(nil)
	_ Responder = BrainFunc(nil)
	_ Responder = Offline{}
)

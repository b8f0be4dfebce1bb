package openai

import (
	"context"
	"sync"
	"time"
)

// Responder decides what the model replies. It is called concurrently.
type Responder interface {
	// Reply answers a valid request. It may wait, until ctx ends. An error becomes a status 500.
	Reply(ctx context.Context, req Request) (Reply, error)
}

// BrainFunc is a [Responder] that is a function.
type BrainFunc func(ctx context.Context, req Request) (Reply, error)

// Reply calls the function.
func (f BrainFunc) Reply(ctx context.Context, req Request) (Reply, error) { return f(ctx, req) }

// Ending is how a reply ends.
type Ending string

// The endings.
const (
	// EndProperly sends a finish reason and [DONE].
	EndProperly Ending = ""
	// EndSilently ends the stream without a finish reason and [DONE], like a proxy that gives up.
	EndSilently Ending = "silently"
	// EndCut breaks the connection.
	EndCut Ending = "cut"
	// EndStall sends nothing more until the client disconnects.
	EndStall Ending = "stall"
	// EndError sends an error event in the stream.
	EndError Ending = "error"
)

// Reply is one reply of the model.
type Reply struct {
	// Text is the content, Calls are tool calls besides or instead of it. Arguments are sent
	// unchanged, malformed or not.
	Text  string
	Calls []ToolCall
	// Finish overrides the finish reason: stop, or tool_calls with calls.
	Finish string
	// Err refuses the request instead. Fault is the error of EndError; nil is a server error.
	Err, Fault *Error
	// Delay precedes the first byte, besides the server's latency.
	Delay time.Duration
	// End is how the stream ends: other than EndProperly it ends after Chunks deltas (or all, if
	// there are fewer). Without a stream every improper end but EndStall breaks the connection.
	End    Ending
	Chunks int
}

// RateLimited returns a reply with status 429.
func RateLimited(retryAfter int) Reply {
	return Reply{Err: &Error{
		Status: 429, Type: "requests", Code: "rate_limit_exceeded", RetryAfter: retryAfter,
		Message: "Rate limit reached for requests.",
	}}
}

// Failed returns a reply with an error status.
func Failed(status int) Reply {
	return Reply{Err: &Error{
		Status: status, Type: "server_error",
		Message: "The server had an error while processing your request. Sorry about that!",
	}}
}

// Script is a [Responder] with prepared replies in order. Without any left it fails with status
// 500.
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

// Left returns the number of replies left.
func (s *Script) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.replies)
}

// Reply returns the next reply.
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

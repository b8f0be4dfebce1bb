package openai

import (
	"context"
	"sync"
	"time"
)

// Responder decides what the model replies. It is called concurrently.
type Responder interface {
	// Reply answers a valid request. It may wait until ctx is canceled. An error becomes a status 500.
	Reply(ctx context.Context, req Request) (Reply, error)
}

// ResponderFunc is a function that is a [Responder].
type ResponderFunc func(ctx context.Context, req Request) (Reply, error)

// Reply calls the function.
func (f ResponderFunc) Reply(ctx context.Context, req Request) (Reply, error) { return f(ctx, req) }

// Ending is the way in which a reply ends.
type Ending string

// The endings of a reply.
const (
	// EndComplete sends a finish reason and [DONE].
	EndComplete Ending = ""
	// EndDropped ends the stream without a finish reason and [DONE], like a proxy that gives up.
	EndDropped Ending = "silently"
	// EndCut breaks the connection.
	EndCut Ending = "cut"
	// EndStall sends nothing more until the client disconnects.
	EndStall Ending = "stall"
	// EndError sends an error event in the stream.
	EndError Ending = "error"
)

// Reply is one reply of the model.
type Reply struct {
	// Text is the content. Calls are tool calls beside or instead of it. Their arguments are sent
	// unchanged, even if malformed.
	Text  string
	Calls []ToolCall
	// Finish overrides the finish reason, which is otherwise stop, or tool_calls with calls.
	Finish string
	// Err refuses the request. StreamError is the error of EndError; nil means a server error. Over the
	// Responses API, one without a status is that of a failed response.
	Err, StreamError *Error
	// Delay precedes the first byte, in addition to the server's latency.
	Delay time.Duration
	// End is the way in which the stream ends. With any ending but EndComplete, the stream ends after
	// Deltas deltas, or after all if there are fewer. Without a stream, EndStall stalls and the others
	// break the connection.
	End    Ending
	Deltas int
}

// RateLimited returns a reply with status 429. retryAfter is in seconds; 0 omits the header.
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

// Script is a [Responder] with prepared replies in order. Without any remaining reply it refuses with
// status 500.
type Script struct {
	mu      sync.Mutex
	replies []Reply
}

// NewScript returns a script with the given replies.
func NewScript(replies ...Reply) *Script { return &Script{replies: replies} }

// Push appends replies to the script.
func (s *Script) Push(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, replies...)
}

// Reply removes the next reply from the script and returns it.
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
	_ Responder = ResponderFunc(nil)
	_ Responder = Offline{}
)

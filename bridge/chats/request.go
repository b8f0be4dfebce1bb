package chats

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"sync/atomic"
)

// FormLength returns the length of a multipart form with these fields and one file of size bytes. A
// client library that writes the form while sending does not know the length, and would send the request
// in chunks. All random boundaries have the same length.
func FormLength(fields map[string]string, field, name string, size int64) int64 {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for key, value := range fields {
		_ = form.WriteField(key, value) // a buffer never fails
	}
	_, _ = form.CreateFormFile(field, name)
	_ = form.Close()
	return int64(body.Len()) + size
}

// WithPrecondition returns a context for calls that send something. Each of their requests is made only if
// check returns nil right before it, after all waits, and before each part of a long one; otherwise the call
// returns that error, wrapped.
func WithPrecondition(ctx context.Context, check func() error) context.Context {
	return context.WithValue(ctx, preconditionKey{}, check)
}

type preconditionKey struct{}

// CheckPrecondition checks the precondition of a call; see [WithPrecondition]. A platform whose requests
// do not pass [WatchBody] calls it right before each of them.
func CheckPrecondition(ctx context.Context) error {
	if check, ok := ctx.Value(preconditionKey{}).(func() error); ok {
		return check()
	}
	return nil
}

// WatchBody sets begun once a part of a request's body may have been sent; until then the platform has
// not acted on it. It also keeps the transport from replaying the request, so that nothing is sent twice
// unnoticed, and checks the precondition of the call before each part. If that fails, the request ends
// there, and begun is reset: no platform acts on a body that is cut short.
func WatchBody(req *http.Request, begun *atomic.Bool) {
	if req.Body != nil && req.Body != http.NoBody {
		check := func() error { return CheckPrecondition(req.Context()) }
		req.Body, req.GetBody = watchedBody{req.Body, check, begun}, nil
	}
}

type watchedBody struct {
	io.ReadCloser
	check func() error
	begun *atomic.Bool
}

// Read records that the body is being read. The transport reads it when it has a connection, and sends at
// most the header before that, on which no platform acts. It may read a file for minutes. A read that
// returns nothing is not checked: the transport makes one when it has sent the last byte.
func (b watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if err := b.check(); err != nil {
			b.begun.Store(false)
			return 0, err
		}
	}
	b.begun.Store(true)
	return n, err
}

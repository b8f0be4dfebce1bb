package chats

import (
	"bytes"
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

// WatchBody sets begun once a part of a request's body may have been sent; until then the platform has
// not acted on it. It also keeps the transport from replaying the request, so that nothing is sent twice
// unnoticed.
func WatchBody(req *http.Request, begun *atomic.Bool) {
	if req.Body != nil && req.Body != http.NoBody {
		req.Body, req.GetBody = watchedBody{req.Body, begun}, nil
	}
}

type watchedBody struct {
	io.ReadCloser
	begun *atomic.Bool
}

// Read records that the body is being read.
func (b watchedBody) Read(p []byte) (int, error) {
	b.begun.Store(true)
	return b.ReadCloser.Read(p)
}

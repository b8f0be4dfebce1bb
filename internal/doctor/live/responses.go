package live

import (
	"bytes"
	"io"
	"net/http"
	"sync"
)

// maxResponse bounds what is kept of a response, in bytes.
const maxResponse = 1 << 20

// Responses keeps the bodies of a service's responses, which say what became of a message. It may be used
// concurrently.
type Responses struct {
	mu  sync.Mutex
	all [][]byte
}

// Tap returns a transport that keeps the responses of another.
func (r *Responses) Tap(next http.RoundTripper) http.RoundTripper { return tap{r, next} }

// take returns the responses since its last call.
func (r *Responses) take() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

type tap struct {
	responses *Responses
	next      http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t tap) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		resp.Body = &body{ReadCloser: resp.Body, responses: t.responses}
	}
	return resp, err
}

// body keeps what is read of it when it is closed.
type body struct {
	io.ReadCloser
	responses *Responses
	read      bytes.Buffer
	once      sync.Once
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	_, _ = b.read.Write(p[:min(n, maxResponse-b.read.Len())]) // into memory
	return n, err
}

// Close implements [io.Closer].
func (b *body) Close() error {
	b.once.Do(func() {
		b.responses.mu.Lock()
		defer b.responses.mu.Unlock()
		b.responses.all = append(b.responses.all, b.read.Bytes())
	})
	return b.ReadCloser.Close()
}

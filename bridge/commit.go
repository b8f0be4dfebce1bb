package bridge

import (
	"io"
	"net/http"
	"sync"
)

// CommitOnWrite prepares a request with a body so that commit runs in the middle of
// it: after the first byte of the body has gone out, before the rest. A commit that
// fails breaks the request off, so the server never sees a whole one.
//
// This is what makes "the send was begun" mean something after a crash: a record
// that says so is written only when the server has begun to read, and a server that
// has seen only the beginning has done nothing.
//
// The body is sent in chunks, because net/http hands each chunk of a request to the
// connection before it reads the next. The request can not be replayed by the
// transport any more.
func CommitOnWrite(req *http.Request, commit func() error) {
	if req.Body == nil || commit == nil {
		return
	}
	req.Body = &committingBody{ReadCloser: req.Body, commit: sync.OnceValue(commit)}
	req.ContentLength = -1
	req.GetBody = nil
}

type committingBody struct {
	io.ReadCloser
	begun  bool
	commit func() error
}

// Read gives one byte first: the next Read means that it was written out.
func (b *committingBody) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if !b.begun {
		b.begun = true
		return b.ReadCloser.Read(p[:1])
	}
	if err := b.commit(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}

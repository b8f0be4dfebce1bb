package bridge

import (
	"errors"
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

// CommitGate runs the commit of one send at most once, and never after the send is
// over: a transport may still be reading the body when a cancelled request returns.
// Its Open is what [CommitOnWrite] is given.
type CommitGate struct {
	commit func() error

	mu    sync.Mutex
	shut  bool
	begun bool
	err   error
}

var errSendOver = errors.New("bridge: the send is over")

// NewCommitGate makes the gate of one send, which must be closed when the send
// returns.
func NewCommitGate(commit func() error) *CommitGate { return &CommitGate{commit: commit} }

// Open runs the commit and returns its error. Once it has run, Open returns the same
// error again; after [CommitGate.Close] it runs nothing and returns an error.
func (g *CommitGate) Open() error {
	// The commit runs under the lock, so that closing waits for it: a send that has
	// returned is never committed afterwards.
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.shut:
		return errSendOver
	case !g.begun:
		g.begun = true
		g.err = g.commit()
	}
	return g.err
}

// Close ends the send. It reports whether the commit was run, which means that the
// server may have seen the beginning of the request, and what the commit returned.
func (g *CommitGate) Close() (begun bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	return g.begun, g.err
}

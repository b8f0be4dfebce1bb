package pdf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"oneclaw/internal/sandbox"
)

var (
	// errClosed is returned after Close.
	errClosed = errors.New("pdf: closed")
	// errStart marks failures that are not the document's fault.
	errStart = errors.New("pdf: PDFium did not start")
	// errNoAnswer is returned if a child ends without an answer or with an invalid one.
	errNoAnswer = errors.New("the child ended without an answer")
)

// maxAnswerSize bounds an answer, in bytes: the largest picture or the longest text.
const maxAnswerSize = 64 << 20

// engine reads documents in children, as many in parallel as it has slots.
type engine struct {
	command []string
	setup   setup
	slots   chan struct{}
	closed  atomic.Bool
}

// withDocument opens a document in a new child and calls f with it. When ctx ends, the child is
// killed and the calls made by f fail.
func (e *engine) withDocument(ctx context.Context, file *os.File, f func(*remoteDocument) error) error {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if e.closed.Load() {
		return errClosed
	}
	c, err := sandbox.Start(ctx, e.command, file)
	if err != nil {
		return fmt.Errorf("%w: %w", errStart, err)
	}
	err = e.runSession(c, f)
	exit := c.End()
	if errors.Is(err, errNoAnswer) {
		err = errors.Join(err, exit)
	}
	return errors.Join(ctx.Err(), err)
}

// runSession waits until the child has opened the document, and calls f.
func (e *engine) runSession(c *sandbox.Process, f func(*remoteDocument) error) error {
	d := &remoteDocument{child: c}
	if err := c.Send(e.setup); err != nil {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if _, _, err := d.receive(); err != nil {
		return err
	}
	// Memory is limited only from here on: compiling PDFium does not depend on the document.
	c.Watch(uint64(e.setup.MaxMemory + maxExtraMemory))
	opened, _, err := d.receive()
	if err != nil {
		return err
	}
	d.pageCount, d.xfa, d.sum = opened.Count, opened.XFA, opened.Sum
	return f(d)
}

// close makes new calls fail and waits for the running ones.
func (e *engine) close() {
	e.closed.Store(true)
	// Taking every slot waits for all running calls.
	for range cap(e.slots) {
		e.slots <- struct{}{}
	}
	for range cap(e.slots) {
		<-e.slots
	}
}

// remoteDocument is a document opened in a child.
type remoteDocument struct {
	child     *sandbox.Process
	pageCount int
	xfa       bool   // a form that PDFium cannot show
	sum       string // of the bytes that the child has read
}

// receive reads all messages of a result. It returns the last one, and the joined data.
func (d *remoteDocument) receive() (reply, []byte, error) {
	var parts [][]byte
	for size := 0; ; {
		var r reply
		if err := d.child.Receive(&r); err != nil {
			return reply{}, nil, fmt.Errorf("%w: %w", errNoAnswer, err)
		}
		if size += len(r.Data); size > maxAnswerSize {
			return reply{}, nil, fmt.Errorf("%w: the answer is longer than %d bytes", errNoAnswer, maxAnswerSize)
		}
		parts = append(parts, r.Data)
		if !r.More {
			return r, slices.Concat(parts...), r.toError()
		}
	}
}

func (d *remoteDocument) sendRequest(q request) (reply, []byte, error) {
	if err := d.child.Send(q); err != nil {
		return reply{}, nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return d.receive()
}

// metaText returns a property of the document, "" if missing.
func (d *remoteDocument) metaText(tag string) (string, error) {
	_, value, err := d.sendRequest(request{Operation: opMeta, Tag: tag})
	return string(value), err
}

// attachedFiles returns the names of the attached files, "" if there are none.
func (d *remoteDocument) attachedFiles() (string, error) {
	_, names, err := d.sendRequest(request{Operation: opFiles})
	return string(names), err
}

// text returns at most limit characters of a page's text, and the number of all its characters.
func (d *remoteDocument) text(page, limit int) (text string, total int, err error) {
	r, data, err := d.sendRequest(request{Operation: opText, Page: page, Limit: limit})
	return string(data), r.Count, err
}

// picture is a page as PNG, with its size and the resolution used.
type picture struct {
	png                []byte
	width, height, dpi int
}

// render draws a page with at most limit pixels.
func (d *remoteDocument) render(page, dpi, limit int) (picture, error) {
	r, data, err := d.sendRequest(request{Operation: opPage, Page: page, DPI: dpi, Limit: limit})
	return picture{data, r.Width, r.Height, r.DPI}, err
}

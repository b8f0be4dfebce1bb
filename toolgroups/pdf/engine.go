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
	// errClosed is what calls get once the family is closed.
	errClosed = errors.New("pdf: closed")
	// errStart marks failures that have nothing to do with the document.
	errStart = errors.New("pdf: PDFium did not start")
	// errBroken is returned where a child ends without an answer or talks nonsense.
	errBroken = errors.New("the child ended without an answer")
)

// maxAnswer bounds an answer, in bytes: the largest picture or the longest text.
const maxAnswer = 64 << 20

// engine reads documents in children, as many at once as it has slots.
type engine struct {
	command []string
	setup   setup
	slots   chan struct{}
	closed  atomic.Bool
}

// use opens a document in a child of its own and runs f with it. When ctx ends, the child
// is killed in the middle of what it does, and f's calls fail.
func (e *engine) use(ctx context.Context, file *os.File, f func(*remote) error) error {
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
	err = e.converse(c, f)
	exit := c.End()
	if errors.Is(err, errBroken) {
		err = errors.Join(err, exit)
	}
	return errors.Join(ctx.Err(), err)
}

// converse serves f until it is done.
func (e *engine) converse(c *sandbox.Process, f func(*remote) error) error {
	d := &remote{child: c}
	if err := c.Send(e.setup); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	if _, _, err := d.receive(); err != nil {
		return err
	}
	// The compiler is not watched: it works for itself, where the cache has nothing.
	c.Watch(uint64(e.setup.MaxMemory + maxRoom))
	opened, _, err := d.receive()
	if err != nil {
		return err
	}
	d.count = opened.Count
	return f(d)
}

// close refuses new uses and waits for those that run.
func (e *engine) close() {
	e.closed.Store(true)
	// Who holds every slot is alone.
	for range cap(e.slots) {
		e.slots <- struct{}{}
	}
	for range cap(e.slots) {
		<-e.slots
	}
}

// remote is a document that a child has open.
type remote struct {
	child *sandbox.Process
	count int // pages
}

// receive reads a whole answer: its last message, and the data of all.
func (d *remote) receive() (reply, []byte, error) {
	var parts [][]byte
	for size := 0; ; {
		var r reply
		if err := d.child.Receive(&r); err != nil {
			return reply{}, nil, fmt.Errorf("%w: %w", errBroken, err)
		}
		if size += len(r.Data); size > maxAnswer {
			return reply{}, nil, fmt.Errorf("%w: the answer is longer than %d bytes", errBroken, maxAnswer)
		}
		parts = append(parts, r.Data)
		if !r.More {
			return r, slices.Concat(parts...), r.err()
		}
	}
}

func (d *remote) ask(q request) (reply, []byte, error) {
	if err := d.child.Send(q); err != nil {
		return reply{}, nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	return d.receive()
}

// meta returns a property of the document, "" where it has none.
func (d *remote) meta(tag string) (string, error) {
	_, value, err := d.ask(request{Ask: askMeta, Tag: tag})
	return string(value), err
}

// text returns at most limit characters of the text of a page, and how many it has.
func (d *remote) text(page, limit int) (text string, total int, err error) {
	r, data, err := d.ask(request{Ask: askText, Page: page, Limit: limit})
	return string(data), r.Count, err
}

// picture is a page as PNG, with its size and the resolution that was used.
type picture struct {
	png                []byte
	width, height, dpi int
}

// render draws a page with at most limit pixels.
func (d *remote) render(page, dpi, limit int) (picture, error) {
	r, data, err := d.ask(request{Ask: askPage, Page: page, DPI: dpi, Limit: limit})
	return picture{data, r.Width, r.Height, r.DPI}, err
}

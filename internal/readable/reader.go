package readable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"

	"oneclaw/internal/named"
	"oneclaw/internal/sandbox"
)

// atOnce is how many documents are read at a time.
const atOnce = 2

// errBroken is returned where a child ends without an answer: its limits ended it, or a fault.
var errBroken = errors.New("reading it took more time or memory than allowed")

// Reader reads documents, two at a time, each in a process of its own. It may be used
// concurrently and keeps nothing between documents.
type Reader struct {
	command []string
	slots   chan struct{}
	log     *slog.Logger
}

// NewReader makes a reader, which logs how a child ended that gave no answer; a nil log
// discards that. Nothing is started.
func NewReader(log *slog.Logger) (*Reader, error) {
	command, err := sandbox.Command(Argument)
	if err != nil {
		return nil, fmt.Errorf("readable: %w", err)
	}
	return &Reader{command: command, slots: make(chan struct{}, atOnce), log: cmp.Or(log, slog.New(slog.DiscardHandler))}, nil
}

// Page is a document that was fetched.
type Page struct {
	// Body is the document. It is read while others may wait, so it should come from near.
	Body io.Reader
	// ContentType is what its server says of it, "" for nothing.
	ContentType string
	// URL is its address, which links are resolved against.
	URL *url.URL
}

// Markdown calls use with the main content of a page, which is empty where the page has no
// text. The text need not be read to its end. The error is that of use, or says why the page
// cannot be read.
func (r *Reader) Markdown(ctx context.Context, p Page, use func(io.Reader) error) error {
	return r.read(ctx, task{Form: formPage, ContentType: p.ContentType, URL: p.URL.String()}, p.Body, use)
}

// Text calls use with all of a text in UTF-8, whatever its encoding was. See [Reader.Markdown].
func (r *Reader) Text(ctx context.Context, p Page, use func(io.Reader) error) error {
	return r.read(ctx, task{Form: formText, ContentType: p.ContentType}, p.Body, use)
}

// Whole returns all of a document in UTF-8 that people see, such as a mail, as Markdown.
func (r *Reader) Whole(ctx context.Context, document string) (text string, err error) {
	err = r.read(ctx, task{Form: formWhole, ContentType: UTF8}, strings.NewReader(document), Into(&text))
	return text, err
}

// UTF8 is the content type of a page that is a string of this program.
const UTF8 = "text/html; charset=utf-8"

// Into returns a function for [Reader.Markdown] that keeps all of the text.
func Into(text *string) func(io.Reader) error {
	return func(content io.Reader) error {
		data, err := io.ReadAll(content)
		*text = string(data)
		return err
	}
}

func (r *Reader) read(ctx context.Context, t task, document io.Reader, use func(io.Reader) error) error {
	if err := named.Take(ctx, r.slots); err != nil {
		return err
	}
	defer func() { <-r.slots }()
	from, to, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("readable: %w", err)
	}
	c, err := sandbox.Start(ctx, r.command, from)
	if err = errors.Join(err, from.Close()); err != nil {
		return errors.Join(fmt.Errorf("readable: start: %w", err), to.Close())
	}
	var sent error
	var sending sync.WaitGroup
	sending.Go(func() {
		_, sent = io.Copy(to, document)
		sent = errors.Join(sent, to.Close())
	})
	err = errBroken
	if c.Send(t) == nil {
		err = use(&answer{child: c})
	}
	exit := c.End()
	sending.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return sent // A child that answers has read all that was sent, and not more.
	case errors.Is(err, errBroken):
		r.log.Warn("a document could not be read", "err", errors.Join(sent, exit))
	}
	return err
}

// answer is the text that a child sends, in parts.
type answer struct {
	child *sandbox.Process
	part  []byte
	err   error
}

// Read returns what has come of the text, io.EOF at its end, or why there is none.
func (a *answer) Read(p []byte) (int, error) {
	for len(a.part) == 0 && a.err == nil {
		var r reply
		switch err := a.child.Receive(&r); {
		case err != nil:
			a.err = errBroken
		case r.Fault != "":
			a.err = errors.New(r.Fault)
		case len(r.Data) == 0:
			a.err = io.EOF
		}
		a.part = r.Data
	}
	if len(a.part) == 0 {
		return 0, a.err
	}
	n := copy(p, a.part)
	a.part = a.part[n:]
	return n, nil
}

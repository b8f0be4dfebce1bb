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

// maxParallel bounds the documents read in parallel.
const maxParallel = 2

// Reader reads documents, two at a time, each in a separate process. It may be used concurrently
// and keeps no state between documents.
type Reader struct {
	command []string
	slots   chan struct{}
	log     *slog.Logger
}

// NewReader makes a reader. If a child ends without an answer, the reason is logged; a nil log
// discards it. It starts nothing.
func NewReader(log *slog.Logger) (*Reader, error) {
	command, err := sandbox.Command(Argument)
	if err != nil {
		return nil, fmt.Errorf("readable: %w", err)
	}
	return &Reader{command: command, slots: make(chan struct{}, maxParallel), log: cmp.Or(log, slog.New(slog.DiscardHandler))}, nil
}

// Page is a downloaded document.
type Page struct {
	// Body is the document. Other documents may wait while it is read, so it should be local.
	Body io.Reader
	// ContentType is the server's content type, or "".
	ContentType string
	// URL is its address, for resolving links.
	URL *url.URL
}

// Markdown calls use with the main content of a page, which is empty if the page has no text.
// use need not read to the end. The error is that of use, or says why the page cannot be read.
func (r *Reader) Markdown(ctx context.Context, p Page, use func(io.Reader) error) error {
	return r.read(ctx, task{Form: formPage, ContentType: p.ContentType, URL: p.URL.String()}, p.Body, use)
}

// Text calls use with a text converted to UTF-8. See [Reader.Markdown].
func (r *Reader) Text(ctx context.Context, p Page, use func(io.Reader) error) error {
	return r.read(ctx, task{Form: formText, ContentType: p.ContentType}, p.Body, use)
}

// VisibleText returns the visible text of a document in UTF-8, such as a mail, as Markdown.
func (r *Reader) VisibleText(ctx context.Context, document string) (text string, err error) {
	err = r.read(ctx, task{Form: formWhole, ContentType: UTF8}, strings.NewReader(document), StoreIn(&text))
	return text, err
}

// UTF8 is the content type for strings of this program.
const UTF8 = "text/html; charset=utf-8"

// StoreIn returns a function for [Reader.Markdown] that stores the text.
func StoreIn(text *string) func(io.Reader) error {
	return func(content io.Reader) error {
		data, err := io.ReadAll(content)
		*text = string(data)
		return err
	}
}

func (r *Reader) read(ctx context.Context, t task, document io.Reader, use func(io.Reader) error) error {
	if err := named.AcquireSlot(ctx, r.slots); err != nil {
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
	err = sandbox.ErrNoAnswer
	if c.Send(t) == nil {
		err = use(c.Answer())
	}
	exit := c.End()
	sending.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return sent // a child that answers has read everything that was sent
	case errors.Is(err, sandbox.ErrNoAnswer):
		r.log.Warn("a document could not be read", "err", errors.Join(sent, exit))
	}
	return err
}

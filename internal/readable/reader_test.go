package readable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"testing"

	"oneclaw/internal/readable"
)

// swelling is a page of 65 kB that becomes millions of parts: each of its paragraphs begins
// with all that the first one left open.
func swelling() string {
	var page strings.Builder
	page.WriteString("<p>")
	for i := range 400 {
		fmt.Fprintf(&page, "<font a=%d>", i)
	}
	return page.String() + strings.Repeat("<p>x", 15_000)
}

// A document that takes all the memory that it can get ends with an error that says so, and the
// next one is read.
func TestAPageThatSwellsEndsAlone(t *testing.T) {
	t.Parallel()
	_, err := markdown(t, swelling())
	if err == nil || !strings.Contains(err.Error(), "memory") {
		t.Errorf("got %v", err)
	}
	if _, err := newReader(t).VisibleText(t.Context(), swelling()); err == nil || !strings.Contains(err.Error(), "memory") {
		t.Errorf("as a mail: %v", err)
	}
	if got, err := markdown(t, "<p>a</p>"); err != nil || got != "a" {
		t.Errorf("another page: %q, %v", got, err)
	}
}

// The third document waits until one of two is done, and leaves when its time is over.
func TestTwoDocumentsAreReadAtATime(t *testing.T) {
	r := newReader(t)
	at := &url.URL{Scheme: "https", Host: "example.org"}
	read := func(ctx context.Context, use func(io.Reader) error) error {
		return r.Text(ctx, readable.Page{Body: strings.NewReader("a"), ContentType: "text/plain", URL: at}, use)
	}
	begun, release := make(chan struct{}), make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			if err := read(t.Context(), func(io.Reader) error { begun <- struct{}{}; <-release; return nil }); err != nil {
				t.Error(err)
			}
		})
		<-begun
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := read(over, func(io.Reader) error { t.Error("a third one was read"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(release)
	readers.Wait()
	var text string
	if err := read(t.Context(), readable.StoreIn(&text)); err != nil || text != "a" {
		t.Errorf("%q, %v", text, err)
	}
}

// What uses a text may leave it before its end; an error of its own is the one that is returned.
func TestATextNeedNotBeReadToItsEnd(t *testing.T) {
	wrong := errors.New("enough")
	page := readable.Page{Body: strings.NewReader(strings.Repeat("word ", 1<<20)), ContentType: "text/plain"}
	err := newReader(t).Text(t.Context(), page, func(text io.Reader) error {
		_, err := io.CopyN(io.Discard, text, 10)
		return errors.Join(err, wrong)
	})
	if !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
}

// A document without an end is read until its call ends.
func TestADocumentWithoutEndEndsWithItsCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := newReader(t).Text(ctx, readable.Page{Body: endless{}}, func(text io.Reader) error {
		cancel()
		return readable.StoreIn(new(string))(text)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// endless is a document that does not end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, "words and words "), nil }

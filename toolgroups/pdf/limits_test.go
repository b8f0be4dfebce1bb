package pdf_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/pdf"
)

// A page that would take hours is stopped in the middle, and the tools work on.
func TestBombIsStopped(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{Workers: 1})
	d.put(t, "bomb.pdf", bomb(t, 0).bytes())
	d.put(t, "good.pdf", numbered(1).bytes())
	d.must(t, "pdf_info", `{"path":"good.pdf"}`)
	for _, tool := range []string{"pdf_render_page", "pdf_extract_text"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		res, err := d.run(ctx, tool, `{"path":"bomb.pdf","page":1}`)
		if err == nil || err.Code != toolgroups.CodeTimeout && err.Code != toolgroups.CodeCancelled {
			t.Errorf("%s: %+v, %s", tool, err, res.Text)
		}
		cancel()
		d.must(t, "pdf_info", `{"path":"good.pdf"}`)
	}
}

// What was read when the time ends is returned.
func TestLongDocumentStopsInTime(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{})
	d.put(t, "long.pdf", bomb(t, 3).bytes())
	d.must(t, "pdf_info", `{"path":"long.pdf"}`)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // most of it for a busy machine to come to page 4
	defer cancel()
	res, err := d.run(ctx, "pdf_extract_text", `{"path":"long.pdf"}`)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	if !strings.Contains(res.Text, "page 3 here") || !strings.Contains(res.Text, `because the time was over, at page 4; 1 of 4`) {
		t.Errorf("got %s", res.Text)
	}
}

func TestCancelledCall(t *testing.T) {
	d := newDesk(t, pdf.Config{})
	d.put(t, "x.pdf", numbered(1).bytes())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.run(ctx, "pdf_info", `{"path":"x.pdf"}`); err == nil || err.Code != toolgroups.CodeCancelled {
		t.Errorf("%+v", err)
	}
}

func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{Workers: 2})
	d.put(t, "x.pdf", numbered(4).bytes())
	var wg sync.WaitGroup
	for i := range 5 { // more than there are workers
		wg.Go(func() {
			page := i%4 + 1
			res, err := d.run(t.Context(), "pdf_extract_text", fmt.Sprintf(`{"path":"x.pdf","pages":"%d"}`, page))
			if err != nil || !strings.Contains(res.Text, fmt.Sprintf("page %d here", page)) {
				t.Errorf("page %d: %q, %+v", page, res.Text, err)
			}
		})
	}
	wg.Wait()
}

func TestClose(t *testing.T) {
	d := newDesk(t, pdf.Config{})
	d.put(t, "x.pdf", numbered(1).bytes())
	d.must(t, "pdf_info", `{"path":"x.pdf"}`)
	if err := d.family.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.run(t.Context(), "pdf_info", `{"path":"x.pdf"}`); err == nil || err.Code != toolgroups.CodeExecution {
		t.Errorf("after Close: %+v", err)
	}
}

func TestNewRefusesNegativeLimits(t *testing.T) {
	for _, cfg := range []pdf.Config{{MaxFile: -1}, {Workers: -1}, {MaxMemory: 5 << 30}} {
		if _, err := pdf.New(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

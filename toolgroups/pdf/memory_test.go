package pdf_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"oneclaw/internal/sandbox"
	"oneclaw/toolgroups/pdf"
)

// swelling is a small file whose one page is made of half a million lines, which PDFium keeps
// in memory one by one.
func swelling(t testing.TB) paper {
	t.Helper()
	p := paper{pages: []string{"/X Do"}}
	p.resources = "/XObject << /X 6 0 R >>"
	p.objects = []string{stream("/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Filter /FlateDecode", deflated(t, "0 0 m 9 9 l S\n", 500_000))}
	return p
}

// deflated is a text, repeated and compressed.
func deflated(t testing.TB, text string, times int) string {
	t.Helper()
	var data bytes.Buffer
	w := zlib.NewWriter(&data)
	_, err := w.Write(bytes.Repeat([]byte(text), times))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return data.String()
}

// peak is the most memory that this process has had, in bytes.
func peak(t testing.TB) uint64 {
	t.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc here")
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Skip("no peak of memory here")
	return 0
}

// A document that takes all the memory that it can get ends with an error; this process
// does not grow by it, and no child is left.
func TestADocumentCannotTakeTheMemoryOfTheProgram(t *testing.T) {
	d := newDesk(t, pdf.Config{MaxMemory: 32 << 20})
	data := swelling(t).bytes()
	if len(data) > 50_000 {
		t.Errorf("the document is no trap: it has %d bytes", len(data))
	}
	d.put(t, "evil.pdf", data)
	d.put(t, "good.pdf", numbered(1).bytes())
	before := peak(t)
	for _, tool := range []string{"pdf_extract_text", "pdf_render_page"} {
		res, err := d.run(t.Context(), tool, `{"path":"evil.pdf","page":1}`)
		if err == nil || err.Code != pdf.CodePDF || !strings.Contains(err.Message, "more memory than allowed") {
			t.Errorf("%s: %+v, %s", tool, err, res.Text)
		}
		d.must(t, "pdf_info", `{"path":"good.pdf"}`)
	}
	// A peak can sink: the kernel counts it in steps, and without what is swapped out.
	if after := peak(t); after > before+64<<20 {
		t.Errorf("this process has taken %d MiB more", (after-before)>>20)
	}
	once, cancel := context.WithCancel(t.Context())
	cancel()
	// A child has far more than what a peak may lack.
	const counted = 16 << 20
	if err := sandbox.WatchMemory(once, os.Getpid(), peak(t)+counted); err != nil {
		t.Errorf("all processes have more than this one had at most: %v", err)
	}
}

package pdf_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"oneclaw/toolgroups/pdf"
)

// resident is how much memory the process has, in MB, 0 where that is unknown.
func resident() float64 {
	runtime.GC()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return float64(pages*os.Getpagesize()) / (1 << 20)
}

// BenchmarkFirstCall starts PDFium from the compilation cache, answers one call
// and gives everything back.
func BenchmarkFirstCall(b *testing.B) {
	for b.Loop() {
		d := newDesk(b, pdf.Config{})
		d.put(b, "x.pdf", numbered(1).bytes())
		d.must(b, "pdf_info", `{"path":"x.pdf"}`)
		b.StopTimer()
		open := resident()
		if err := d.family.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(open, "MB-open")
		b.ReportMetric(resident(), "MB-closed")
		b.StartTimer()
	}
}

func BenchmarkInfo(b *testing.B) { benchmark(b, "pdf_info", 1, `{"path":"x.pdf"}`) }

func BenchmarkExtractText(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			benchmark(b, "pdf_extract_text", n, `{"path":"x.pdf","max_chars":29000}`)
		})
	}
}

func BenchmarkRenderPage(b *testing.B) {
	benchmark(b, "pdf_render_page", 1, `{"path":"x.pdf","page":1}`)
}

func benchmark(b *testing.B, tool string, pages int, args string) {
	d := newDesk(b, pdf.Config{})
	d.put(b, "x.pdf", numbered(pages).bytes())
	d.must(b, tool, args)
	for b.Loop() {
		d.must(b, tool, args)
	}
}

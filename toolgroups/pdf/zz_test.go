package pdf_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"os"
	"strings"
	"testing"

	"oneclaw/toolgroups/pdf"
)

func deflate(b []byte) []byte {
	var out bytes.Buffer
	w, _ := zlib.NewWriterLevel(&out, 9)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func hwm() string {
	d, _ := os.ReadFile("/proc/self/status")
	for l := range strings.Lines(string(d)) {
		if strings.HasPrefix(l, "VmHWM") || strings.HasPrefix(l, "VmRSS") {
			fmt.Print(l)
		}
	}
	return ""
}

func TestZZ(t *testing.T) {
	d := newDesk(t, pdf.Config{})
	kind := os.Getenv("KIND")
	p := paper{pages: []string{line("x")}}
	switch kind {
	case "content":
		p.pages = nil
		data := deflate(bytes.Repeat([]byte("0 0 m 9 9 l S\n"), 30<<20/14))
		p.pages = []string{""}
		b := p.bytes()
		_ = b
		p = paper{pages: []string{"/X Do"}}
		p.resources = fmt.Sprintf("/XObject << /X %d 0 R >>", p.firstObject())
		p.objects = []string{stream("/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Filter /FlateDecode", string(data))}
	case "image":
		p = paper{pages: []string{"500 0 0 500 0 0 cm /X Do"}}
		p.resources = fmt.Sprintf("/XObject << /X %d 0 R >>", p.firstObject())
		data := deflate(deflate(make([]byte, 14000*14000)))
		p.objects = []string{stream("/Type /XObject /Subtype /Image /Width 14000 /Height 14000 /BitsPerComponent 8 /ColorSpace /DeviceGray /Filter [/FlateDecode /FlateDecode]", string(data))}
	}
	b := p.bytes()
	fmt.Println("size", len(b))
	d.put(t, "x.pdf", b)
	hwm()
	res, err := d.run(t.Context(), os.Getenv("TOOL"), `{"path":"x.pdf","page":1}`)
	fmt.Println(res.Text, err)
	hwm()
}

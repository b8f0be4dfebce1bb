package pdf_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// paper describes a PDF that a test needs.
type paper struct {
	pages  []string // content streams
	width  float64  // points; 0 means A4
	height float64
	info   map[string]string
	// objects are more objects, from number 4 + 2 per page on; resources is put
	// into every page's /Resources.
	objects   []string
	resources string
	// annotations is put into every page's /Annots, and catalog into the catalog.
	annotations, catalog string
	// withoutInfo leaves the dictionary of properties out.
	withoutInfo bool
}

// line is a content stream that shows one line of text.
func line(text string) string {
	return fmt.Sprintf("BT /F1 12 Tf 72 700 Td (%s) Tj ET", text)
}

// firstObject is the number of the first of p.objects.
func (p paper) firstObject() int { return 4 + 2*len(p.pages) }

// bytes writes the file with a correct cross-reference table.
func (p paper) bytes() []byte {
	if p.width == 0 {
		p.width, p.height = 595, 842
	}
	kids := make([]string, len(p.pages))
	for i := range p.pages {
		kids[i] = fmt.Sprintf("%d 0 R", 4+2*i)
	}
	var info strings.Builder
	for k, v := range p.info {
		fmt.Fprintf(&info, "/%s (%s) ", k, v)
	}
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R " + p.catalog + " >>",
		fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), len(kids)),
		"<< " + info.String() + ">>",
	}
	for i, content := range p.pages {
		objects = append(objects, fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %g %g] /Contents %d 0 R "+
			"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> %s >> /Annots [%s] >>",
			p.width, p.height, 5+2*i, p.resources, p.annotations), stream("", content))
	}
	objects = append(objects, p.objects...)
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	offsets := make([]int, len(objects))
	for i, o := range objects {
		offsets[i] = b.Len()
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	properties := "/Info 3 0 R"
	if p.withoutInfo {
		properties = ""
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, properties, start)
	return b.Bytes()
}

func stream(dict, content string) string {
	return fmt.Sprintf("<< %s /Length %d >>\nstream\n%s\nendstream", dict, len(content), content)
}

// text makes a paper with a line per page.
func text(lines ...string) paper {
	var p paper
	for _, l := range lines {
		p.pages = append(p.pages, line(l))
	}
	return p
}

// annotate adds an annotation that shows a line of text to every page. about has its other keys.
func (p *paper) annotate(about, text string) {
	n := p.firstObject() + len(p.objects)
	p.annotations += fmt.Sprintf("%d 0 R ", n)
	p.objects = append(p.objects,
		fmt.Sprintf("<< /Type /Annot /Rect [120 %d 320 %d] /AP << /N %d 0 R >> %s >>", 660-10*n, 680-10*n, n+1, about),
		stream("/Type /XObject /Subtype /Form /BBox [0 0 200 20] /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>",
			"BT /F1 12 Tf 2 4 Td ("+text+") Tj ET"))
}

// numbered makes a paper whose page n says "page n here".
func numbered(n int) paper {
	var p paper
	for i := range n {
		p.pages = append(p.pages, line(fmt.Sprintf("page %d here", i+1)))
	}
	return p
}

// bomb is a small file whose last page takes longer to draw and to read than anyone will
// wait, and no memory: one form, again and again, of operators that do nothing. pages is
// how many pages stand before it.
func bomb(t *testing.T, pages int) paper {
	p := numbered(pages)
	p.pages = append(p.pages, strings.Repeat("/X Do ", 200))
	p.resources = fmt.Sprintf("/XObject << /X %d 0 R >>", p.firstObject())
	p.objects = []string{stream("/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Filter /FlateDecode", deflated(t, "n ", 5_000_000))}
	return p
}

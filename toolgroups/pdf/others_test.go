package pdf_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/emulator/npmtest"
	"oneclaw/toolgroups/pdf"
)

//go:embed testdata/others/pdfs.cjs
var pdfsScript string

// pageHead matches what precedes the text of a page, and aside what precedes what is not text of the page itself.
var (
	pageHead = regexp.MustCompile(`\n--- Page (\d+) ---\n`)
	aside    = regexp.MustCompile(`\n(?:Links|Comments|Form fields):\n`)
)

// The pages of PDFs that other libraries made say here what pdf.js finds on them, line by line.
func TestPagesAreReadAsOthersReadThem(t *testing.T) {
	t.Parallel()
	var list []struct {
		Name  string
		Data  []byte
		Pages []string
		About []string
	}
	if err := json.Unmarshal(npmtest.Run(t, pdfsScript, nil, "pdf-lib", "pdfkit", "pdfjs-dist"), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 20 {
		t.Errorf("only %d PDFs were made", len(list))
	}
	d := newDesk(t, pdf.Config{})
	for _, m := range list {
		d.put(t, m.Name, m.Data)
		text, _, _ := strings.Cut(d.must(t, "pdf_extract_text", fmt.Sprintf(`{"path":%q}`, m.Name)).Text, "\n[")
		said, want, got := "", map[string][]string{}, map[string][]string{}
		for i, page := range m.Pages {
			if lines := linesOf(page); lines != nil {
				want[fmt.Sprint(i+1)] = lines
			}
		}
		heads, bodies := pageHead.FindAllStringSubmatch(text, -1), pageHead.Split(text, -1)[1:]
		for i, head := range heads {
			shown := aside.Split(bodies[i], 2)
			got[head[1]] = linesOf(shown[0])
			said += strings.Join(shown[1:], "")
		}
		for _, want := range m.About {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %q is missing in %q", m.Name, want, said)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-theirs +ours):\n%s", m.Name, diff)
		}
	}
}

// linesOf returns the lines of a page that are not empty, with single spaces.
func linesOf(page string) (list []string) {
	for line := range strings.Lines(page) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			list = append(list, line)
		}
	}
	return list
}

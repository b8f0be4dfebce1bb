package pdf_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/pdf"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == pdf.ChildArgument {
		if err := pdf.Serve(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	if err := warm(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// warm fills the compilation cache outside the time limits of calls: under the
// race detector PDFium takes half a minute to compile.
func warm() error {
	family, err := pdf.New(pdf.Config{CacheDir: cacheDir()})
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pdf")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "x.pdf"), numbered(1).bytes(), 0o600); err != nil {
		return err
	}
	_, err = family.Group().Tools[0].Run(context.Background(), toolgroups.Call{
		Arguments: json.RawMessage(`{"path":"x.pdf"}`), Scope: toolgroups.Scope{Workspace: dir},
	})
	return errors.Join(err, family.Close())
}

// cacheDir is shared by all runs, so that only the first of them compiles PDFium.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "oneclaw-test")
}

// harness is a workspace and the tools at work in it.
type harness struct {
	dir    string
	family *pdf.PDF
	tools  map[string]toolgroups.Tool
}

func newDesk(t testing.TB, cfg pdf.Config) *harness {
	t.Helper()
	cfg.CacheDir = cacheDir()
	family, err := pdf.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := family.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &harness{dir: t.TempDir(), family: family, tools: map[string]toolgroups.Tool{}}
	for _, tool := range family.Group().Tools {
		tool.Timeout = 5 * time.Minute // other programs may keep this machine busy
		d.tools[tool.Name] = tool
	}
	return d
}

func (d *harness) put(t testing.TB, name string, data []byte) {
	t.Helper()
	file := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// run dispatches a call as the agent does, with validation.
func (d *harness) run(ctx context.Context, tool, args string) (toolgroups.Result, *toolgroups.Error) {
	return toolgroups.Run(ctx, nil, d.tools[tool], toolgroups.Call{
		Name: tool, Arguments: json.RawMessage(args), Scope: toolgroups.Scope{Workspace: d.dir},
	})
}

func (d *harness) must(t testing.TB, tool, args string) toolgroups.Result {
	t.Helper()
	res, err := d.run(t.Context(), tool, args)
	if err != nil {
		t.Fatalf("%s(%s): %s: %s", tool, args, err.Code, err.Message)
	}
	return res
}

// The groups pdf, scheduled_tasks and js_tool_management have theirs.
func TestPDFHoldsThreeTools(t *testing.T) {
	group := newDesk(t, pdf.Config{}).family.Group()
	var names []string
	for _, tool := range group.Tools {
		names = append(names, tool.Name)
	}
	if got, want := strings.Join(names, " "), "pdf_info pdf_extract_text pdf_render_page"; got != want {
		t.Errorf("tools %s, want %s", got, want)
	}
	if group.Name != "pdf" || group.DisplayName != "PDF Tools" {
		t.Errorf("group %q, %q", group.Name, group.DisplayName)
	}
}

func TestInfo(t *testing.T) {
	d := newDesk(t, pdf.Config{})
	p := numbered(3)
	p.info = map[string]string{
		"Title": "A\\nB \\(draft\\)", "Author": "Ann", "CreationDate": "D:20260301093000+01'00'", "Producer": "test",
	}
	data := p.bytes()
	d.put(t, "docs/report.pdf", data)
	for _, path := range []string{"docs/report.pdf", filepath.Join(d.dir, "docs/report.pdf")} {
		got := d.must(t, "pdf_info", fmt.Sprintf(`{"path":%q}`, path)).Text
		want := fmt.Sprintf("File: report.pdf\nPath: docs/report.pdf\nPages: 3\nSize: %d bytes\n"+
			"Title: A B (draft)\nAuthor: Ann\nProducer: test\nCreated: 2026-03-01T09:30:00+01:00", len(data))
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// A document without any properties, as many programs write it, is read like others.
func TestInfoWithoutProperties(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{})
	p := numbered(2)
	p.withoutInfo = true
	data := p.bytes()
	d.put(t, "bill.pdf", data)
	want := fmt.Sprintf("File: bill.pdf\nPath: bill.pdf\nPages: 2\nSize: %d bytes", len(data))
	if got := d.must(t, "pdf_info", `{"path":"bill.pdf"}`).Text; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestExtractText(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{})
	d.put(t, "ten.pdf", numbered(10).bytes())
	d.put(t, "scan.pdf", paper{pages: []string{"", "0 0 100 100 re f"}}.bytes())
	d.put(t, "mixed.pdf", paper{pages: []string{"", line("second"), "", ""}}.bytes())
	for _, tc := range []struct{ name, args, want string }{
		{"the exact set", `{"path":"ten.pdf","pages":"1, 3,5-7"}`, "File: ten.pdf\nPages: 1,3,5-7 of 10\n" +
			"\n--- Page 1 ---\npage 1 here\n\n--- Page 3 ---\npage 3 here\n\n--- Page 5 ---\npage 5 here\n" +
			"\n--- Page 6 ---\npage 6 here\n\n--- Page 7 ---\npage 7 here\n"},
		{"a set in any order", `{"path":"ten.pdf","pages":"10,2,2"}`, "File: ten.pdf\nPages: 2,10 of 10\n" +
			"\n--- Page 2 ---\npage 2 here\n\n--- Page 10 ---\npage 10 here\n"},
		{"cut", `{"path":"ten.pdf","pages":"2-9","max_chars":46}`, "File: ten.pdf\nPages: 2-9 of 10\n" +
			"\n--- Page 2 ---\npage 2 here\n\n--- Page 3 ---\n…\n" +
			"\n[Truncated after 46 characters, at page 3; 7 of 8 selected pages are missing or cut. Go on with pages \"3-9\".]"},
		{"no text", `{"path":"scan.pdf"}`, "File: scan.pdf\nPages: 1-2 of 2\n" +
			"\n[These pages have no text layer; they are probably scans. Use pdf_render_page to see them.]"},
		{"some pages without text", `{"path":"mixed.pdf"}`, "File: mixed.pdf\nPages: 1-4 of 4\n\n--- Page 2 ---\nsecond\n" +
			"\n[No text on pages 1,3-4; pdf_render_page shows them.]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := d.must(t, "pdf_extract_text", tc.args).Text; got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// What counts as read is what the text is from, whatever a call beside this one makes of the file: in its place may stand
// by then what somebody sent.
func TestWhatWasReadIsWhatTheTextIsFrom(t *testing.T) {
	d := newDesk(t, pdf.Config{})
	read, later := text("written first, read").bytes(), text("written meanwhile..").bytes()
	d.put(t, "mine.pdf", read)
	ctx := toolgroups.WithReporter(t.Context(), func(string) { d.put(t, "mine.pdf", later) })
	res, fault := d.run(ctx, "pdf_extract_text", `{"path":"mine.pdf"}`)
	if fault != nil {
		t.Fatalf("%s: %s", fault.Code, fault.Message)
	}
	if !strings.Contains(res.Text, "written first") || res.Read != toolgroups.SumOf(read) || len(read) != len(later) {
		t.Errorf("%q is the text of a file of %d bytes with the sum %s, want %d, %s", res.Text, len(later), res.Read, len(read), toolgroups.SumOf(read))
	}
}

func TestWhatWasFilledInIsText(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{})
	p := text("Name", "Second page")
	p.annotate("/Subtype /Widget /FT /Tx /T (name) /V (Ada Lovelace) /F 4", "Ada Lovelace")
	p.annotate("/Subtype /FreeText /Contents (typed) /F 4", "typed onto it")
	p.annotate("/Subtype /Widget /FT /Tx /T (no) /F 2", "hidden")
	p.annotate("/Subtype /Popup /F 4", "popup")
	d.put(t, "form.pdf", p.bytes())
	got := d.must(t, "pdf_extract_text", `{"path":"form.pdf"}`).Text
	for _, want := range []string{"Name", "Ada Lovelace", "typed onto it", "Second page"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "hidden") || strings.Contains(got, "popup") {
		t.Errorf("what no page shows is in\n%s", got)
	}
}

// A program may leave it to the reader to make the appearances of what it filled in.
func TestWhatWasFilledInWithoutAppearanceIsText(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{})
	p := text("Name")
	field := fmt.Sprintf("%d 0 R", p.firstObject())
	p.annotations = field
	p.objects = []string{"<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Ada Lovelace) /DA (/Helv 12 Tf 0 g) /F 4 /Rect [120 600 320 620] >>"}
	p.catalog = "/AcroForm << /NeedAppearances true /Fields [" + field + "] /DA (/Helv 12 Tf 0 g) " +
		"/DR << /Font << /Helv << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
	d.put(t, "form.pdf", p.bytes())
	if got := d.must(t, "pdf_extract_text", `{"path":"form.pdf"}`).Text; !strings.Contains(got, "Ada Lovelace") {
		t.Errorf("got\n%s", got)
	}
}

// glyphs shows lines of text from the right or left margin, with an object for each letter, as Qt writes them.
// All letters are as wide as a digit.
func glyphs(lines ...string) string {
	var b strings.Builder
	for i, text := range lines {
		x := 72
		if rest, right := strings.CutPrefix(text, ">"); right {
			text, x = rest, 520-8*len(rest)
		}
		fmt.Fprintf(&b, "BT /F1 12 Tf %d %d Td ", x, 760-40*i)
		for _, r := range text {
			fmt.Fprintf(&b, "(%c) Tj 6.672 0 Td ", r)
		}
		b.WriteString("ET ")
	}
	return b.String()
}

func TestAPageOfSingleLettersKeepsItsLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{})
	d.put(t, "letters.pdf", paper{pages: []string{glyphs("headphone", "open2026", ">bonbon", "hound")}}.bytes())
	for _, tc := range []struct{ args, want string }{
		{`{"path":"letters.pdf"}`, "headphone\nopen2026\nbonbon\nhound\n"},
		{`{"path":"letters.pdf","max_chars":40}`, "headphone\nopen2026\nbon…\n"},
	} {
		_, got, _ := strings.Cut(d.must(t, "pdf_extract_text", tc.args).Text, "--- Page 1 ---\n")
		if got, _, _ = strings.Cut(got, "\n[Truncated"); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.args, got, tc.want)
		}
	}
}

func TestADamagedPageHidesNoOthers(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{})
	d.put(t, "x.pdf", bytes.Replace(numbered(3).bytes(), []byte("/Count 3"), []byte("/Count 4"), 1))
	got := d.must(t, "pdf_extract_text", `{"path":"x.pdf"}`).Text
	for _, want := range []string{"page 1 here", "page 3 here", "[Damaged pages, which cannot be read: 4.]"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func TestAPageThatDoesNotFitIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{})
	d.put(t, "long.pdf", text(strings.Repeat("0123456789 ", 4000), "the end").bytes())
	got := d.must(t, "pdf_extract_text", `{"path":"long.pdf"}`).Text
	if strings.Contains(got, "the whole is in the file") || !strings.Contains(got, "at page 1; 2 of 2 selected pages are missing or cut. With max_chars 5000000, all of its text is saved to a file.]") {
		t.Errorf("it ends %q", got[len(got)-200:])
	}
	if got = d.must(t, "pdf_extract_text", `{"path":"long.pdf","max_chars":5000000}`).Text; !strings.Contains(got, "the whole is in the file ") || strings.Contains(got, "Truncated") {
		t.Errorf("it ends %q", got[len(got)-200:])
	}
}

// More than a result holds goes into a file that the result names.
func TestExtractTextIntoFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{})
	d.put(t, "long.pdf", text(strings.Repeat("0123456789 ", 2000), strings.Repeat("abcdefghij ", 2000), "the end").bytes())
	short := d.must(t, "pdf_extract_text", `{"path":"long.pdf"}`).Text
	if n := len([]rune(short)); n > toolgroups.MaxText || !strings.Contains(short, `at page 2; 2 of 3 selected pages`) {
		t.Errorf("default: %d characters, ends %q", n, short[len(short)-200:])
	}
	long := d.must(t, "pdf_extract_text", `{"path":"long.pdf","max_chars":100000}`).Text
	if n := len([]rune(long)); n > toolgroups.MaxText || !strings.Contains(long, "the whole is in the file ") {
		t.Errorf("large: %d characters, ends %q", n, long[len(long)-200:])
	}
	_, name, _ := strings.Cut(long, "the whole is in the file ")
	all, err := os.ReadFile(filepath.Join(d.dir, strings.TrimSuffix(name, "]")))
	if err != nil || !strings.Contains(string(all), "the end") || strings.Count(string(all), "abcdefghij") != 2000 {
		t.Errorf("the file has %d bytes, %v", len(all), err)
	}
}

func TestRenderPage(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{MaxPixels: 1_000_000})
	p := numbered(2)
	p.width, p.height = 200, 100
	d.put(t, "a/b.c.pdf", p.bytes())
	wide := text("wide")
	wide.width, wide.height = 14400, 14400
	d.put(t, "wide.pdf", wide.bytes())
	thin := text("thin")
	thin.width, thin.height = 14400, 1
	d.put(t, "thin.pdf", thin.bytes())
	for _, tc := range []struct {
		name, args, file, size string
		w, h                   int
	}{
		{"default", `{"path":"a/b.c.pdf","page":2}`, "a/b.c-page2.png", "416 x 208 pixels at 150 DPI", 416, 208},
		{"dpi", `{"path":"a/b.c.pdf","page":1,"dpi":72}`, "a/b.c-page1.png", "200 x 100 pixels at 72 DPI", 200, 100},
		{"dpi below", `{"path":"a/b.c.pdf","page":1,"dpi":1}`, "a/b.c-page1.png", "200 x 100 pixels at 72 DPI", 200, 100},
		{"dpi above", `{"path":"a/b.c.pdf","page":1,"dpi":9999}`, "a/b.c-page1.png", "833 x 416 pixels at 300 DPI", 833, 416},
		{
			"200 inches", `{"path":"wide.pdf","page":1,"dpi":300}`, "wide-page1.png",
			"1000 x 1000 pixels at 5 DPI (not 300: the page is very large)", 1000, 1000,
		},
		{"thin", `{"path":"thin.pdf","page":1}`, "thin-page1.png", "30000 x 2 pixels at 150 DPI", 30000, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := d.must(t, "pdf_render_page", tc.args)
			if len(res.Files) != 1 {
				t.Fatalf("files %v", res.Files)
			}
			// A folder of each picture is between the file's own folder and the name.
			dir, name := filepath.Split(res.Files[0].Path)
			if got := filepath.Join(filepath.Dir(filepath.Clean(dir)), name); got != filepath.Join("pdf-renders", tc.file) {
				t.Errorf("the picture is %q", res.Files[0].Path)
			}
			if !strings.HasPrefix(res.Text, "Saved: "+res.Files[0].Path+"\nSize: "+tc.size+"\nFile size: ") {
				t.Errorf("text %q", res.Text)
			}
			f, err := os.Open(filepath.Join(d.dir, res.Files[0].Path))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			pic, err := png.Decode(f)
			if err != nil || pic.Bounds().Dx() != tc.w || pic.Bounds().Dy() != tc.h {
				t.Fatalf("picture %v, %v", pic.Bounds(), err)
			}
			if r, g, b, a := pic.At(0, 0).RGBA(); r != 0xFFFF || g != 0xFFFF || b != 0xFFFF || a != 0xFFFF {
				t.Errorf("the background is %x %x %x %x", r, g, b, a)
			}
		})
	}
}

func TestARenderedPageReplacesNoOtherPicture(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ first, second string }{
		"files with one name":    {`{"path":"old/x.pdf","page":1}`, `{"path":"new/x.pdf","page":1}`},
		"two resolutions":        {`{"path":"x.pdf","page":1,"dpi":72}`, `{"path":"x.pdf","page":1,"dpi":300}`},
		"a file that is new now": {`{"path":"x.pdf","page":1}`, `{"path":"x.pdf","page":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, pdf.Config{})
			red := paper{pages: []string{"1 0 0 rg 0 0 595 842 re f"}}.bytes()
			d.put(t, "old/x.pdf", numbered(1).bytes())
			d.put(t, "new/x.pdf", red)
			d.put(t, "x.pdf", numbered(1).bytes())
			before := d.must(t, "pdf_render_page", tc.first).Files
			if tc.first == tc.second {
				d.put(t, "x.pdf", red)
			}
			after := d.must(t, "pdf_render_page", tc.second).Files
			if len(before) != 1 || len(after) != 1 || before[0].Path == after[0].Path {
				t.Errorf("files %v and %v", before, after)
			}
		})
	}
}

// What a tool renders can be sent as an image.
func TestRenderedPageIsDelivered(t *testing.T) {
	d := newDesk(t, pdf.Config{})
	d.put(t, "x.pdf", paper{pages: []string{"1 0 0 rg 0 0 595 842 re f"}}.bytes())
	res := d.must(t, "pdf_render_page", `{"path":"x.pdf","page":1,"dpi":72}`)
	if len(res.Files) != 1 || res.Files[0].Caption != "x.pdf, page 1" {
		t.Fatalf("files %+v", res.Files)
	}
	f, err := os.Open(filepath.Join(d.dir, res.Files[0].Path))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	pic, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if r, g, b, _ := pic.At(300, 400).RGBA(); r != 0xFFFF || g != 0 || b != 0 {
		t.Errorf("a red page is %x %x %x", r, g, b)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{MaxFile: 20_000})
	outside := filepath.Join(t.TempDir(), "out.pdf")
	if err := os.WriteFile(outside, numbered(1).bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(d.dir, "link.pdf")); err != nil {
		t.Fatal(err)
	}
	locked, err := os.ReadFile("testdata/encrypted.pdf")
	if err != nil {
		t.Fatal(err)
	}
	d.put(t, "locked.pdf", locked)
	d.put(t, "three.pdf", numbered(3).bytes())
	d.put(t, "empty.pdf", nil)
	d.put(t, "text.pdf", []byte("not a PDF at all"))
	d.put(t, "cut.pdf", numbered(3).bytes()[:200])
	d.put(t, "none.pdf", paper{}.bytes())
	d.put(t, "huge.pdf", append(numbered(1).bytes(), make([]byte, 20_000)...))
	d.put(t, "dir/x", nil)
	for _, tc := range []struct{ name, tool, args, code, text string }{
		{"no path", "pdf_info", `{}`, "validation_error", "'path' is missing"},
		{"path of another type", "pdf_info", `{"path":3}`, "validation_error", "'path'"},
		{"empty path", "pdf_info", `{"path":""}`, "validation_error", "'path' is empty"},
		{"no page", "pdf_render_page", `{"path":"three.pdf"}`, "validation_error", "'page' is missing"},
		{"missing", "pdf_info", `{"path":"nope.pdf"}`, "file_not_found", "'nope.pdf'"},
		{"missing, text", "pdf_extract_text", `{"path":"nope.pdf"}`, "file_not_found", "'nope.pdf'"},
		{"missing, picture", "pdf_render_page", `{"path":"nope.pdf","page":1}`, "file_not_found", "'nope.pdf'"},
		{"dots", "pdf_info", `{"path":"../out.pdf"}`, "permission_denied", "outside the workspace"},
		{"absolute", "pdf_info", fmt.Sprintf(`{"path":%q}`, outside), "permission_denied", "outside the workspace"},
		{"link", "pdf_extract_text", `{"path":"link.pdf"}`, "permission_denied", "outside the workspace"},
		{"link, picture", "pdf_render_page", `{"path":"link.pdf","page":1}`, "permission_denied", "outside the workspace"},
		{"folder", "pdf_info", `{"path":"dir"}`, "pdf_error", "not a file"},
		{"encrypted", "pdf_info", `{"path":"locked.pdf"}`, "pdf_error", "password-protected"},
		{"encrypted, text", "pdf_extract_text", `{"path":"locked.pdf"}`, "pdf_error", "password-protected"},
		{"empty", "pdf_info", `{"path":"empty.pdf"}`, "pdf_error", "is empty"},
		{"other format", "pdf_info", `{"path":"text.pdf"}`, "pdf_error", "not a PDF"},
		{"damaged", "pdf_info", `{"path":"cut.pdf"}`, "pdf_error", "damaged"},
		{"no pages", "pdf_info", `{"path":"none.pdf"}`, "pdf_error", "no pages"},
		{"too large", "pdf_info", `{"path":"huge.pdf"}`, "pdf_error", "limit of 20000 bytes"},
		{"page range", "pdf_extract_text", `{"path":"three.pdf","pages":"2-4"}`, "invalid_page_range", "3 pages"},
		{"page range of words", "pdf_extract_text", `{"path":"three.pdf","pages":"first"}`, "invalid_page_range", "3 pages"},
		{"page", "pdf_render_page", `{"path":"three.pdf","page":4}`, "invalid_page", "3 pages"},
		{"page zero", "pdf_render_page", `{"path":"three.pdf","page":0}`, "invalid_page", "3 pages"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, err := d.run(t.Context(), tc.tool, tc.args)
			if err == nil || err.Code != tc.code || !strings.Contains(err.Message, tc.text) {
				t.Fatalf("got %q, %+v; want %s with %q", res.Text, err, tc.code, tc.text)
			}
			if strings.Contains(err.Message, "wasm") {
				t.Errorf("the model sees a trace: %s", err.Message)
			}
		})
	}
}

// File paths of pdf_* are confined, for what they write as well.
func TestRenderCannotWriteOutside(t *testing.T) {
	d := newDesk(t, pdf.Config{})
	d.put(t, "x.pdf", numbered(1).bytes())
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(d.dir, "pdf-renders")); err != nil {
		t.Fatal(err)
	}
	if res, err := d.run(t.Context(), "pdf_render_page", `{"path":"x.pdf","page":1}`); err == nil {
		t.Errorf("written through a link: %q", res.Text)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside now holds %v, %v", entries, err)
	}
}

// No array reaches a provider without items; here there are none.
func TestSchemasAreComplete(t *testing.T) {
	d := newDesk(t, pdf.Config{})
	for _, tool := range d.family.Group().Tools {
		params, err := toolgroups.NormalizeParameters(tool.Parameters)
		if err != nil || string(params) != string(tool.Parameters) {
			t.Errorf("%s: %s, %v", tool.Name, tool.Parameters, err)
		}
	}
}

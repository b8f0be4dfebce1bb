package documents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"oneclaw/internal/markdown"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/documents"
	"oneclaw/toolgroups/documents/office"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == documents.ChildArgument {
		if err := documents.Serve(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// harness is a workspace and the tools at work in it.
type harness struct {
	dir   string
	tools map[string]toolgroups.Tool
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	family, err := documents.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	group, err := family.Group()
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{dir: t.TempDir(), tools: map[string]toolgroups.Tool{}}
	for _, tool := range group.Tools {
		tool.Timeout = 5 * time.Minute // other programs may keep this machine busy
		h.tools[tool.Name] = tool
	}
	return h
}

func (h *harness) put(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// sample puts a file of another program into the workspace.
func (h *harness) sample(t testing.TB, name string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../toolgroups/documents/office/testdata/files", name))
	if err != nil {
		t.Fatal(err)
	}
	h.put(t, name, data)
}

// run dispatches a call as the agent does, with validation.
func (h *harness) run(ctx context.Context, tool, args string) (toolgroups.Result, *toolgroups.Error) {
	return toolgroups.Run(ctx, nil, h.tools[tool], toolgroups.Call{
		Name: tool, Arguments: json.RawMessage(args), Scope: toolgroups.Scope{Workspace: h.dir},
	})
}

func (h *harness) must(t testing.TB, tool, args string) toolgroups.Result {
	t.Helper()
	res, err := h.run(t.Context(), tool, args)
	if err != nil {
		t.Fatalf("%s(%s): %s: %s", tool, args, err.Code, err.Message)
	}
	return res
}

// opened is the context of a call, which runs then once the call has opened its file and waits for its turn.
type opened struct {
	context.Context //nolint:containedctx // It is a context.
	once            sync.Once
	then            func()
}

func (o *opened) Done() <-chan struct{} {
	o.once.Do(o.then)
	return o.Context.Done()
}

// What counts as read is what the text is from, also if a script writes beside the call and sets the time back.
func TestWhatWasReadIsWhatTheTextIsFrom(t *testing.T) {
	h := newHarness(t)
	const before = "name,page\n"
	for args, tool := range map[string]string{`{"path":"n.csv"}`: "read_document", `{"path":"n.csv","query":"more"}`: "search_document"} {
		for what, content := range map[string]string{"appended": before + "more,2\n", "in its place": "many,more\n"} {
			h.put(t, "n.csv", []byte(before))
			name := filepath.Join(h.dir, "n.csv")
			ctx := &opened{Context: t.Context(), then: func() {
				info, err := os.Stat(name)
				if err != nil {
					t.Error(err)
				}
				h.put(t, "n.csv", []byte(content))
				if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
					t.Error(err)
				}
			}}
			res, err := h.tools[tool].Run(ctx, toolgroups.Call{Name: tool, Arguments: json.RawMessage(args), Scope: toolgroups.Scope{Workspace: h.dir}})
			if err != nil || !strings.Contains(res.Text, "more") || res.Read != toolgroups.SumOf([]byte(content)) {
				t.Errorf("%s, %s: %v, %q has the sum %s, want %s", tool, what, err, res.Text, res.Read, toolgroups.SumOf([]byte(content)))
			}
		}
	}
}

// fault runs a call that has to fail.
func (h *harness) fault(t testing.TB, tool, args string) *toolgroups.Error {
	t.Helper()
	res, err := h.run(t.Context(), tool, args)
	if err == nil {
		t.Fatalf("%s(%s): %s", tool, args, res.Text)
	}
	return err
}

// TestCallsAndAnswers shows what the model is told, call by call.
func TestCallsAndAnswers(t *testing.T) {
	h := newHarness(t)
	for _, name := range []string{"report.docx", "costs.xlsx", "talk.pptx", "book.epub", "report.odt"} {
		h.sample(t, name)
	}
	h.put(t, "list.csv", []byte("name,age\nMinka,4\n"))
	h.put(t, "note.txt", []byte("one\ntwo"))
	h.put(t, "picture.docx", emptyDocument(t))
	var got strings.Builder
	for _, call := range []struct{ tool, args string }{
		{"read_document", `{"path":"report.docx"}`},
		{"read_document", `{"path":"report.docx","part":"2"}`},
		{"read_document", `{"path":"report.docx","part":"1:5-1:8"}`},
		{"read_document", `{"path":"costs.xlsx"}`},
		{"read_document", `{"path":"costs.xlsx","part":"old"}`},
		{"read_document", `{"path":"costs.xlsx","part":"Costs!A2:D4"}`},
		{"read_document", `{"path":"talk.pptx","part":"2-3"}`},
		{"read_document", `{"path":"book.epub","part":"3"}`},
		{"read_document", `{"path":"report.odt"}`},
		{"read_document", `{"path":"list.csv"}`},
		{"read_document", `{"path":"note.txt"}`},
		{"read_document", `{"path":"picture.docx"}`},
		{"search_document", `{"path":"report.docx","query":"CRANE"}`},
		{"search_document", `{"path":"report.docx","query":"ships spring"}`},
		{"search_document", `{"path":"costs.xlsx","query":"rope"}`},
		{"search_document", `{"path":"talk.pptx","query":"penguins"}`},
	} {
		fmt.Fprintf(&got, ">>> %s %s\n%s\n\n", call.tool, call.args, h.must(t, call.tool, call.args).Text)
	}
	if *update {
		if err := os.WriteFile("testdata/calls.txt", []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/calls.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// emptyDocument is a Word document without text.
func emptyDocument(t testing.TB) []byte {
	t.Helper()
	return packed(t, "document.xml", "<document><body>", "<p/>", "</body></document>", 1)
}

var goOn = regexp.MustCompile(`Go on with part ("[^"]*")`)

// TestALongDocumentIsReadInPieces follows what each result says to go on with: every paragraph and
// row comes once, and no result is longer than results may be.
func TestALongDocumentIsReadInPieces(t *testing.T) {
	h := newHarness(t)
	var text, rows, md strings.Builder
	mark := func(n int) string { return fmt.Sprintf("<%05d>", n) }
	md.WriteString("# Long\n\n")
	rows.WriteString("| n | text |\n|---|---|\n")
	text.WriteString("n,text\n")
	for n := range 2_500 {
		if n%500 == 0 {
			fmt.Fprintf(&md, "## Chapter %d\n\n", n/500+1)
		}
		fmt.Fprintf(&md, "%s some words of a paragraph\n\n", mark(n))
		fmt.Fprintf(&rows, "| %s | some words of a row |\n", mark(n))
		fmt.Fprintf(&text, "%s,some words of a row\n", mark(n))
	}
	docx, err := markdown.Parse(md.String()).DOCX()
	if err != nil {
		t.Fatal(err)
	}
	xlsx, _, err := markdown.Parse("# First\n\n" + rows.String() + "\n# Second\n\n| a |\n|---|\n| <end> |\n").XLSX()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"long.docx": docx, "long.xlsx": xlsx, "long.csv": []byte(text.String()), "long.txt": []byte(text.String())} {
		h.put(t, name, data)
		for _, part := range []string{"", "1", "1:100-1:2400"} {
			first, last := 0, 2_499
			if part == "1:100-1:2400" {
				first, last = 200, 2_300
			}
			seen, calls := map[string]int{}, 0
			for next := fmt.Sprintf("%q", part); next != ""; calls++ {
				got := h.must(t, "read_document", fmt.Sprintf(`{"path":%q,"part":%s}`, name, next)).Text
				if len(got) > toolgroups.MaxText || calls > 20 {
					t.Fatalf("%s: call %d is %d characters long", name, calls, len(got))
				}
				if part == "" && calls == 0 && name == "long.docx" && !strings.Contains(got, "Outline:\n- 1:1 Long\n  - 1:2 Chapter 1\n  - 1:503 Chapter 2\n") {
					t.Errorf("%s: no outline in %.300s", name, got)
				}
				for _, m := range regexp.MustCompile(`<\w{5}>|<end>`).FindAllString(got, -1) {
					seen[m]++
				}
				next = ""
				if m := goOn.FindStringSubmatch(got); m != nil {
					next = m[1]
				}
			}
			if calls < 3 {
				t.Errorf("%s: %d calls", name, calls)
			}
			for n := first; n <= last; n++ {
				if seen[mark(n)] != 1 {
					t.Fatalf("%s, part %q: %s was seen %d times in %d calls", name, part, mark(n), seen[mark(n)], calls)
				}
			}
			if wants := part == "" && name == "long.xlsx"; (seen["<end>"] == 1) != wants {
				t.Errorf("%s, part %q: the second sheet was seen %d times", name, part, seen["<end>"])
			}
		}
	}
}

func TestManyEmptyParts(t *testing.T) {
	h := newHarness(t)
	h.put(t, "many.xlsx", packed(t, "workbook.xml", "<workbook><sheets>", `<sheet name="n"/>`, "</sheets></workbook>", 3))
	got := h.must(t, "read_document", `{"path":"many.xlsx"}`).Text
	if len(got) > toolgroups.MaxText || !strings.Contains(got, "3000 sheets\n") || !strings.Contains(got, "--- Sheet 9: n ---\n(empty)\n") || goOn.FindString(got) == "" {
		t.Errorf("%d characters: %.300s", len(got), got)
	}
}

func TestASearchShowsSoMuch(t *testing.T) {
	h := newHarness(t)
	h.put(t, "many.txt", []byte(strings.Repeat(strings.Repeat("ä", 3_000)+" needle "+strings.Repeat("b", 3_000)+"\n", 90)))
	got := h.must(t, "search_document", `{"path":"many.txt","query":"needle"}`).Text
	if !strings.HasPrefix(got, `Found "needle" in 90 lines of 'many.txt':`) || !strings.Contains(got, "[65 more are not shown") || strings.Count(got, " needle ") != 25 || len(got) > toolgroups.MaxText {
		t.Errorf("got %d characters: %.500s", len(got), got)
	}
}

func TestErrors(t *testing.T) {
	h := newHarness(t)
	for _, name := range []string{"encrypted.xlsx", "legacy.xls", "report.docx"} {
		h.sample(t, name)
	}
	outside := filepath.Join(t.TempDir(), "out.docx")
	if err := os.WriteFile(outside, emptyDocument(t), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(h.dir, "link.docx")); err != nil {
		t.Fatal(err)
	}
	h.put(t, "empty.docx", nil)
	h.put(t, "x.pdf", []byte("%PDF-1.7"))
	if err := os.Mkdir(filepath.Join(h.dir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(outside, 51<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(outside, filepath.Join(h.dir, "huge.docx")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ tool, args, code, text string }{
		{"read_document", `{}`, "validation_error", "'path' is missing"},
		{"read_document", `{"path":""}`, "validation_error", "'path' is empty"},
		{"read_document", `{"path":"nope.docx"}`, "file_not_found", "'nope.docx'"},
		{"read_document", `{"path":"../out.docx"}`, "permission_denied", "outside the workspace"},
		{"read_document", `{"path":"link.docx"}`, "", ""},
		{"read_document", `{"path":"dir"}`, "document_error", "not a file"},
		{"read_document", `{"path":"huge.docx"}`, "document_error", "limit of 52428800 bytes"},
		{"read_document", `{"path":"empty.docx"}`, "document_error", "'empty.docx' is empty."},
		{"read_document", `{"path":"x.pdf"}`, "document_error", "'x.pdf' is a PDF. Load the group pdf."},
		{"read_document", `{"path":"encrypted.xlsx"}`, "document_error", "'encrypted.xlsx' is protected with a password. Ask for a copy without one."},
		{"search_document", `{"path":"legacy.xls","query":"x"}`, "document_error", "before 2007 (.xls)"},
		{"search_document", `{"path":"report.docx","query":" "}`, "validation_error", "'query' is"},
		{"read_document", `{"path":"report.docx","part":"7"}`, "invalid_part", "There is no such part of 'report.docx', which has 2 pages."},
		{"read_document", `{"path":"report.docx","part":"2:99-"}`, "invalid_part", "page 2 of 'report.docx' ends with paragraph 7"},
		{"read_document", `{"path":"report.docx","part":"5-2"}`, "invalid_part", "Write it like 3, 2-5"},
		{"write_document", `{"path":"x.txt","content":"a"}`, "document_error", ".docx or .xlsx"},
		{"write_document", `{"path":"x.xlsx","content":"no table"}`, "document_error", "There is no table"},
		{"write_document", `{"path":"../x.docx","content":"a"}`, "permission_denied", "outside the workspace"},
		{"write_document", fmt.Sprintf(`{"path":"x.docx","content":%q}`, strings.Repeat("x", 300_000)), "document_error", "more than the limit of 262144"},
	} {
		res, err := h.run(t.Context(), tc.tool, tc.args)
		switch {
		case tc.code == "" && err == nil || err != nil && strings.Contains(tc.args, "link.docx"):
			if err == nil {
				t.Errorf("a link was followed: %s", res.Text)
			}
		case err == nil || err.Code != tc.code || !strings.Contains(err.Message, tc.text):
			t.Errorf("%s(%.80s): %q, %+v; want %s with %q", tc.tool, tc.args, res.Text, err, tc.code, tc.text)
		}
	}
}

// TestWhatIsWrittenIsReadBack writes with one tool, reads with the other, and looks at what is sent to the chat.
func TestWhatIsWrittenIsReadBack(t *testing.T) {
	h := newHarness(t)
	content := "# Costs\n\nOf the **harbour**.\n\n| Item | Cost | Share | Day |\n|---|---|---|---|\n| Rope \\| thin | 1,200.50 | 12.5% | 2026-03-01 |\n| =1+1 | 007 | `_x0041_x0042_` | two<br>lines |\n\n1. one\n2. two\n   - deep\n"
	for _, tc := range []struct{ path, note, want string }{
		{"out/costs.docx", "", "# Costs\n\nOf the harbour.\n\n| Item | Cost | Share | Day |\n|---|---|---|---|\n| Rope \\| thin | 1,200.50 | 12.5% | 2026-03-01 |\n| =1+1 | 007 | _x0041_x0042_ | two<br>lines |\n\n1. one\n2. two\n  - deep"},
		{"costs.xlsx", "\n[4 paragraphs that are in no table were left out.]", "\n--- Sheet 1: Costs ---\n| | A | B | C | D |\n|---|---|---|---|---|\n| 1 | Item | Cost | Share | Day |\n| 2 | Rope \\| thin | 1200.5 | 12.5% | 2026-03-01 |\n| 3 | =1+1 | 007 | _x0041_x0042_ | two<br>lines |"},
	} {
		args, err := json.Marshal(map[string]string{"path": tc.path, "content": content})
		if err != nil {
			t.Fatal(err)
		}
		res := h.must(t, "write_document", string(args))
		if !strings.HasPrefix(res.Text, "Saved and sent: "+tc.path+"\nFile size: ") || !strings.HasSuffix(res.Text, " bytes"+tc.note) {
			t.Errorf("%s: %q", tc.path, res.Text)
		}
		if len(res.Files) != 1 || res.Files[0].Path != tc.path {
			t.Errorf("%s: files %v", tc.path, res.Files)
		}
		got := h.must(t, "read_document", fmt.Sprintf(`{"path":%q}`, tc.path)).Text
		if _, body, _ := strings.Cut(got, "\n"); !strings.HasSuffix(body, tc.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.path, got, tc.want)
		}
	}
}

// TestAnOriginalIsNotOverwritten: a file that the user sent is kept, and what the tool wrote is replaced.
func TestAnOriginalIsNotOverwritten(t *testing.T) {
	h := newHarness(t)
	h.sample(t, "costs.xlsx")
	h.sample(t, "report.docx")
	before := map[string][]byte{}
	for _, name := range []string{"costs.xlsx", "report.docx"} {
		data, err := os.ReadFile(filepath.Join(h.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		before[name] = data
	}
	for _, word := range []string{"one", "two"} {
		for name, want := range map[string]string{"costs.xlsx": "costs-2.xlsx", "report.docx": "report-2.docx", "new.docx": "new.docx"} {
			res := h.must(t, "write_document", fmt.Sprintf(`{"path":%q,"content":"| a |\n|---|\n| %s |"}`, name, word))
			if kept := strings.Contains(res.Text, "[The file '"+name+"' that was there is kept.]"); res.Files[0].Path != want || kept != (name != want) {
				t.Errorf("%s: %+v", name, res)
			}
			if got := h.must(t, "read_document", fmt.Sprintf(`{"path":%q}`, want)).Text; !strings.Contains(got, word) {
				t.Errorf("%s: %s", want, got)
			}
		}
	}
	for name, want := range before {
		if got, err := os.ReadFile(filepath.Join(h.dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has changed: %v", name, err)
		}
	}
}

// FuzzWhatIsWrittenCanBeRead writes whatever comes: no document is damaged in the eyes of the reader.
func FuzzWhatIsWrittenCanBeRead(f *testing.F) {
	f.Add("# a\n\n1. b\n   - c\n\n| d |\n|---|\n| 1,200 |\n\n> e\n\n```\nf\n```")
	f.Add("- \n  - [ ] a\n\n| \x01 | <br> |\n|---|---|\n| [\x7f](http://a b) | &#0; | c |")
	f.Fuzz(func(t *testing.T, text string) {
		doc := markdown.Parse(text)
		docx, err := doc.DOCX()
		if err != nil {
			t.Fatal(err)
		}
		xlsx, _, err := doc.XLSX()
		if err != nil && !errors.Is(err, markdown.ErrNoTable) {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{"x.docx": docx, "x.xlsx": xlsx} {
			if _, err := office.Read(bytes.NewReader(data), int64(len(data)), name, everything{}); err != nil && data != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// everything is a sink that takes all.
type everything struct{}

// Begin wants all.
func (everything) Begin(office.Part) bool { return true }

// Add takes all.
func (everything) Add(office.Block) error { return nil }

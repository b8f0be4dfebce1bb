package documents_test

import (
	"archive/zip"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"oneclaw/internal/sandbox/sandboxtest"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/documents"
)

// packed is a small archive with one large document: a thousand times times its middle.
func packed(t testing.TB, name string, head, middle, tail string, times int) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range []struct{ name, head, middle, tail string }{
		{"_rels/.rels", `<R><R Id="r" Type="x/officeDocument" Target="` + name + `"/></R>`, "", ""},
		{name, head, strings.Repeat(middle, 1000), tail},
	} {
		w, err := z.Create(f.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.head)); err != nil {
			t.Fatal(err)
		}
		for i := 0; f.middle != "" && i < times; i++ {
			if _, err := w.Write([]byte(f.middle)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Write([]byte(f.tail)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// endless is a small document that takes half a minute to read, and no memory.
func endless(t testing.TB) []byte {
	return packed(t, "document.xml", "<document><body>", "<p/>", "</body></document>", 10_000)
}

// A document that takes all the memory that it can get ends with an error, and the next one is read.
func TestADocumentCannotTakeTheMemoryOfTheProgram(t *testing.T) {
	h := newHarness(t)
	data := packed(t, "workbook.xml", "<workbook><sheets>", "<s/>", "</sheets></workbook>", 4_000)
	if len(data) > 500_000 {
		t.Errorf("the document is no trap: it has %d bytes", len(data))
	}
	h.put(t, "evil.xlsx", data)
	h.sample(t, "costs.xlsx")
	if err := h.fault(t, "read_document", `{"path":"evil.xlsx"}`); err.Code != documents.CodeDocument || !strings.Contains(err.Message, "memory than") {
		t.Errorf("%+v", err)
	}
	h.must(t, "read_document", `{"path":"costs.xlsx"}`)
}

// A document that takes longer than its call is stopped in the middle.
func TestABombIsStopped(t *testing.T) {
	h := newHarness(t)
	h.put(t, "bomb.docx", endless(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if res, err := h.run(ctx, "read_document", `{"path":"bomb.docx"}`); err == nil || err.Code != toolgroups.CodeTimeout && err.Code != toolgroups.CodeCancelled {
		t.Errorf("%+v, %s", err, res.Text)
	}
}

func TestMoreDocumentsThanAreReadAtATime(t *testing.T) {
	h := newHarness(t)
	h.sample(t, "costs.xlsx")
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			res, err := h.run(t.Context(), "read_document", `{"path":"costs.xlsx"}`)
			if err != nil || !strings.Contains(res.Text, "Crane") {
				t.Errorf("%q, %+v", res.Text, err)
			}
		})
	}
	all.Wait()
}

// TestTheChildIsConfinedAndEndsWithItsParent talks to a child as the parent does.
func TestTheChildIsConfinedAndEndsWithItsParent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bomb.docx")
	if err := os.WriteFile(path, endless(t), 0o600); err != nil {
		t.Fatal(err)
	}
	child := sandboxtest.Start(t, documents.ChildArgument, path)
	// A task is read after the limits are set.
	child.Send(t, `{"name":"bomb.docx"}`)
	for len(child.WrongLimits(t)) > 0 {
		if t.Context().Err() != nil {
			t.Fatal("the child is not confined")
		}
	}
	child.CheckEndsWithParent(t) // it is busy
}

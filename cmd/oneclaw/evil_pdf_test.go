package main

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// evilPDF is a small document whose one page is made of millions of lines, which PDFium
// keeps in memory one by one until it gets no more.
func evilPDF(t *testing.T) *telegram.Attachment {
	t.Helper()
	var lines bytes.Buffer
	w := zlib.NewWriter(&lines)
	_, err := w.Write(bytes.Repeat([]byte("0 0 m 9 9 l S\n"), 2_500_000))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	data := fmt.Sprintf("%%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n"+
		"2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n"+
		"3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R >>\nendobj\n"+
		"4 0 obj\n<< /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream\nendobj\n"+
		"trailer\n<< /Root 1 0 R >>\n", lines.Len(), lines.String())
	return &telegram.Attachment{Kind: telegram.KindDocument, Name: "evil.pdf", MIME: "application/pdf", Data: []byte(data)}
}

var attached = regexp.MustCompile(`\[file: ([^\]]*)\]`)

// readingPDFs has the text of each file read, and repeats what it was told.
func readingPDFs(_ context.Context, req openai.Request) (openai.Reply, error) {
	last, file := req.Messages[len(req.Messages)-1], ""
	for _, m := range req.Messages {
		if found := attached.FindStringSubmatch(m.Content); m.Role == "user" && found != nil {
			file = found[1]
		}
	}
	if last.Role == "user" || strings.HasPrefix(last.Content, "Loaded ") {
		return useTool(req, "pdf", "pdf_extract_text", fmt.Sprintf(`{"path":%q}`, file))
	}
	return openai.Reply{Text: "told: " + last.Content}, nil
}

// peak is the most memory that a process has had, in bytes.
func (p *process) peak(t *testing.T) uint64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	if err != nil || !found {
		t.Skip("memory is read from /proc")
	}
	kib, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// TestADocumentCannotTakeTheMemoryOfTheBot sends the real program a document that
// takes all the memory it can get: the bot does not grow by it, and reads the next one.
func TestADocumentCannotTakeTheMemoryOfTheBot(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(readingPDFs))
	ann := w.person("Ann")
	bot := w.run()
	wantIn(t, w.ask(bot, ann, "what does it say?", samplePDF(t)), "told: File: ")
	before := bot.peak(t)
	evil := evilPDF(t)
	// Where the machine is busy its time may end before its memory does.
	if told := w.ask(bot, ann, "and this?", evil); !strings.Contains(told, "more memory than allowed") && !strings.Contains(told, "could not be read in time") {
		t.Errorf("told %q", told)
	}
	after := bot.peak(t) // It can sink: the kernel counts it in steps, and without what is swapped out.
	t.Logf("a document of %d bytes took the bot from %d MiB to %d", len(evil.Data), before>>20, after>>20)
	if after > before+64<<20 {
		t.Errorf("the bot has taken %d MiB more", (after-before)>>20)
	}
	wantIn(t, w.ask(bot, ann, "and this again?", samplePDF(t)), "told: File: ")
}

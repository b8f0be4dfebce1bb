package pdf

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// maxChars bounds the text extracted by one call, in characters.
const maxChars = 5_000_000

type textArgs struct {
	Path     string `json:"path"`
	Pages    string `json:"pages"`
	MaxChars int    `json:"max_chars"`
}

// extraction is the text of the pages read so far.
type extraction struct {
	selected   selection
	pageCount  int // pages of the document
	limit      int // characters
	body       strings.Builder
	charCount  int
	blankPages selection // pages without text
	damaged    selection // pages that cannot be read
	remaining  selection // missing or incomplete pages
	xfa        bool      // the document is a form that PDFium cannot show
	sum        string    // of the document
	timedOut   bool      // stopped because time ran out, not because of the limit
}

func (p *PDF) extractText(ctx context.Context, call toolgroups.Call, in textArgs) (toolgroups.Result, error) {
	s, err := p.openSource(call, in.Path)
	if err != nil {
		return toolgroups.Result{}, err
	}
	defer s.close()
	x := extraction{limit: charLimit(call.Scope, in.MaxChars)}
	soft, cancel := withTimeForResult(ctx)
	defer cancel()
	err = p.withDocument(soft, s, func(doc *remoteDocument) error {
		x.pageCount, x.xfa, x.sum = doc.pageCount, doc.xfa, doc.sum
		if x.selected, err = parsePages(in.Pages, doc.pageCount); err != nil {
			return toolgroups.Errorf(codeInvalidPageRange,
				"'%s' is no valid selection of pages: '%s' has %d pages. Write it like 3, 1-5 or 1,3,5-7.",
				oneLine(in.Pages), s.name(), doc.pageCount)
		}
		return x.readPages(soft, doc)
	})
	switch {
	case err == nil:
	case soft.Err() == nil || ctx.Err() != nil:
		return toolgroups.Result{}, err
	case x.charCount > 0:
		// Time has run out. Return the text read so far instead of an error.
		x.timedOut = true
	default:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeTimeout,
			"The text of '%s' could not be read in time. Try fewer pages, or pdf_render_page.", s.name())
	}
	return x.buildResult(call, s, p.cfg.Now()), nil
}

// charLimit returns the limit of a call in characters. If asked is 0, or barely above the limit of a result,
// it returns the limit of a result.
func charLimit(scope toolgroups.Scope, asked int) int {
	if inline := files.InlineLimit(scope); asked <= 0 || asked > inline && asked <= scope.MaxText() {
		return inline
	}
	return min(asked, maxChars)
}

// withTimeForResult returns a context with an earlier deadline, which leaves time to make the result.
func withTimeForResult(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)*8/10)
}

// readPages collects the text page by page until the limit is reached.
func (x *extraction) readPages(ctx context.Context, doc *remoteDocument) error {
	for i, page := range x.selected {
		x.remaining = x.selected[i:]
		if err := ctx.Err(); err != nil {
			return err
		}
		head := fmt.Sprintf("\n--- Page %d ---\n", page)
		room := x.limit - x.charCount - len(head) - len("\n")
		if room <= 0 {
			return nil
		}
		toolgroups.Report(ctx, fmt.Sprintf("page %d", page))
		text, total, err := doc.text(page, room)
		if errors.Is(err, pdfiumerrors.ErrPage) {
			x.damaged = append(x.damaged, page)
			continue
		}
		if err != nil {
			return err
		}
		if text == "" && total <= room {
			x.blankPages = append(x.blankPages, page)
			continue
		}
		if total > room { // with … an address that is cut does not end there
			text, _ = wording.SplitAt(text, room-1)
			text += "…"
		}
		x.body.WriteString(head + text + "\n")
		x.charCount += len(head) + utf8.RuneCountInString(text) + 1
		if total > room {
			return nil
		}
	}
	x.remaining = nil
	return nil
}

// buildResult assembles the text and its notices.
func (x *extraction) buildResult(call toolgroups.Call, s source, now time.Time) toolgroups.Result {
	head := fmt.Sprintf("File: %s\nPages: %s of %d\n", s.name(), oneLine(x.selected.String()), x.pageCount)
	body := files.Shorten(call.Scope, s.baseName(), x.body.String(), files.InlineLimit(call.Scope), now)
	return toolgroups.Result{Text: head + body + x.notices(), Read: x.sum}
}

// notices returns notes on pages that are missing or have no text.
func (x *extraction) notices() string {
	var b strings.Builder
	if len(x.remaining) > 0 {
		why := fmt.Sprintf("after %d characters", x.charCount)
		if x.timedOut {
			why = "because the time was over"
		}
		next := fmt.Sprintf("Go on with pages %q.", oneLine(x.remaining.String()))
		if x.remaining[0] == x.selected[0] && !x.timedOut {
			next = fmt.Sprintf("With max_chars %d, all of its text is saved to a file.", maxChars)
		}
		fmt.Fprintf(&b, "\n[Truncated %s, at page %d; %d of %d selected pages are missing or cut. %s]",
			why, x.remaining[0], len(x.remaining), len(x.selected), next)
	}
	if len(x.damaged) > 0 {
		fmt.Fprintf(&b, "\n[Damaged pages, which cannot be read: %s.]", oneLine(x.damaged.String()))
	}
	if x.xfa {
		b.WriteString("\n" + xfaNotice)
	}
	switch {
	case x.body.Len() == 0 && len(x.blankPages) > 0:
		b.WriteString("\n[These pages have no text layer; they are probably scans. Use pdf_render_page to see them.]")
	case len(x.blankPages) > 0:
		fmt.Fprintf(&b, "\n[No text on pages %s; pdf_render_page shows them.]", oneLine(x.blankPages.String()))
	}
	return b.String()
}

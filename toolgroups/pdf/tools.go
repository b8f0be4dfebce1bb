package pdf

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// Error codes of these tools.
const (
	CodePDF              = "pdf_error"
	codeInvalidPageRange = "invalid_page_range"
	codeInvalidPage      = "invalid_page"
)

// Resolutions of pictures.
const (
	minDPI     = 72
	defaultDPI = 150
	maxDPI     = 300
)

const (
	// maxBaseName bounds the part of an output file's name that comes from the PDF's name, in bytes.
	maxBaseName = 150
	// maxPropertyLength bounds a property of a document in a result, in characters.
	maxPropertyLength = 300
)

// source is a PDF file of a workspace. It must be closed.
type source struct {
	relPath string // path in the workspace
	file    *os.File
	size    int64
}

// close closes the file, which is only read.
func (s source) close() { _ = s.file.Close() }

func (s source) name() string { return oneLine(path.Base(s.relPath)) }

// baseName returns the name for files made from this one, without extension.
func (s source) baseName() string {
	base := strings.TrimSuffix(path.Base(s.relPath), path.Ext(s.relPath))
	base = strings.ToValidUTF8(base[:min(len(base), maxBaseName)], "")
	return cmp.Or(base, "document")
}

// openSource opens the file that a call names.
func (p *PDF) openSource(call toolgroups.Call, name string) (s source, err error) {
	s.file, s.relPath, s.size, err = files.Open(call.Scope, name, p.cfg.MaxFile)
	if err != nil {
		return source{}, files.ToolError(name, err, p.cfg.MaxFile, CodePDF)
	}
	if s.size == 0 {
		s.close()
		return source{}, toolgroups.Errorf(CodePDF, "'%s' is empty, not a PDF.", s.name())
	}
	return s, nil
}

// withDocument opens the document and calls f with it.
func (p *PDF) withDocument(ctx context.Context, s source, f func(*remoteDocument) error) error {
	err := p.engine.withDocument(ctx, s.file, func(doc *remoteDocument) error {
		if doc.pageCount < 1 {
			return toolgroups.Errorf(CodePDF, "'%s' has no pages.", s.name())
		}
		return f(doc)
	})
	return p.pdfError(ctx, s, err)
}

// pdfError converts an error into one for the model, without WebAssembly stack traces.
func (p *PDF) pdfError(ctx context.Context, s source, err error) error {
	var known *toolgroups.Error
	switch {
	case err == nil, errors.Is(err, errClosed), errors.Is(err, errStart), errors.As(err, &known):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, pdfiumerrors.ErrPassword):
		return toolgroups.Errorf(CodePDF, "'%s' is password-protected and cannot be opened. Ask for a copy without a password.", s.name())
	case errors.Is(err, pdfiumerrors.ErrSecurity):
		return toolgroups.Errorf(CodePDF, "'%s' is encrypted in a way that is not supported.", s.name())
	case errors.Is(err, pdfiumerrors.ErrFormat), errors.Is(err, pdfiumerrors.ErrFile):
		return toolgroups.Errorf(CodePDF, "'%s' is not a PDF, or it is damaged.", s.name())
	case errors.Is(err, pdfiumerrors.ErrPage):
		return toolgroups.Errorf(CodePDF, "A page of '%s' is damaged.", s.name())
	}
	p.cfg.Logger.Warn("pdf could not be processed", "err", err)
	return toolgroups.Errorf(CodePDF, "'%s' could not be processed: it is damaged, or needs more memory than allowed.", s.name())
}

// xfaNotice tells the model that a document does not show what was filled in.
const xfaNotice = "[This is an XFA form, which only a few programs can show: what was filled in is missing here. Ask for a printed or exported copy.]"

type infoArgs struct {
	Path string `json:"path"`
}

func (p *PDF) readInfo(ctx context.Context, call toolgroups.Call, in infoArgs) (toolgroups.Result, error) {
	s, err := p.openSource(call, in.Path)
	if err != nil {
		return toolgroups.Result{}, err
	}
	defer s.close()
	var b strings.Builder
	err = p.withDocument(ctx, s, func(doc *remoteDocument) error {
		fmt.Fprintf(&b, "File: %s\nPath: %s\nPages: %d\nSize: %d bytes", s.name(), oneLine(s.relPath), doc.pageCount, s.size)
		for _, prop := range []struct{ label, tag string }{
			{"Title", "Title"},
			{"Author", "Author"},
			{"Subject", "Subject"},
			{"Creator", "Creator"},
			{"Producer", "Producer"},
			{"Created", "CreationDate"},
		} {
			value, err := doc.metaText(prop.tag)
			if err != nil {
				return err
			}
			if prop.tag == "CreationDate" {
				value = formatDate(value)
			}
			if value = oneLine(value); value != "" {
				fmt.Fprintf(&b, "\n%s: %s", prop.label, value)
			}
		}
		files, err := doc.attachedFiles()
		if files != "" {
			fmt.Fprintf(&b, "\nAttached files, which cannot be read here: %s", files)
		}
		if doc.xfa {
			b.WriteString("\n" + xfaNotice)
		}
		return err
	})
	if err != nil {
		return toolgroups.Result{}, err
	}
	return toolgroups.Result{Text: b.String()}, nil
}

// formatDate reformats a PDF date (ISO 32000, 7.9.4: D:20260301093000+01'00'). It keeps other texts.
func formatDate(s string) string {
	digits := strings.ReplaceAll(strings.TrimPrefix(s, "D:"), "'", "")
	for _, layout := range []string{"20060102150405-0700", "20060102150405Z0000", "20060102150405Z"} {
		if t, err := time.Parse(layout, digits); err == nil {
			return t.Format(time.RFC3339)
		}
	}
	if t, err := time.Parse("20060102150405", digits); err == nil {
		return t.Format("2006-01-02T15:04:05")
	}
	if t, err := time.Parse("20060102", digits); err == nil {
		return t.Format(time.DateOnly)
	}
	return s
}

// oneLine cleans text from a file, joins its lines and shortens it for a result.
func oneLine(s string) string {
	return wording.Clip(strings.Join(strings.Fields(strings.ToValidUTF8(cleanText(s), "")), " "), maxPropertyLength)
}

type renderArgs struct {
	Path string `json:"path"`
	Page int    `json:"page"`
	DPI  int    `json:"dpi"`
}

func (p *PDF) renderPage(ctx context.Context, call toolgroups.Call, in renderArgs) (toolgroups.Result, error) {
	s, err := p.openSource(call, in.Path)
	if err != nil {
		return toolgroups.Result{}, err
	}
	defer s.close()
	dpi := min(max(cmp.Or(in.DPI, defaultDPI), minDPI), maxDPI)
	var pic picture
	notice := ""
	err = p.withDocument(ctx, s, func(doc *remoteDocument) (err error) {
		if in.Page < 1 || in.Page > doc.pageCount {
			return toolgroups.Errorf(codeInvalidPage, "There is no page %d: '%s' has %d pages.", in.Page, s.name(), doc.pageCount)
		}
		if doc.xfa {
			notice = "\n" + xfaNotice
		}
		pic, err = doc.render(in.Page, dpi, p.cfg.MaxPixels)
		return err
	})
	if err != nil {
		return toolgroups.Result{}, err
	}
	size := fmt.Sprintf("%d x %d pixels at %d DPI", pic.width, pic.height, pic.dpi)
	if pic.dpi < dpi {
		size += fmt.Sprintf(" (not %d: the page is very large)", dpi)
	}
	// Another resolution, and the page after a change of the file, are other pictures, and one turn may send
	// both. The user sees the last part of the name.
	sum := sha256.Sum256(pic.png)
	name := path.Join("pdf-renders", path.Dir(s.relPath), hex.EncodeToString(sum[:])[:8], fmt.Sprintf("%s-page%d.png", s.baseName(), in.Page))
	if _, err := files.Save(call.Scope, name, pic.png); err != nil {
		return toolgroups.Result{}, files.ToolError(name, err, p.cfg.MaxFile, CodePDF)
	}
	return toolgroups.Result{
		Text:  fmt.Sprintf("Saved: %s\nSize: %s\nFile size: %d bytes%s", name, size, len(pic.png), notice),
		Files: []toolgroups.File{{Path: name, Caption: fmt.Sprintf("%s, page %d", s.name(), in.Page)}},
	}, nil
}

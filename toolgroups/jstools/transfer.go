package jstools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path"
	"path/filepath"
	"strings"

	"oneclaw/internal/guard"
	"oneclaw/internal/workspace"
)

const (
	// maxTransfer bounds a download, or an upload with all its parts, in bytes.
	maxTransfer = 50 << 20
	maxParts    = 20
)

type downloadArgs struct {
	URL     string            `json:"url"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
}

// download streams a reply to a file, which is there when all of it has come.
func (h *host) download(ctx context.Context, in downloadArgs) (any, error) {
	rel, err := h.root.Creatable(in.Path)
	if err != nil {
		return nil, fileError(in.Path, err)
	}
	req, err := guard.NewRequest(ctx, http.MethodGet, in.URL, "", in.Headers)
	if err != nil {
		return nil, err
	}
	res, err := h.tools.client.Do(req)
	if err != nil {
		return nil, requestError(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	if !ok(res) {
		return nil, fmt.Errorf("the server answered HTTP %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	}
	size, err := h.root.WriteFrom(rel, &metered{from: res.Body, left: maxTransfer, spend: h.spend})
	if err != nil {
		return nil, requestError(ctx, err)
	}
	return map[string]any{"success": true, "path": filepath.ToSlash(rel), "size": size}, nil
}

// metered reads up to a limit and counts what it reads for the run.
type metered struct {
	from  io.Reader
	left  int64
	spend func(int64) error
}

// Read fails behind the limit.
func (m *metered) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	if m.left -= int64(n); m.left < 0 {
		return n, fmt.Errorf("the file is larger than the limit of %d MiB", maxTransfer>>20)
	}
	if over := m.spend(int64(n)); over != nil {
		return n, over
	}
	return n, err
}

type uploadArgs struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Parts   []uploadPart      `json:"parts"`
}

type uploadPart struct {
	Type        string `json:"type"`
	ContentType string `json:"content_type"`
	Name        string `json:"name"`
	Path        string `json:"path"`
	Body        string `json:"body"`
}

// uploaded is what uploadMultipart gives a script.
type uploaded struct {
	OK     bool   `json:"ok"`
	Status int    `json:"status"`
	Body   string `json:"body"`
}

// upload posts parts as multipart/related, or as a form where a part has a name.
func (h *host) upload(ctx context.Context, in uploadArgs) (any, error) {
	if len(in.Parts) == 0 || len(in.Parts) > maxParts {
		return nil, fmt.Errorf("an upload has 1 to %d parts", maxParts)
	}
	body, err := h.assemble(in.Parts)
	if err != nil {
		return nil, err
	}
	defer body.close()
	req, err := guard.NewRequest(ctx, http.MethodPost, in.URL, "", in.Headers)
	if err != nil {
		return nil, err
	}
	req.Body, req.GetBody, req.ContentLength = io.NopCloser(io.MultiReader(body.readers...)), nil, body.size
	kind := "multipart/related"
	if body.form || strings.HasPrefix(strings.ToLower(req.Header.Get("Content-Type")), "multipart/form-data") {
		kind = "multipart/form-data"
	}
	req.Header.Set("Content-Type", mime.FormatMediaType(kind, map[string]string{"boundary": body.boundary}))
	res, err := guard.Fetch(h.tools.client, req, guard.MaxReply)
	if err != nil {
		return nil, requestError(ctx, err)
	}
	text := textOf(res)
	if res.Cut {
		text += fmt.Sprintf("\n[cut: only the first %d bytes of the body were read]", guard.MaxReply)
	}
	return uploaded{OK: ok(res.Response), Status: res.StatusCode, Body: text}, nil
}

// assembled is a body of several parts that is read from files as it is sent.
type assembled struct {
	boundary string
	readers  []io.Reader
	files    []*os.File
	size     int64
	form     bool
}

func (a *assembled) close() {
	for _, f := range a.files {
		_ = f.Close()
	}
}

// add appends a piece of known length.
func (a *assembled) add(r io.Reader, size int64) error {
	a.readers = append(a.readers, r)
	if a.size += size; a.size > maxTransfer {
		return fmt.Errorf("the upload is larger than the limit of %d MiB", maxTransfer>>20)
	}
	return nil
}

func (h *host) assemble(parts []uploadPart) (*assembled, error) {
	var frame bytes.Buffer
	w := multipart.NewWriter(&frame)
	a := &assembled{boundary: w.Boundary()}
	// text moves on what the writer has put between the parts.
	text := func() error {
		err := a.add(strings.NewReader(frame.String()), int64(frame.Len()))
		frame.Reset()
		return err
	}
	for _, p := range parts {
		if _, err := w.CreatePart(p.header()); err != nil {
			a.close()
			return nil, err
		}
		a.form = a.form || p.Name != ""
		if err := errors.Join(text(), h.addContent(a, p)); err != nil {
			a.close()
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), text()); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// addContent appends what a part holds.
func (h *host) addContent(a *assembled, p uploadPart) error {
	if p.Type != "file" {
		return a.add(strings.NewReader(p.Body), int64(len(p.Body)))
	}
	f, err := h.root.Open(p.Path)
	if err != nil {
		return fileError(p.Path, err)
	}
	a.files = append(a.files, f)
	info, err := f.Stat()
	if err != nil {
		return fileError(p.Path, workspace.Cause(err))
	}
	return a.add(io.LimitReader(f, info.Size()), info.Size())
}

// header is what stands before a part. Line breaks cannot get into it: FormatMediaType
// encodes them, and a content type that does not parse is not used.
func (p uploadPart) header() textproto.MIMEHeader {
	kind := "application/json; charset=UTF-8"
	if p.Type == "file" {
		kind = "application/octet-stream"
		if guess := mime.TypeByExtension(path.Ext(p.Path)); guess != "" {
			kind = guess
		}
	}
	if media, params, err := mime.ParseMediaType(p.ContentType); err == nil {
		if formatted := mime.FormatMediaType(media, params); formatted != "" {
			kind = formatted
		}
	}
	header := textproto.MIMEHeader{"Content-Type": {kind}}
	if p.Name != "" {
		params := map[string]string{"name": p.Name}
		if p.Type == "file" {
			params["filename"] = path.Base(filepath.ToSlash(p.Path))
		}
		header.Set("Content-Disposition", mime.FormatMediaType("form-data", params))
	}
	return header
}

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

// download streams a reply to a file. The file appears only when it is complete.
func (h *host) download(ctx context.Context, in downloadArgs) (any, error) {
	rel, err := h.root.PrepareFile(in.Path)
	if err != nil {
		return nil, fileError(in.Path, err)
	}
	if ctx, err = h.checkSending(ctx, http.MethodGet, in.URL, in.Headers); err != nil {
		return nil, err
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
	if !isSuccess(res) {
		return nil, fmt.Errorf("the server answered HTTP %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	}
	size, err := h.root.WriteFrom(rel, &meteredReader{source: res.Body, bytesLeft: maxTransfer, countWritten: h.countWritten})
	if err != nil {
		return nil, requestError(ctx, err)
	}
	return map[string]any{"success": true, "path": filepath.ToSlash(rel), "size": size}, nil
}

// meteredReader reads up to bytesLeft bytes and counts them for the run.
type meteredReader struct {
	source       io.Reader
	bytesLeft    int64
	countWritten func(int64) error
}

// Read fails beyond the limit.
func (m *meteredReader) Read(p []byte) (int, error) {
	n, err := m.source.Read(p)
	if m.bytesLeft -= int64(n); m.bytesLeft < 0 {
		return n, fmt.Errorf("the file is larger than the limit of %d MiB", maxTransfer>>20)
	}
	if over := m.countWritten(int64(n)); over != nil {
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

// uploadResult is the result of uploadMultipart for a script.
type uploadResult struct {
	OK     bool   `json:"ok"`
	Status int    `json:"status"`
	Body   string `json:"body"`
}

// upload posts parts as multipart/related, or as a form if a part has a name.
func (h *host) upload(ctx context.Context, in uploadArgs) (any, error) {
	ctx, err := h.checkSending(ctx, http.MethodPost, in.URL, in.Headers)
	if err != nil {
		return nil, err
	}
	if len(in.Parts) == 0 || len(in.Parts) > maxParts {
		return nil, fmt.Errorf("an upload has 1 to %d parts", maxParts)
	}
	body, err := h.assembleBody(in.Parts)
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
	if body.isForm || strings.HasPrefix(strings.ToLower(req.Header.Get("Content-Type")), "multipart/form-data") {
		kind = "multipart/form-data"
	}
	req.Header.Set("Content-Type", mime.FormatMediaType(kind, map[string]string{"boundary": body.boundary}))
	res, err := guard.Fetch(h.tools.client, req, guard.MaxReply)
	if err != nil {
		return nil, requestError(ctx, err)
	}
	text := bodyText(res)
	if res.Truncated {
		text += fmt.Sprintf("\n[cut: only the first %d bytes of the body were read]", guard.MaxReply)
	}
	return uploadResult{OK: isSuccess(res.Response), Status: res.StatusCode, Body: text}, nil
}

// multipartBody is a body of several parts that are read from files while it is sent.
type multipartBody struct {
	boundary string
	readers  []io.Reader
	files    []*os.File
	size     int64
	isForm   bool
}

func (a *multipartBody) close() {
	for _, f := range a.files {
		_ = f.Close()
	}
}

// addPiece appends a piece of the given size.
func (a *multipartBody) addPiece(r io.Reader, size int64) error {
	a.readers = append(a.readers, r)
	if a.size += size; a.size > maxTransfer {
		return fmt.Errorf("the upload is larger than the limit of %d MiB", maxTransfer>>20)
	}
	return nil
}

func (h *host) assembleBody(parts []uploadPart) (*multipartBody, error) {
	var frame bytes.Buffer
	w := multipart.NewWriter(&frame)
	a := &multipartBody{boundary: w.Boundary()}
	// text moves the boundary and header that w has written to the body.
	text := func() error {
		err := a.addPiece(strings.NewReader(frame.String()), int64(frame.Len()))
		frame.Reset()
		return err
	}
	for _, p := range parts {
		if _, err := w.CreatePart(p.header()); err != nil {
			a.close()
			return nil, err
		}
		a.isForm = a.isForm || p.Name != ""
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

// addContent appends the content of a part.
func (h *host) addContent(a *multipartBody, p uploadPart) error {
	if p.Type != "file" {
		return a.addPiece(strings.NewReader(p.Body), int64(len(p.Body)))
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
	return a.addPiece(io.LimitReader(f, info.Size()), info.Size())
}

// header returns the header of a part. It cannot contain line breaks: FormatMediaType encodes
// them, and an invalid content type is dropped.
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
